//! `--shard` and `heedful join` as processes: whatever is cut, killed and started again, the parts are the whole.

use std::fs;
use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, names, send, text, until};

/// A workplace with a translator in `run`, a classifier in `news`, a language model in `writer` and texts with blank and repeated
/// lines, without a line end behind the last one. Every test shares it.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(600);
        place.good(&Workplace::training("run", "--steps 30 --peak 3e-3"));
        for (side, gap) in [("zh", 11), ("en", 11)] {
            let mut lines = place.lines(&format!("valid.{side}"));
            lines.extend(lines.clone());
            for index in (gap..lines.len()).step_by(gap) {
                lines[index].clear();
            }
            place.write(&format!("all.{side}"), lines.join("\n").as_bytes());
        }
        let labelled = |count: usize| -> String {
            let line = |i: usize| format!("{}\tthe film was {} in {i}\n", ["good", "bad"][i % 2], ["fine", "dull"][i % 2]);
            (0..count).map(line).collect()
        };
        place.write("train.tsv", labelled(200).as_bytes());
        place.write("valid.tsv", labelled(40).as_bytes());
        place.good(
            "train --task classify --label-text train.tsv --valid-label-text valid.tsv --preset tiny --vocabulary-size 300 \
             --batch-tokens 256 --steps 20 --warmup 5 --out news",
        );
        place.good(
            "train --task lm --block none --text train.en --valid-text valid.en --preset tiny --vocabulary-size 400 \
             --batch-tokens 512 --steps 10 --warmup 5 --out writer",
        );
        place
    })
}

/// The command in shards, in a folder, joined.
fn joined(command: &str, folder: &str, count: u32, extension: &str) -> String {
    let place = place();
    for number in (1..=count).rev() {
        place.good(&format!("{command} --shard {number}/{count} -o {folder}"));
    }
    let mut files = names(&place.path(folder));
    assert_eq!(files.len(), 2 * count as usize, "{files:?}");
    files.retain(|name| name.ends_with(extension));
    let together: String = files.iter().map(|name| text(&place.read(&format!("{folder}/{name}")))).collect();
    assert_eq!(place.good(&format!("join {folder}")), together, "{command}");
    together
}

#[test]
fn shards_are_together_what_one_process_writes_to_the_byte() {
    place().write("prefix.en", "the\n\n".repeat(40).trim_end_matches('\n').as_bytes());
    let prefixes = text(&place().read("prefix.en")) + "\n";
    place().write("prefix.en", prefixes.as_bytes());
    place().write("texts.txt", &place().read("all.en"));
    for (index, (command, extension)) in [
        ("translate run all.zh", ".txt"),
        ("translate run all.zh --scores --align", ".txt"),
        ("translate run all.zh --n-best 3", ".txt"),
        ("translate run all.zh --json", ".jsonl"),
        ("translate run all.zh --sample --seed 7 --json", ".jsonl"),
        ("score run --src all.zh --tgt all.en", ".txt"),
        ("score run --src all.zh --tgt all.en --json", ".jsonl"),
        ("score news --label-text valid.tsv --json", ".jsonl"),
        ("score writer --text all.en", ".txt"),
        ("classify news texts.txt", ".txt"),
        ("classify news texts.txt --json", ".jsonl"),
    ]
    .into_iter()
    .enumerate()
    {
        let whole = place().good(command);
        let together = joined(command, &format!("shards{index}"), 5, extension);
        assert!(together == whole, "{command}:\n{together}\n{whole}");
    }
    // More shards than lines: some are empty.
    let whole = place().good("classify news valid.tsv");
    assert_eq!(joined("classify news valid.tsv", "many", 50, ".txt"), whole);
}

#[test]
fn a_prefix_for_each_line_is_cut_with_the_text() {
    let place = place();
    let starts: String = (0..80).map(|line| ["a\n", "the\n", "\n"][line % 3]).collect();
    place.write("starts.en", starts.as_bytes());
    let command = "translate run all.zh --prefix starts.en";
    assert_eq!(joined(command, "prefixed", 3, ".txt"), place.good(command));
    place.write("short.en", b"a\n");
    let message = place.bad("translate run all.zh --prefix short.en --shard 2/3 -o short");
    assert!(message.contains("short.en has fewer lines than all.zh"), "{message}");
}

