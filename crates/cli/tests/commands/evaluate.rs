//! `heedful evaluate` as a process: its output and errors.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::{Bounded, program};

const HYPOTHESES: &str = "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n";
const REFERENCES: &str = "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n";
const OTHERS: &str = "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n";
const BLEU: &str = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0";

/// A separate folder for each test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evaluate-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        let folder = Folder(path);
        for (name, text) in [("hyp", HYPOTHESES), ("ref", REFERENCES), ("other", OTHERS)] {
            folder.write(name, text.as_bytes());
        }
        folder
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).expect("a file for the test");
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = program();
        command.current_dir(&self.0).arg("evaluate").args(arguments.split_whitespace());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(arguments).finish()
    }

    fn stdout(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.stdout(arguments)).expect("JSON")
    }

    fn error(&self, arguments: &str, status: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{arguments}");
        text(&output.stderr)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A remaining folder does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn the_text_output_equals_sacrebleu_s() {
    let folder = Folder::new();
    let detail = "45.07 70.6/42.9/36.4/37.5 (BP = 1.000 ratio = 1.000 hyp_len = 17 ref_len = 17)";
    assert_eq!(folder.stdout("hyp --ref ref"), format!("BLEU|{BLEU} = {detail}\n"));
    let two = folder.stdout("hyp --ref ref --ref other --width 4");
    assert_eq!(
        two,
        "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 48.5308 82.4/50.0/45.5/37.5 (BP = 0.943 \
         ratio = 0.944 hyp_len = 17 ref_len = 18)\n"
    );
}

#[test]
fn every_metric_has_its_key_in_json() {
    let json = Folder::new().json("hyp --ref ref --metric bleu,chrf,chrf++,ter,bleu-teaching --json");
    let expected = [
        ("bleu", "45.07", BLEU),
        ("chrf", "50.04", "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"),
        ("chrf++", "51.73", "nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0"),
        ("ter", "50.0", "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0"),
    ];
    for (key, score, signature) in expected {
        assert_eq!(json[key]["score"].to_string(), score, "{key}");
        assert_eq!(json[key]["signature"], signature, "{key}");
    }
    let teaching = json["bleu-teaching"]["signature"].as_str().expect("a signature");
    assert!(teaching.starts_with("nrefs:1|case:mixed|tok:13a|order:4|version:heedful-"), "{teaching}");
}

#[test]
fn settings_reach_the_metrics_and_the_signatures() {
    let folder = Folder::new();
    let signature = |arguments: &str, key: &str| {
        let json = folder.json(&format!("hyp --ref ref --json {arguments}"));
        json[key]["signature"].as_str().expect("a signature").to_owned()
    };
    assert_eq!(
        signature("--tokenize intl --smooth floor --smooth-value 0.05 --lowercase", "bleu"),
        "nrefs:1|case:lc|eff:no|tok:intl|smooth:floor[0.05]|version:2.6.0"
    );
    assert_eq!(
        signature("--tokenize char --smooth add-k", "bleu"),
        "nrefs:1|case:mixed|eff:no|tok:char|smooth:add-k[1.00]|version:2.6.0"
    );
    assert_eq!(
        signature("--metric chrf --chrf-char-order 4 --chrf-whitespace --chrf-eps-smoothing", "chrf"),
        "nrefs:1|case:mixed|eff:no|nc:4|nw:0|space:yes|version:2.6.0"
    );
    assert_eq!(
        signature(
            "--metric ter --ter-normalized --ter-no-punct --ter-asian-support --ter-case-sensitive",
            "ter"
        ),
        "nrefs:1|case:mixed|tok:tercom|norm:yes|punct:no|asian:yes|version:2.6.0"
    );
    assert!(folder.stdout("hyp --ref ref --metric chrf --chrf-beta 3").starts_with("chrF3|"));
}

#[test]
fn sentences_are_scored_one_per_line() {
    let folder = Folder::new();
    let lines = folder.stdout("hyp --ref ref --sentence-level --metric ter,bleu");
    assert_eq!(lines, "100.00\t0.00\n14.79\t75.00\n15.62\t80.00\n");
    let lines = folder.stdout("hyp --ref ref --sentence-level --json");
    let scores: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(scores.len(), 3);
    assert_eq!(scores[0]["bleu"]["score"], 100.0);
    assert_eq!(scores[0]["bleu"]["signature"], BLEU.replace("eff:no", "eff:yes"));
}

#[test]
fn confidence_and_comparison_report_their_resampling() {
    let folder = Folder::new();
    let json = folder.json("hyp --ref ref --confidence --compare other --resamples 100 --trials 50 --json");
    let bleu = &json["bleu"];
    let signature = BLEU.replace("nrefs:1", "nrefs:1|bs:100|ar:50|seed:12345");
    assert_eq!(bleu["signature"], signature);
    let (low, high) = (bleu["confidence"]["low"].as_f64(), bleu["confidence"]["high"].as_f64());
    assert!(low < high);
    let comparison = &bleu["comparison"];
    assert_eq!(comparison["other"], "other");
    let difference =
        comparison["score"].as_f64().expect("a score") - bleu["score"].as_f64().expect("a score");
    assert!((comparison["difference"].as_f64().expect("a difference") - difference).abs() < 0.011);
    for p in ["paired_bootstrap_p", "approximate_randomisation_p"] {
        let p = comparison[p].as_f64().expect("a probability");
        assert!(p > 0.0 && p <= 1.0);
    }
    let again = folder.json("hyp --ref ref --confidence --compare other --resamples 100 --trials 50 --json");
    assert_eq!(json, again);
    let line = folder.stdout("hyp --ref ref --confidence");
    assert!(line.contains("|bs:1000|seed:12345|") && line.contains(" (μ = "), "{line}");
    let lines = folder.stdout("hyp --ref ref --compare other --metric ter");
    assert!(lines.contains("other: ") && lines.contains("approximate randomisation"), "{lines}");
}

#[test]
fn a_dash_is_standard_input() {
    let folder = Folder::new();
    for arguments in ["- --ref ref --json", "hyp --ref - --json"] {
        let piped = if arguments.starts_with('-') { HYPOTHESES } else { REFERENCES };
        let mut child = folder.command(arguments).stdin(Stdio::piped()).running();
        child.stdin.take().expect("a pipe").write_all(piped.as_bytes()).expect("the program reads");
        let output = child.output();
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json, folder.json("hyp --ref ref --json"));
    }
    let message = folder.error("- --ref -", 1);
    assert!(message.contains("standard input (`-`) can be read only once"), "{message}");
}

