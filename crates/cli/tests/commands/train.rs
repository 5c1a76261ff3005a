//! `heedful train` as a process: its files, resuming, and errors.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Bounded, Running, Workplace, names, send, text, with_default_signals};
use heedful::metrics::Measure;
use heedful::system::Signal;
use heedful::tensor::random::Stream;
use heedful::train::checkpoint::{self, Checkpoints};
use heedful::train::log::read_metrics;
use serde_json::Value;

/// The newest checkpoint of a run.
fn last_checkpoint(run: &Path) -> checkpoint::Checkpoint {
    let checkpoints = Checkpoints::read_only(&run.join("checkpoints"));
    let step = checkpoints.last(1).expect("a checkpoint")[0];
    checkpoint::read(&checkpoints.path(step)).expect("a whole checkpoint")
}

#[test]
fn a_run_writes_a_model_its_logs_and_a_report() {
    let place = Workplace::new(400);
    let json = place.good(&Workplace::training("run", "--steps 40 --ema 0.9 --json"));
    let outcome: Value = serde_json::from_str(&json).expect("one line of JSON");
    assert_eq!(outcome["step"], 40);
    let files = names(&place.path("run"));
    for name in
        ["checkpoints", "config.json", "corpus.bin", "metrics.jsonl", "model.safetensors", "recipe.toml"]
    {
        assert!(files.iter().any(|file| file == name), "{name} is missing: {files:?}");
    }
    assert!(files.iter().any(|file| file.starts_with("events.out.tfevents.")), "{files:?}");
    let records = read_metrics(&place.path("run/metrics.jsonl")).expect("records");
    let bleu: Vec<u64> = records
        .iter()
        .filter(|record| record.value(Measure::ValidBleu).is_some())
        .map(|record| record.step)
        .collect();
    assert_eq!(bleu, [20, 40]);
    assert_eq!(records.last().and_then(|record| record.ending.as_deref()), Some("all steps are done"));
    let first = records.first().and_then(|record| record.value(Measure::Loss)).expect("a loss");
    let last = records.iter().rev().find_map(|record| record.value(Measure::Loss)).expect("a loss");
    assert!(last < first, "the loss went from {first} to {last}");
    let report = text(&place.read("run/report.html"));
    assert!(report.contains("all steps are done") && report.contains("<svg"));
    assert!(
        report.contains("<th>heads</th>") && !report.contains("<th>cell</th>"),
        "keys that nothing reads"
    );
}

