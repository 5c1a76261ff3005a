//! Outputs of commands: data loss is refused before the work begins, and no unfinished file remains.

use std::fs::{self, File, OpenOptions};
use std::process::Stdio;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Bounded, Running, Workplace, names, send, text};
use heedful::system::Signal;

/// A workplace with a run, a model without a run, and files that must not be overwritten. All tests share it
/// and write to different names.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(300);
        place.good(&Workplace::training("run", "--steps 14"));
        fs::create_dir(place.path("model")).expect("a new name");
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            fs::copy(place.path("run").join(name), place.path("model").join(name)).expect("a copy");
        }
        fs::create_dir(place.path("mine")).expect("a new name");
        place.write("mine/report.html", b"years of work");
        for ending in ["txt", "json", "html", "csv", "svg", "jsonl"] {
            fs::create_dir(place.path(&format!("folder.{ending}"))).expect("a new name");
            let protected = place.path(&format!("protected.{ending}"));
            fs::write(&protected, "mine").expect("room on the disk");
            let mut permissions = protected.metadata().expect("a file").permissions();
            permissions.set_readonly(true);
            fs::set_permissions(protected, permissions).expect("it is ours");
        }
        fs::copy(place.path("valid.zh"), place.path("text.json")).expect("a copy");
        place.write("links.csv", &b"0-0\n".repeat(40));
        #[cfg(unix)]
        {
            fs::hard_link(place.path("valid.zh"), place.path("hard.txt")).expect("a new name");
            std::os::unix::fs::symlink("valid.zh", place.path("soft.txt")).expect("a new name");
            std::os::unix::fs::symlink("run", place.path("soft-run")).expect("a new name");
        }
        place
    })
}

/// Checks that the command ends with status 1 and this message, and changes nothing in the workplace.
fn refused(line: &str, expected: &str) {
    // One at a time, so that any change is caused by this command.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let state = || {
        let folders = ["", "run", "model", "mine"].map(|name| place().path(name));
        let files: Vec<_> =
            folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder")).collect();
        let mut state: Vec<_> = files
            .into_iter()
            .map(|entry| entry.expect("an entry").path())
            .map(|path| {
                (path.clone(), path.symlink_metadata().expect("it is there").modified().expect("a time"))
            })
            .filter(|(path, _)| path.is_file())
            .collect();
        state.sort();
        state
    };
    let before = state();
    let output = place().run(line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {message}");
    assert!(message.contains(expected), "{line}: {message}");
    assert_eq!(state(), before, "{line}");
}

const WRITERS: [(&str, &str); 14] = [
    ("translate run valid.zh -o OUT", "txt"),
    ("translate run valid.zh --attention OUT", "json"),
    ("classify run valid.zh -o OUT", "txt"),
    ("explain run valid.zh -o OUT", "html"),
    ("explain heads run --src valid.zh --tgt valid.en -o OUT", "csv"),
    ("explain prune run --src valid.zh --ref valid.en -o OUT", "csv"),
    ("explain example --model run -o OUT", "html"),
    ("explain example --model run --effects OUT", "svg"),
    ("explain scaling -o OUT", "svg"),
    ("explain order -o OUT", "json"),
    ("explain bottleneck -o OUT", "html"),
    ("explain positions -o OUT", "svg"),
    ("explain schedule -o OUT", "svg"),
    ("vocab --src train.zh --tgt train.en --size 700 --kind character --out OUT", "json"),
];

#[test]
fn files_that_cannot_be_written_are_refused_by_every_command() {
    let mut problems = vec![
        ("nowhere/out", "there is no folder nowhere"),
        ("folder", "it is a folder"),
        ("protected", "it is write-protected"),
    ];
    if cfg!(target_os = "linux") {
        // Not even root may write there.
        problems.push(("/proc/out", "cannot write /proc/out"));
    }
    for (line, ending) in WRITERS {
        for (name, expected) in &problems {
            refused(&line.replace("OUT", &format!("{name}.{ending}")), expected);
        }
    }
}