#[test]
fn mismatched_files_are_refused_with_file_and_line() {
    let folder = Folder::new();
    folder.write("short", b"One line.\nTwo lines.\n");
    folder.write("latin1", b"Good.\nStra\xdfe\nGood.\n");
    folder.write("empty", b"");
    let cases = [
        (
            "short --ref ref",
            ["short has 2 lines and ref has 3 lines: line 3", "missing or an extra line break"],
        ),
        (
            "hyp --ref ref --ref short",
            ["short has 2 lines and hyp has 3 lines: line 3", "line n of the others"],
        ),
        (
            "hyp --ref ref --compare short",
            ["short has 2 lines and hyp has 3 lines", "line 3 has no counterpart"],
        ),
        ("hyp --ref latin1", ["latin1, line 2: byte 5 of the line is not UTF-8", "iconv"]),
        ("absent --ref ref", ["cannot read absent", "No such file"]),
        ("hyp --ref .", ["cannot read .", "folder"]),
        ("empty --ref ref", ["empty is empty", "no line to score"]),
        ("hyp --ref ref --smooth-value 1", ["--smooth-value needs --smooth floor", "add-k"]),
        ("hyp --ref ref --smooth floor --smooth-value nan", ["--smooth-value NaN", "not negative"]),
    ];
    for (arguments, parts) in cases {
        let message = folder.error(arguments, 1);
        for part in parts {
            assert!(message.contains(part), "{arguments}: {message}");
        }
    }
}

#[test]
fn wrong_usage_is_refused_with_the_possible_values() {
    let folder = Folder::new();
    let cases = [
        ("hyp --ref ref --metric rouge", "bleu, chrf, chrf++, ter, bleu-teaching"),
        ("hyp --ref ref --tokenize moses", "13a, intl, zh, char, none"),
        ("hyp --ref ref --smooth x", "exp, floor, add-k, none"),
        ("hyp --ref ref --sentence-level --confidence", "cannot be used with"),
    ];
    for (arguments, part) in cases {
        let message = folder.error(arguments, 2);
        assert!(message.contains(part), "{arguments}: {message}");
    }
    let message = folder.error("hyp", 1);
    assert!(message.contains("hyp needs references: add --ref REF"), "{message}");
}

#[test]
fn tokenized_text_causes_a_warning_unless_quiet() {
    let folder = Folder::new();
    folder.write("tokenized", "It is so .\n".repeat(100).as_bytes());
    folder.write("plain", "It is so.\n".repeat(100).as_bytes());
    let warning = |arguments: &str| text(&folder.run(arguments).stderr);
    assert!(warning("tokenized --ref plain").contains("100 lines of tokenized end in ` .`"));
    assert_eq!(warning("tokenized --ref plain --quiet"), "");
    assert_eq!(warning("tokenized --ref plain --tokenize none"), "");
    assert_eq!(warning("plain --ref tokenized"), "");
}

#[test]
fn empty_lines_are_sentences_and_a_last_line_needs_no_break() {
    let folder = Folder::new();
    folder.write("gap", b"The dog bit the man.\n\nThe man bit him first.");
    let json = folder.json("gap --ref ref --metric ter --json");
    assert_eq!(json["ter"]["score"].to_string(), "28.57");
}