#[test]
fn a_run_killed_at_any_moment_ends_with_the_weights_of_one_that_never_stopped() {
    let place = Workplace::new(600);
    let training = |out: &str, steps: u64| {
        let options = "--ema 0.95 --attention-dropout 0.1 --accumulate 2 --checkpoint-every-time none";
        Workplace::training(out, &format!("{options} --steps {steps}"))
    };
    // Far more steps than time, so that no run ends before it is killed.
    let command = || match place.path("killed/recipe.toml").exists() {
        true => "train --resume killed".to_owned(),
        false => training("killed", 1_000_000),
    };
    let reached = || {
        let folder = place.path("killed/checkpoints");
        if !folder.is_dir() {
            return 0;
        }
        Checkpoints::read_only(&folder).last(1).map_or(0, |steps| steps[0])
    };

    // Random times in every run of the test; a failure prints the seed that reproduces them.
    let seed = std::env::var("HEEDFUL_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("kills drawn with HEEDFUL_KILL_SEED={seed}");
    let draws = Stream::new(seed, 0, 0);
    for attempt in 0..7 {
        let before = reached();
        let mut child = place.start(&command());
        // Every second kill may hit the start; the others come after a checkpoint, so that the run advances.
        while attempt % 2 == 1 && reached() == before {
            assert!(child.status().is_none(), "it ended by itself");
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_secs_f32(0.6 * draws.uniform(attempt)));
        child.kill();
        assert!(!child.ended().success());
    }
    let steps = reached() + 20;
    place.good(&format!("train --resume killed --steps {steps}"));
    place.good(&training("whole", steps));

    let [whole, killed] = ["whole", "killed"].map(|run| last_checkpoint(&place.path(run)));
    assert_eq!(whole.trainer.step, steps);
    assert_eq!(whole.trainer, killed.trainer, "weights, moments or average differ");
    assert_eq!(whole.progress.patience, killed.progress.patience);
    assert!(
        place.read("whole/model.safetensors") == place.read("killed/model.safetensors"),
        "final models differ"
    );
    let judged = |run: &str| -> Vec<u64> {
        let records = read_metrics(&place.path(&format!("{run}/metrics.jsonl"))).expect("records");
        let judged = records.iter().filter(|record| record.value(Measure::ValidLoss).is_some());
        judged.map(|record| record.step).collect()
    };
    assert_eq!(judged("whole"), judged("killed"));
    let looks = |run: &str| text(&place.read(&format!("{run}/attention.jsonl")));
    assert!(!looks("whole").is_empty());
    assert_eq!(looks("whole"), looks("killed"), "attention over time differs");
}

/// The newest checkpoint's step, while the run trains.
fn reached(place: &Workplace) -> u64 {
    Checkpoints::read_only(&place.path("run/checkpoints")).last(1).map_or(0, |steps| steps[0])
}

/// Starts a run and waits for its first checkpoint.
fn started(place: &Workplace, mut command: Command) -> Running {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).running();
    while reached(place) == 0 {
        assert!(child.status().is_none(), "it ended by itself");
        sleep(Duration::from_millis(20));
    }
    child
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn a_signal_saves_and_stops_a_run_which_can_be_resumed() {
    for (signal, status) in [(Signal::Interrupt, 130), (Signal::Terminate, 143), (Signal::Hangup, 129)] {
        let place = Workplace::new(400);
        let mut child = started(&place, place.command(&Workplace::training("run", "--steps 100000")));
        send(&child, signal.number());
        assert_eq!(child.ended().code(), Some(status));
        let stopped = last_checkpoint(&place.path("run")).trainer.step;
        assert!(place.path("run/model.safetensors").exists());
        assert!(text(&place.read("run/report.html")).contains("interrupted"));
        assert!(names(&place.path("run")).iter().all(|name| !name.ends_with(".tmp")));
        place.good(&format!("train --resume run --steps {}", stopped + 3));
        assert_eq!(last_checkpoint(&place.path("run")).trainer.step, stopped + 3);
    }
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn a_run_under_nohup_outlives_its_terminal() {
    let place = Workplace::new(400);
    let training = Workplace::training("run", "--steps 100000");
    let mut command = with_default_signals("sh");
    let script = format!("trap '' HUP; exec {} {training}", env!("CARGO_BIN_EXE_heedful"));
    command.current_dir(place.path("")).args(["-c", &script]);
    let mut child = started(&place, command);
    send(&child, Signal::Hangup.number());
    let then = reached(&place);
    while reached(&place) < then + 21 {
        assert!(child.status().is_none(), "it ended by the signal that it ignores");
        sleep(Duration::from_millis(20));
    }
    send(&child, Signal::Terminate.number());
    assert_eq!(child.ended().code(), Some(143));
}

#[test]
fn a_damaged_checkpoint_is_set_aside_and_the_one_before_is_used() {
    let place = Workplace::new(400);
    place.good(&Workplace::training("run", "--steps 14 --checkpoint-keep-state all"));
    let path = place.path("run/checkpoints/step-00000014.safetensors");
    let bytes = fs::read(&path).expect("the last checkpoint");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("room on the disk");
    let output = place.run("train --resume run --steps 16");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("step-00000014.safetensors is damaged"), "{stderr}");
    assert!(stderr.contains("resumed after step 7"), "{stderr}");
    assert!(
        !stderr.contains("settings that decide"),
        "nothing but the number of steps has changed: {stderr}"
    );
}

#[test]
fn a_short_run_warms_up_in_a_tenth_of_its_steps_and_warns_of_a_longer_warmup() {
    let place = Workplace::new(100);
    let training = |out: &str, more: &str| {
        let text =
            "--src train.zh --tgt train.en --preset tiny --vocabulary-kind character --vocabulary-size 700";
        place.run(&format!("train {text} --batch-tokens 256 --lr 1e-3 --steps 5 --out {out} {more}"))
    };
    let rates = |out: &str| -> Vec<f64> {
        let records = read_metrics(&place.path(&format!("{out}/metrics.jsonl"))).expect("records");
        records.iter().filter_map(|record| record.value(Measure::LearningRate)).collect()
    };
    let output = training("short", "");
    let stderr = text(&output.stderr);
    assert!(output.status.success() && !stderr.contains("warning"), "{stderr}");
    let found = rates("short");
    assert!(found.len() == 5 && found[0] > 0.9e-3 && found[4] > 0.4e-3, "{found:?}");
    // The chosen values are in the run's recipe, and are kept when it is resumed.
    let recipe = || text(&place.read("short/recipe.toml"));
    assert!(recipe().contains("\nwarmup = 1\n") && recipe().contains("\nlog_every = 1\n"), "{}", recipe());
    place.good("train --resume short --steps 40");
    assert!(recipe().contains("\nwarmup = 1\n"), "{}", recipe());

    let output = training("given", "--warmup 2000");
    let stderr = text(&output.stderr);
    let warning = "warning: training.warmup is 2000 and the run has 5 steps: the learning rate only rises, to 0.250 % of its peak";
    assert!(output.status.success() && stderr.contains(warning), "{stderr}");
    assert!(rates("given").iter().all(|&rate| rate < 1e-5));
}

#[test]
fn training_errors_give_a_reason() {
    let place = Workplace::new(50);
    place.write("short.en", b"one line\n");
    place.write("latin.en", &[&b"a line\n".repeat(9)[..], b"caf\xe9\n"].concat());
    place.write("ten.zh", "一\n".repeat(10).as_bytes());
    place.write("empty", b"");
    place.write("blank", b"\n\n \n");
    place.write("typo.toml", b"[training]\ndropuot = 0.1\n");
    let cases = [
        ("train --src train.zh --tgt train.en", "--out"),
        ("train --out run", "--src"),
        ("train --src nowhere.zh --tgt train.en --out run", "nowhere.zh"),
        ("train --src train.zh --tgt short.en --out run", "short.en"),
        ("train --src ten.zh --tgt latin.en --out run", "latin.en, line 10"),
        ("train --src train.zh --tgt train.en train.en --out run", "1"),
        ("train --src empty --tgt empty --out run", ""),
        ("train --src blank --tgt blank --out run", ""),
        ("train typo.toml --out run", "dropout"),
        ("train --src train.zh --tgt train.en --out run --heads 7", "heads"),
        ("train --src train.zh --tgt train.en --out run --set dropout=3", "dropout"),
        (
            "train --src train.zh --tgt train.en --out run --r-drop-alpha 0",
            "training.r_drop_alpha must be more than 0",
        ),
        ("train --src train.zh --tgt train.en --out run --dropout 0 --r-drop-alpha 5", "nothing is dropped"),
        ("train --task mlm --text train.en --out run --r-drop-alpha 5", "the task mlm masks others"),
        ("train --resume nowhere", "nowhere is not the folder of a run"),
        ("train --src train.zh --tgt train.en --out run --vocabulary-size 10", "10"),
    ];
    for (line, named) in cases {
        let error = place.bad(line);
        assert!(error.contains(named), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
        assert!(!place.path("run/model.safetensors").exists(), "{line}");
    }
}

#[test]
fn a_folder_with_a_run_is_not_overwritten() {
    let place = Workplace::new(100);
    place.good(&Workplace::training("run", "--steps 3"));
    let before = place.read("run/model.safetensors");
    let error = place.bad(&Workplace::training("run", "--steps 3"));
    assert!(error.contains("--resume run"), "{error}");
    assert_eq!(place.read("run/model.safetensors"), before);
}

#[test]
fn a_far_too_high_learning_rate_is_reported_as_divergence_and_the_last_checkpoint_is_kept() {
    let place = Workplace::new(400);
    let error = place.bad(&Workplace::training("run", "--steps 400 --lr 1e30 --compute f32"));
    assert!(error.contains("diverged at step"), "{error}");
    assert!(text(&place.read("run/report.html")).contains("diverged"));
}