#[test]
fn labelled_texts_give_lines_and_no_report_about_a_part() {
    let place = place();
    let output = place.run("classify news --label-text valid.tsv --shard 1/2 -o labelled");
    assert!(output.status.success() && output.stdout.is_empty(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("shard 1 of 2: "), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("labels are right"), "{}", text(&output.stderr));
    place.good("classify news --label-text valid.tsv --shard 2/2 -o labelled");
    place.good("classify news --label-text valid.tsv -o labelled.whole");
    assert_eq!(place.good("join labelled --quiet").as_bytes(), place.read("labelled.whole"));
}

#[test]
fn a_finished_shard_is_skipped_and_another_one_is_not_overwritten() {
    let place = place();
    let shard = |more: &str| format!("translate run all.zh --shard 2/4 -o kept {more}");
    place.good(&shard(""));
    let (results, manifest) = (place.read("kept/00002-of-00004.txt"), place.read("kept/00002-of-00004.json"));
    let again = place.run(&shard(""));
    assert!(again.status.success());
    assert_eq!(text(&again.stderr).trim(), "heedful: shard 2 of 4 is finished: kept/00002-of-00004.txt");
    assert!(place.run(&shard("--quiet")).stderr.is_empty());
    // What does not decide the results may differ.
    place.good(&shard("--threads 1 --batch-tokens 99"));
    place.write("elsewhere.zh", &place.read("all.zh"));
    place.good("translate run elsewhere.zh --shard 2/4 -o kept");
    for (command, expected) in [
        (shard("--beam 2"), "beam was 4 and is 2"),
        (shard("--json"), "json was false and is true"),
        ("translate run all.en --shard 2/4 -o kept".to_owned(), "bytes"),
        ("translate run all.zh --shard 2/5 -o kept".to_owned(), "in 4 parts"),
        ("translate run all.zh --shard 1/4 -o kept --beam 2".to_owned(), "another shard of this folder"),
        ("score news --label-text valid.tsv --shard 2/4 -o kept".to_owned(), "by heedful translate"),
    ] {
        let message = place.bad(&command);
        assert!(
            message.contains(expected) && message.contains("name another folder"),
            "{command}: {message}"
        );
    }
    // One character of the input is another one.
    let mut bytes = place.read("all.zh");
    let middle = bytes.len() / 3;
    let digit = bytes[middle..].iter().position(|&byte| byte == b'\n').expect("a line end") + middle;
    bytes.remove(digit);
    bytes.push(b'\n');
    place.write("other.zh", &bytes);
    let message = place.bad("translate run other.zh --shard 2/4 -o kept");
    assert!(message.contains("other.zh had other lines in this shard"), "{message}");
    assert_eq!(place.read("kept/00002-of-00004.txt"), results);
    assert_eq!(place.read("kept/00002-of-00004.json"), manifest);

    place.good(&shard("--beam 2 --overwrite"));
    assert_ne!(place.read("kept/00002-of-00004.json"), manifest);
    place.good(&shard("--overwrite"));
    assert_eq!(place.read("kept/00002-of-00004.txt"), results);
    assert_eq!(place.read("kept/00002-of-00004.json"), manifest);
    // Damage is found; what was removed is computed again.
    place.write("kept/00002-of-00004.txt", b"other\n");
    let message = place.bad(&shard(""));
    assert!(message.contains("changed or damaged") && message.contains("--overwrite"), "{message}");
    fs::remove_file(place.path("kept/00002-of-00004.txt")).expect("it is ours");
    place.good(&shard(""));
    assert_eq!(place.read("kept/00002-of-00004.txt"), results);
    place.write("kept/00002-of-00004.json", b"{");
    assert!(place.bad(&shard("")).contains("is not the manifest of a shard"));
}

#[test]
fn the_manifest_says_what_was_read_by_which_model_with_which_options() {
    let place = place();
    place.good("score run --src all.zh --tgt all.en --shard 2/3 -o told");
    let manifest: serde_json::Value =
        serde_json::from_slice(&place.read("told/00002-of-00003.json")).expect("JSON");
    assert_eq!(
        (&manifest["command"], &manifest["shard"], &manifest["shards"]),
        (&"score".into(), &2.into(), &3.into())
    );
    let inputs = manifest["inputs"].as_array().expect("two files");
    let (source, target) = (&inputs[0], &inputs[1]);
    assert_eq!((&source["file"], &target["file"]), (&"all.zh".into(), &"all.en".into()));
    assert_eq!(source["size"], place.read("all.zh").len());
    assert_eq!(source["lines"], target["lines"]);
    let results = text(&place.read("told/00002-of-00003.txt"));
    assert_eq!(source["lines"], results.lines().count());
    let weights = fs::read(place.path("run/model.safetensors")).expect("a model");
    let model = manifest["models"][0].as_str().expect("a checksum");
    assert!(text(&weights[..weights.len().min(4096)]).contains(model), "{model}");
    assert_eq!(manifest["options"]["compute"], "bf16");
    assert!(manifest["results"].as_str().expect("a hash").starts_with(&format!("{} bytes", results.len())));
}

#[test]
fn join_refuses_what_is_not_whole() {
    let place = place();
    let shard = |number: u32, more: &str| {
        place.good(&format!("translate run all.zh --shard {number}/3 -o pieces {more}"));
    };
    assert!(place.bad("join run").contains("no finished shard"));
    shard(1, "");
    shard(3, "");
    let message = place.bad("join pieces -o pieces.en");
    assert!(
        message.contains("1 of 3 shards are not finished (2)") && message.contains("--shard 2/3"),
        "{message}"
    );
    shard(2, "--beam 2 --overwrite");
    assert!(
        place
            .bad("join pieces -o pieces.en")
            .contains("does not belong to the first shard: beam was 4 and is 2")
    );
    shard(2, "--overwrite");
    let whole = place.read("pieces/00002-of-00003.txt");
    place.write("pieces/00002-of-00003.txt", b"x");
    assert!(place.bad("join pieces -o pieces.en").contains("changed, damaged or removed"));
    assert!(!place.path("pieces.en").exists());
    place.write("pieces/00002-of-00003.txt", &whole);
    place.good("join pieces -o pieces.en");
    assert_eq!(place.read("pieces.en"), place.good("translate run all.zh").as_bytes());
}

#[test]
fn what_cannot_be_cut_is_refused_with_a_remedy() {
    let place = place();
    place.write("packed.gz", &[0x1F, 0x8B, 8, 0, 0]);
    place.write("damaged.zh", b"a\nb\nc\n\xFF\n");
    for (command, expected) in [
        ("translate run packed.gz --shard 1/2 -o no", "packed.gz is compressed (gzip)"),
        ("translate run --shard 1/2 -o no", "name a file of text"),
        ("translate run --text a --shard 1/2 -o no", "name a file of text"),
        ("translate run nowhere.zh --shard 1/2 -o no", "nowhere.zh"),
        ("translate run all.zh --shard 1/2", "--output <FILE>"),
        ("translate run all.zh --shard 3/2 -o no", "3/16"),
        ("translate run all.zh --overwrite -o no", "--shard"),
        ("translate run all.zh --shard 1/2 -o run", "is the same folder as run"),
        ("translate run all.zh --shard 1/2 -o news", "already holds a model"),
        ("translate run all.zh --shard 1/2 -o all.en", "it is a file"),
        ("translate run all.zh --shard 1/2 -o no --attention a.json", "--attention is about all lines"),
        (
            "classify news --label-text valid.tsv --shard 1/2 -o no --report a.html",
            "--report is about all lines",
        ),
        ("score run --src all.zh --tgt short.tgt --shard 1/2 -o no", "short.tgt"),
        ("translate run all.zh --shard auto -o no", "SLURM_ARRAY_TASK_ID"),
        // The line is that of the file.
        ("translate run damaged.zh --shard 2/2 -o bad", "damaged.zh, line 4"),
    ] {
        let message = place.bad(command);
        assert!(message.contains(expected), "{command}: {message}");
    }
    assert!(names(&place.path("bad")).is_empty());
    // A line of running text is predicted from those before it.
    place.good(
        "train --task lm --text train.en --valid-text valid.en --preset tiny --vocabulary-size 400 \
         --batch-tokens 512 --steps 2 --warmup 1 --out running",
    );
    assert!(
        place.bad("score running --text all.en --shard 1/2 -o no").contains("cannot be computed in shards")
    );
}

#[test]
fn the_environment_says_which_shard_it_is() {
    let place = place();
    let run = |arguments: &str, variables: &[(&str, &str)]| {
        let mut command = place.command(&format!("translate run all.zh -o auto {arguments}"));
        let output = command.envs(variables.iter().copied()).finish();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let array = [("SLURM_ARRAY_TASK_ID", "0"), ("SLURM_ARRAY_TASK_MIN", "0"), ("SLURM_ARRAY_TASK_MAX", "2")];
    run("--shard auto", &array);
    run("--shard auto/3", &[("JOB_COMPLETION_INDEX", "1")]);
    run("--shard auto", &[("PARALLEL_SEQ", "3"), ("HEEDFUL_SHARDS", "3")]);
    assert_eq!(place.good("join auto"), place.good("translate run all.zh"));
}

/// Some thousand lines, which take a while.
fn long_text() -> &'static str {
    static WRITTEN: OnceLock<()> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let lines: Vec<String> = (0..60)
            .flat_map(|copy| {
                let number = move |line: String| format!("{line}{copy}\n");
                place().lines("train.zh").into_iter().map(number)
            })
            .collect();
        place().write("long.zh", lines.concat().as_bytes());
    });
    "long.zh"
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn a_shard_that_is_killed_leaves_nothing_that_counts_and_is_done_again() {
    let place = place();
    let shard = format!("translate run {} --shard 1/40 -o killed --beam 1", long_text());
    // A kill cannot be handled: what is left has no name that counts, and is removed by the next one. SIGTERM leaves nothing.
    for signal in [9, 15] {
        let mut child = place.start(&format!("translate run {} --shard 1/2 -o killed{signal}", long_text()));
        let folder = place.path(&format!("killed{signal}"));
        let is_writing = || {
            folder.is_dir()
                && names(&folder).iter().any(|name| name.contains(".txt.") && !name.contains("claim"))
        };
        until("an unfinished file", is_writing);
        send(&child, signal);
        child.ended();
        let left = names(&folder);
        assert!(left.iter().all(|name| name.ends_with(".heedful.tmp")), "{left:?}");
        assert!(signal == 9 || left.is_empty(), "{left:?}");
    }
    place.good(&shard);
    fs::rename(place.path("killed9"), place.path("killed/rest")).expect("one disk");
    for name in names(&place.path("killed/rest")) {
        fs::rename(place.path(&format!("killed/rest/{name}")), place.path(&format!("killed/{name}")))
            .expect("one disk");
    }
    fs::remove_dir(place.path("killed/rest")).expect("it is empty");
    place.good(&format!("translate run {} --shard 2/40 -o killed --beam 1", long_text()));
    let names = names(&place.path("killed"));
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn one_process_at_a_time_works_on_a_shard() {
    let place = place();
    let shard = format!("translate run {} --shard 1/2 -o claimed", long_text());
    let mut child = place.start(&shard);
    until("the claim", || place.path("claimed/00001-of-00002.txt.claim.heedful.tmp").exists());
    // The first process may hold no lock yet, but only one of both can have it.
    until("an unfinished file", || {
        names(&place.path("claimed")).iter().any(|name| name.contains(".txt.") && !name.contains("claim"))
    });
    let message = place.bad(&shard);
    assert!(message.contains("another process is working on shard 1 of 2"), "{message}");
    send(&child, 15);
    child.ended();
    assert!(names(&place.path("claimed")).is_empty());
}
