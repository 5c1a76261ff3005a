//! User input cannot exhaust memory or time: every command with its exit status and message.

use std::process::Stdio;
use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, text};

/// A workplace with a hardly trained translator, classifier, language model and masked language model, and
/// texts that are too long for them.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(100);
        let common = "--preset tiny --d-model 16 --heads 2 --d-ff 16 --vocabulary-kind character --vocabulary-size 700 \
                      --batch-tokens 512 --steps 2";
        let labels: String = (0..40).map(|i| format!("{}\ttext number {i}\n", ["a", "b"][i % 2])).collect();
        place.write("labels.tsv", labels.as_bytes());
        place.good(&format!("train --src train.zh --tgt train.en {common} --out run"));
        place.good(&format!("train --task classify --label-text labels.tsv {common} --out labels"));
        place.good(&format!("train --task lm --text train.en --block none {common} --out writer"));
        place.good(&format!("train --task mlm --text train.en --block none {common} --out reader"));
        place.good(&format!(
            "train --src train.zh --tgt train.en --positions learned --max-positions 40 {common} --max-tokens 30 --out short"
        ));
        let long = "一辆 汽车 。 ".repeat(500);
        place.write("short.txt", "一辆汽车\n\n两本书\n".as_bytes());
        place.write("short.en", "a car\n\ntwo books\n".as_bytes());
        place.write("blank.en", "a car\nnot blank\ntwo books\n".as_bytes());
        place.write("words.txt", "word ".repeat(20_000).as_bytes());
        place.write("long.txt", format!("一辆汽车\n{long}\n两本书\n").as_bytes());
        place.write("long.en", format!("a car\n{}\ntwo books\n", "a dog ".repeat(500)).as_bytes());
        place.write("wide.txt", "a ".repeat(100_000).as_bytes());
        // A file without line ends, larger than the maximum kept in memory.
        place.write("huge.txt", "x".repeat((16 << 20) + 1).as_bytes());
        place
    })
}

/// A command that fails, or succeeds with a warning; the message is a part of standard error.
struct Case {
    command: &'static str,
    succeeds: bool,
    message: &'static str,
}

const fn refused(command: &'static str, message: &'static str) -> Case {
    Case { command, succeeds: false, message }
}

const fn done(command: &'static str, message: &'static str) -> Case {
    Case { command, succeeds: true, message }
}

fn check(cases: &[Case]) {
    for Case { command, succeeds, message } in cases {
        let output = place().command(command).stdin(Stdio::null()).finish();
        let printed = text(&output.stderr);
        let status = output.status.code();
        assert_eq!(status == Some(0), *succeeds, "{command}: {status:?}, {printed}");
        // 1, or 2 for what clap refuses; never the 101 of a panic or a signal.
        assert!(*succeeds || matches!(status, Some(1 | 2)), "{command}: {status:?}, {printed}");
        assert!(printed.contains(message), "{command}: {printed}");
        assert!(!printed.contains("panicked"), "{command}: {printed}");
    }
}