#[test]
fn files_that_are_read_are_not_written() {
    let mut lines = vec![
        ("translate run valid.zh -o valid.zh", "valid.zh is the same file as valid.zh, which is read"),
        ("translate run valid.zh -o run/../valid.zh", "which is read"),
        ("translate run valid.zh -o run/config.json", "same file as run/config.json"),
        ("translate run valid.zh --attention run/tokenizer.json", "which is read"),
        ("translate run valid.zh -o out.json --attention out.json", "name the same file"),
        ("classify run valid.zh -o valid.zh", "which is read"),
        ("explain run text.json -o text.json", "which is read"),
        ("explain heads run --src text.json --tgt valid.en -o text.json", "which is read"),
        (
            "explain heads run --src valid.zh --tgt valid.en --alignments links.csv -o links.csv",
            "which is read",
        ),
        ("explain prune run --src text.json --ref valid.en -o text.json", "which is read"),
        ("vocab --src text.json --tgt valid.en --out text.json", "which is read"),
    ];
    if cfg!(unix) {
        lines.push(("translate run valid.zh -o soft.txt", "soft.txt is the same file as valid.zh"));
        lines.push(("translate run valid.zh -o hard.txt", "which is read"));
        lines.push(("translate run soft.txt -o valid.zh", "which is read"));
        lines.push(("translate soft-run valid.zh -o run/config.json", "which is read"));
    }
    for (line, expected) in lines {
        refused(line, expected);
    }
}

#[test]
#[cfg_attr(not(unix), ignore = "only Unix tells which file it is")]
fn the_source_of_standard_input_is_not_overwritten() {
    let before = place().read("valid.zh");
    let input = File::open(place().path("valid.zh")).expect("it is there");
    let output = place().command("translate run -o valid.zh").stdin(input).finish();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("which is read"), "{}", text(&output.stderr));
    assert_eq!(place().read("valid.zh"), before);
}