#[test]
fn long_texts_are_refused_cut_or_split_and_reported() {
    check(&[
        refused(
            "translate run long.txt --long error",
            "long.txt, line 2: the text has more than 3072 bytes, too many for the 1024 tokens that the model reads at a time; \
             make it shorter, or use --long split, --long cut or --max-tokens N",
        ),
        refused("translate run huge.txt --long error", "huge.txt, line 1: the text has more than"),
        refused(
            "translate run huge.txt",
            "huge.txt, line 1 has more than 16777216 bytes: break it into several lines",
        ),
        refused(
            "translate short long.txt --long error",
            "long.txt, line 2: the text has more than 120 bytes, too many for the 40 tokens",
        ),
        done(
            "translate run huge.txt --long cut --beam 1 --max-length 2",
            "heedful: huge.txt, line 1: more than 1024 tokens, so it is cut",
        ),
        done(
            "translate run long.txt --max-tokens 500 --beam 1 --max-length 2",
            "heedful: long.txt, line 2: more than 500 tokens, so it is split",
        ),
        refused("translate run short.txt --max-tokens 5", "it must be from 16 to 131072"),
        refused("translate run short.txt --max-tokens 1000000000", "it must be from 16 to 131072"),
        refused("translate short short.txt --max-tokens 41", "the model has learned 40 positions"),
        refused(
            "translate run short.txt --attention a.json --long split",
            "--attention writes one set of weights per line, but --long split",
        ),
        refused(
            "translate run long.txt --attention a.json",
            "long.txt, line 2: the text has more than 3072 bytes",
        ),
        refused("classify labels long.txt --long error", "long.txt, line 2: the text has"),
        refused("classify labels huge.txt --long error", "huge.txt, line 1: the text has more than"),
        done("classify labels huge.txt", "huge.txt, line 1: more than 1024 tokens, so it is cut"),
        done(
            "classify labels long.txt --long split",
            "long.txt, line 2: more than 1024 tokens, so it is split",
        ),
        refused(
            "score run --src long.txt --tgt short.en",
            "long.txt, line 2: the text has more than 3072 bytes",
        ),
        refused("score run --src short.txt --tgt long.en", "long.en, line 2: the text has"),
        refused("score run --src huge.txt --tgt short.en", "huge.txt, line 1: the text has more than"),
        done(
            "score run --src long.txt --tgt short.en --long cut --max-tokens 20",
            "long.txt, line 2: more than 20 tokens, so it is cut",
        ),
        refused("explain run long.txt", "text 2: the text has more than 3072 bytes"),
        refused("explain run huge.txt", "huge.txt, line 1 has more than 16777216 bytes"),
        refused(
            "explain heads run --src long.txt --tgt short.en",
            "line 2: the text has more than 3072 bytes",
        ),
        refused("explain heads run --src short.txt --tgt long.en", "the target of line 2: the text has"),
        refused(
            "explain prune run --src long.txt --ref short.en",
            "line 2: the text has more than 3072 bytes",
        ),
        refused(
            "evaluate words.txt --ref words.txt --metric ter",
            "line 1 has 20000 words, and its reference 20000",
        ),
        refused("evaluate huge.txt --ref huge.txt", "huge.txt, line 1 has more than 16777216 bytes"),
        refused("serve run --max-text-tokens 3", "it must be from 16 to 131072"),
    ]);
}

#[test]
fn models_translate_and_train_on_sequences_of_thousands_of_tokens() {
    let common = "--preset tiny --d-model 16 --heads 2 --d-ff 16 --vocabulary-kind character --vocabulary-size 700 --steps 1 \
                  --batch-tokens 8192";
    place().good(&format!("train --task lm --text words.txt --block 8192 {common} --out long-writer"));
    let report = text(&place().read("long-writer/recipe.toml"));
    assert!(report.contains("block = 8192"), "{report}");
    check(&[
        done("classify labels wide.txt", "wide.txt, line 1: more than 1024 tokens, so it is cut"),
        done(
            "classify labels wide.txt --long split",
            "wide.txt, line 1: more than 1024 tokens, so it is split",
        ),
        done(
            "classify labels wide.txt --max-tokens 8192",
            "wide.txt, line 1: more than 8192 tokens, so it is cut",
        ),
        refused("classify labels wide.txt --long error --max-tokens 8192", "too many for the 8192 tokens"),
        done(
            "translate run wide.txt --long cut --max-tokens 8192 --beam 1 --max-length 2",
            "wide.txt, line 1: more than 8192 tokens, so it is cut",
        ),
        done("generate long-writer --prompt a --tokens 2 --max-tokens 8192", ""),
    ]);
}