#[cfg(unix)]
#[test]
fn standard_output_must_not_be_an_input() {
    // A copy, because `refused` checks the other files for changes.
    for (name, line) in [
        ("zh", "translate run OUT"),
        ("zh", "translate run OUT -q --json"),
        ("zh", "translate run"),
        ("zh", "score run --src OUT --tgt valid.en"),
        ("en", "score run --src valid.zh --tgt OUT"),
        ("zh", "classify run OUT"),
        ("zh", "explain run OUT"),
        ("zh", "explain heads run --src OUT --tgt valid.en"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        fs::copy(place().path(&format!("valid.{name}")), &path).expect("a copy");
        let before = fs::read(&path).expect("it is there");
        let out = OpenOptions::new().append(true).open(&path).expect("it is ours");
        let line = line.replace("OUT", path.to_str().expect("a plain name"));
        let input = File::open(&path).expect("it is there");
        let stdin = if line.ends_with("translate run") { input.into() } else { Stdio::null() };
        let output = place().command(&line).stdin(stdin).stdout(out).finish();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(message.contains("standard output is the same file as"), "{line}: {message}");
        assert_eq!(fs::read(&path).expect("it is there"), before, "{line}");
    }
}

#[test]
fn folders_with_a_model_or_other_files_are_not_overwritten() {
    let training = |out: &str| Workplace::training(out, "--steps 2");
    let mut lines = vec![
        ("average run --last 1 --out run".to_owned(), "run is the same folder as run"),
        ("average run --last 1 --out run/../run".to_owned(), "is the same folder as run"),
        ("average run --last 1 --out model".to_owned(), "model already holds a model or a run (config.json)"),
        ("average run --last 1 --out valid.zh".to_owned(), "valid.zh: it is a file"),
        ("average run --last 1 --out valid.zh/new".to_owned(), "valid.zh: it is a file"),
        ("average run --last 1 --ema --out new".to_owned(), "has no moving average"),
        (
            "shortlist run --src valid.zh -o model".to_owned(),
            "model already holds a model or a run (config.json)",
        ),
        ("compare layers --out run".to_owned(), "run already holds a model or a run"),
        ("compare layers --out valid.zh".to_owned(), "it is a file"),
        (training("model").replace("train ", "compare variations "), "model already holds a model or a run"),
        ("vocab --src train.zh --tgt train.en --out run".to_owned(), "run already holds a model or a run"),
        (training("run"), "run already holds a run of 14 steps"),
        (training("model"), "model/config.json would be overwritten"),
        (training("mine"), "mine/report.html would be overwritten"),
        (training("valid.zh"), "valid.zh: it is a file"),
        ("demo --quick --out valid.zh".to_owned(), "cannot use valid.zh"),
        ("demo --quick --out mine".to_owned(), "mine is not empty"),
    ];
    if cfg!(unix) {
        lines.push(("average run --last 1 --out soft-run".to_owned(), "soft-run is the same folder as run"));
        lines.push((training("soft-run"), "already holds a run of 14 steps"));
    }
    for (line, expected) in lines {
        refused(&line, expected);
    }
}

#[test]
fn force_overwrites() {
    let place = Workplace::new(300);
    place.good(&Workplace::training("run", "--steps 14"));
    let translations = place.good("translate run valid.zh");
    fs::copy(place.path("valid.zh"), place.path("both")).expect("a copy");
    place.good("translate run both -o both --force");
    assert_eq!(text(&place.read("both")), translations);
    place.good("average run --last 2 --out run --force");
    place.good("translate run valid.zh");
    place.good("average run --last 2 --out model");
    place.good(&Workplace::training("model", "--steps 14 --force"));
    assert_eq!(text(&place.read("model/metrics.jsonl")).lines().count(), 5);
    place.good("translate model valid.zh");
}

#[test]
#[cfg_attr(not(unix), ignore = "only Unix has them as files")]
fn devices_and_pipes_are_written_and_not_replaced() {
    let translations = place().good("translate run valid.zh");
    assert_eq!(place().good("translate run valid.zh -o /dev/stdout"), translations);
    place().good("translate run valid.zh -o /dev/null");
    assert!(!std::path::Path::new("/dev/null").is_file());
}

/// The unfinished files in the workplace.
fn unfinished(place: &Workplace) -> Vec<String> {
    names(&place.path("")).into_iter().filter(|name| name.ends_with(".tmp")).collect()
}

/// A command that has opened its output and waits for input.
fn waiting(place: &Workplace) -> Running {
    let mut command = place.command("translate run -o out.en");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.running();
    while unfinished(place).is_empty() {
        assert!(child.status().is_none(), "it ended by itself");
        sleep(Duration::from_millis(5));
    }
    child
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn an_interrupted_command_leaves_no_file_and_exits_with_the_signal_s_status() {
    let place = Workplace::new(300);
    place.good(&Workplace::training("run", "--steps 7"));
    const SIGKILL: i32 = 9;
    let ends = [Signal::Interrupt, Signal::Terminate, Signal::Hangup].map(Signal::number);
    for (signal, status) in ends.into_iter().zip([130, 143, 129].map(Some)).chain([(SIGKILL, None)]) {
        let mut child = waiting(&place);
        // Otherwise `wait` closes it, and the command may reach the end of its input before the signal
        // arrives.
        let input = child.stdin.take();
        send(&child, signal);
        assert_eq!(child.ended().code(), status);
        drop(input);
        assert!(!place.path("out.en").exists());
        assert_eq!(unfinished(&place).len(), usize::from(signal == SIGKILL), "{signal}");
    }
    place.write("notes.tmp", b"mine");
    place.good("translate run valid.zh -o other.en");
    assert_eq!(unfinished(&place), ["notes.tmp"], "what a kill left is removed, and nothing else");
}

#[test]
fn a_command_that_fails_leaves_nothing() {
    let place = Workplace::new(300);
    place.good(&Workplace::training("run", "--steps 7"));
    place.write("broken.zh", &[place.read("valid.zh"), b"\xff\xfe\n".to_vec()].concat());
    let before = names(&place.path(""));
    assert!(
        place.bad("translate run broken.zh -o out.en --attention out.json").contains("broken.zh, line 41")
    );
    assert_eq!(names(&place.path("")), before);
}