#[test]
fn long_prompts_and_texts_of_the_command_line_are_refused_or_cut() {
    let long = "a dog ".repeat(400);
    let run = |arguments: &str, last: &str| {
        let output = place().command(arguments).arg(last).finish();
        (output.status.code(), text(&output.stderr))
    };
    let prompt = "--prompt: the text has more than 1024 bytes, too many for the 1024 tokens that the model reads at a time; make \
                  it shorter, or use --long cut or --max-tokens N";
    for (arguments, status, message) in [
        ("generate writer --tokens 2 --prompt", 1, prompt),
        (
            "generate writer --tokens 2 --long cut --prompt",
            0,
            "--prompt: more than 1024 tokens, so it is cut",
        ),
        (
            "translate run --long error --text",
            1,
            "--text, line 1: the text has 2400 tokens, and the model reads 1024 at a time",
        ),
        ("classify labels --long error --text", 1, "--text, line 1: the text has more than 1024 bytes"),
        ("explain run", 1, "text 1: the text has"),
        ("explain run 一辆汽车 --target", 1, "the target of text 1: the text has"),
    ] {
        let (found, printed) = run(arguments, &long);
        assert_eq!(found, Some(status), "{arguments}: {printed}");
        assert!(printed.contains(message), "{arguments}: {printed}");
    }
    let (status, printed) = run("demo --quick --out demo --text", &long);
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("--text has 2400 characters: a phrase has at most 500"), "{printed}");
    let masked = format!("a <mask> {long}");
    let (status, printed) = run("fill reader", &masked);
    assert_eq!(status, Some(1));
    assert!(
        printed.contains("text 1: the text has more than 1024 bytes, too many for the 1024 tokens"),
        "{printed}"
    );
    let (status, printed) = run("fill reader --long cut", &masked);
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("text 1: more than 1024 tokens, so it is cut"), "{printed}");
}

#[test]
fn impossible_numbers_are_refused_with_a_message() {
    check(&[
        refused("translate run short.txt --beam 0", "the beam is 0: set it to at least 1"),
        refused("translate run short.txt --beam 100000", "the beam is 100000: it may be at most 1000"),
        refused(
            "translate run short.txt --n-best 100000 --sample",
            "the number of outputs is 100000: it may be at most 1000",
        ),
        refused("translate run short.txt --n-best 9", "the beam size 4 is too small for 9 outputs"),
        refused("translate run short.txt --batch-tokens 0", "decoded together is 0"),
        refused("translate run short.txt --max-length 0", "the maximum length is 0"),
        refused(
            "translate run short.txt --max-length 2 --min-length 3",
            "the minimum length 3 is above the maximum length 2",
        ),
        refused(
            "translate run short.txt --max-length 1000000000000",
            "4 hypotheses of up to 1000000000000 tokens are more than",
        ),
        refused("translate run short.txt --threads 257", "heedful computes with 256 threads at most"),
        refused("translate run short.txt --threads 0", "no thread would compute: use 1 or more"),
        refused("translate run short.txt --threads many", "a whole number from 1 to 256, or auto"),
        refused("generate writer --tokens 0", "the maximum length is 0"),
        refused(
            "generate writer --tokens 1000000000000",
            "1 hypotheses of up to 1000000000000 tokens are more than",
        ),
        refused("generate writer --n 100000", "the number of outputs is 100000"),
        refused("generate writer --beam 100000", "the beam is 100000"),
        refused("fill reader <mask> --top 0", "the number of predictions is 0"),
        done("fill reader <mask> --top 18446744073709551615 --json", ""),
        refused("explain run 一辆汽车 --beam 100000", "the beam is 100000"),
        refused("explain run 一辆汽车 --n-best 9 -o page.html", "the beam size 4 is too small"),
        refused("explain prune run --src short.txt --ref short.en --beam 0", "the beam is 0"),
        refused("serve run --beam 100000 --max-beam 100000", "the beam is 100000"),
        refused("serve run --batch-tokens 0", "decoded together is 0"),
        refused("serve run --max-beam 0", "requests may have at most 0"),
        refused("serve run --connections 18446744073709551615", "too many: set at most 1048576"),
        refused("serve run --timeout 18446744073709551615", "a time limit is too long"),
        refused("evaluate short.en --ref short.en --confidence --resamples 4000000000", "not in 1..=1000000"),
        refused(
            "compare layers --lengths 100000000000",
            "--lengths has 100000000000: it may be at most 131072",
        ),
        refused("compare layers --seconds inf", "--seconds is inf"),
    ]);
}

#[test]
fn models_and_batches_that_exceed_memory_are_refused_before_anything_is_written() {
    let training =
        "train --src train.zh --tgt train.en --valid-src train.zh --valid-tgt train.en --out refused";
    for (flags, message) in [
        ("--d-model 1000000000", "model.d_model is 1000000000: it may be at most 1000000"),
        ("--d-model 9223372036854775807", "it may be at most 1000000"),
        ("--d-model 1000000 --heads 1", "parameters takes at least"),
        ("--encoder-layers 100000000", "model.encoder_layers is 100000000: it may be at most 1000"),
        ("--vocabulary-size 1000000000000", "vocabulary.size is 1000000000000: it may be at most 10000000"),
        ("--batch-tokens 1000000000000", "training.batch_tokens is 1000000000000"),
        (
            "--batch-tokens 100000000 --d-model 65536 --d-ff 64 --heads 1 --encoder-layers 10",
            "takes at least",
        ),
        ("--search-beam 100000", "search.beam is 100000: it may be at most 1000"),
        ("--search-beyond-source 1000000000000", "search.beyond_source is 1000000000000"),
        ("--positions learned --max-positions 1000000000000", "model.max_positions is 1000000000000"),
        ("--vocabulary-coverage 2", "vocabulary.coverage is 2: it is a share, at most 1"),
        ("--threads 257", "heedful computes with 256 threads at most"),
    ] {
        let printed = place().bad(&format!("{training} {flags}"));
        assert!(printed.contains(message) && !printed.contains("panicked"), "{flags}: {printed}");
        assert!(!place().path("refused").exists(), "{flags}");
    }
}

#[test]
fn a_split_line_is_one_line_and_a_blank_line_keeps_its_columns() {
    let place = place();
    let flags = "--beam 2 --max-length 3 --max-tokens 100";
    let lines = |more: &str| -> Vec<String> {
        place.good(&format!("translate run long.txt {flags} {more}")).lines().map(str::to_owned).collect()
    };
    let plain = lines("");
    assert_eq!(plain.len(), 3);
    assert!(plain[1].len() > plain[0].len(), "{plain:?}");
    for line in lines("--scores --align") {
        let columns: Vec<&str> = line.split(" ||| ").collect();
        assert_eq!(columns.len(), 3, "{line}");
        assert!(columns[1].parse::<f64>().is_ok_and(|score| score < 0.0), "{line}");
    }
    assert_eq!(lines("--n-best 2 --json").len(), 3);

    let scored = place.good("translate run short.txt --scores --align --beam 1 --max-length 3");
    assert_eq!(scored.lines().nth(1), Some(" ||| 0.000000 ||| "));
    let best = place.good("translate run short.txt --n-best 2 --max-length 3");
    assert_eq!(best.lines().nth(2), Some("1 |||  ||| 0.000000"));

    let scores = place.good("score run --src short.txt --tgt short.en");
    let scores: Vec<&str> = scores.lines().collect();
    assert_eq!((scores.len(), scores[1]), (3, "0.000000"));
    let scores = place.good("score run --src short.txt --tgt blank.en");
    assert_eq!(scores.lines().nth(1), Some("-inf"));
    let json = place.good("score run --src short.txt --tgt blank.en --json");
    assert_eq!(json.lines().nth(1), Some(r#"{"log_probability":null,"pieces":[],"tokens":[]}"#));
}
