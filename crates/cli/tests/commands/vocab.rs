//! `heedful vocab` as a process.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{Bounded, program};

fn heedful(arguments: &[&str], input: &[u8]) -> Output {
    let mut process = program().args(arguments).stdin(Stdio::piped()).running();
    // A process that fails early does not read its input, which is not a failure of the test.
    let _ = process.stdin.take().expect("a pipe").write_all(input);
    process.output()
}

fn good(arguments: &[&str], input: &[u8]) -> String {
    let output = heedful(arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn bad(arguments: &[&str], input: &[u8]) -> String {
    let output = heedful(arguments, input);
    assert!(!output.status.success(), "{arguments:?} should fail");
    assert!(output.stdout.is_empty(), "{arguments:?} printed data");
    String::from_utf8(output.stderr).expect("text")
}

/// A folder with a small parallel corpus in it.
struct Corpus {
    folder: tempfile::TempDir,
}

impl Corpus {
    fn new() -> Corpus {
        let corpus = Corpus { folder: tempfile::tempdir().expect("a folder") };
        corpus.write("en", "the red house\nthe red car\nan old house\n\n");
        corpus.write("de", "das rote Haus\ndas rote Auto\nein altes Haus\n\n");
        corpus
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain name").to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("a written file");
        path
    }

    fn learn(&self, out: &str, more: &[&str]) -> Output {
        let (en, de, out) = (self.path("en"), self.path("de"), self.path(out));
        let mut arguments = vec!["vocab", "--src", &en, "--tgt", &de, "--size", "400", "--out", &out];
        arguments.extend(more);
        heedful(&arguments, b"")
    }
}

#[test]
fn a_vocabulary_is_learned_shown_and_applied() {
    let corpus = Corpus::new();
    for kind in ["bpe", "unigram", "word", "character"] {
        let output = corpus.learn("vocabulary", &["--kind", kind]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout.is_empty(), "{stderr}");
        assert!(stderr.contains("from 4 pairs"), "{stderr}");
        let file = corpus.path("vocabulary/tokenizer.json");

        let shown = good(&["vocab", "--show", &file], b"");
        assert!(shown.starts_with("0\t<pad>\n1\t<bos>\n2\t<eos>\n3\t<unk>\n4\t<0x00>\n"), "{shown}");
        assert_eq!(shown.lines().last().and_then(|line| line.split('\t').next()), Some(&*last_id(&shown)));

        let text = "the old Haus\n\n  un autre, 自动驾驶\t<eos> \u{2028}.\nlast";
        let ids = good(&["vocab", "--encode", &file], text.as_bytes());
        assert_eq!(ids.lines().count(), 4, "{ids}");
        let again = good(&["vocab", "--decode", &file], ids.as_bytes());
        assert_eq!(again, format!("{text}\n"), "{kind}");
    }
    let pieces = good(&["vocab", "--encode", &corpus.path("vocabulary"), "--pieces"], b"a car");
    assert_eq!(pieces, "a ▁ c a r\n");
}

fn last_id(shown: &str) -> String {
    (shown.lines().count() - 1).to_string()
}

#[test]
fn the_same_text_gives_the_same_file_for_any_number_of_threads() {
    let corpus = Corpus::new();
    for kind in ["bpe", "unigram", "word", "character"] {
        let files = ["1", "3"].map(|threads| {
            let output = corpus.learn("same.json", &["--kind", kind, "--threads", threads, "--quiet"]);
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            fs::read(corpus.path("same.json")).expect("a vocabulary")
        });
        assert_eq!(files[0], files[1], "{kind}");
    }
}

#[test]
fn separate_vocabularies_are_two_files() {
    let corpus = Corpus::new();
    assert!(corpus.learn("both", &[]).status.success());
    assert!(corpus.learn("both", &["--separate", "--kind", "word", "--min-frequency", "1"]).status.success());
    let mut names: Vec<String> = fs::read_dir(corpus.path("both"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    assert_eq!(names, ["source.tokenizer.json", "target.tokenizer.json"]);
    let pieces =
        |side: &str| good(&["vocab", "--show", &corpus.path(&format!("both/{side}.tokenizer.json"))], b"");
    assert!(pieces("source").contains("\t▁house\n") && !pieces("source").contains("\t▁Haus\n"));
    assert!(pieces("target").contains("\t▁Haus\n") && !pieces("target").contains("\t▁house\n"));
    let refused = corpus.learn("one.json", &["--separate"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give a folder"));
}

#[test]
fn text_may_come_from_standard_input() {
    let corpus = Corpus::new();
    let tsv = "the house\tdas Haus\nthe house\tdas Haus\n";
    let out = corpus.path("tsv.json");
    good(&["vocab", "--tsv", "-", "--size", "400", "--out", &out], tsv.as_bytes());
    let pieces = good(&["vocab", "--encode", &out, "--pieces"], b"the Haus");
    assert_eq!(pieces, "▁the ▁Haus\n");
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let corpus = Corpus::new();
    corpus.write("short", "one line\n");
    corpus.write("latin", b"a\nB\xE4r\nc\nd\n");
    corpus.write("cut.gz", [0x1F, 0x8B, 8, 0, 0]);
    corpus.write("empty", "");
    let out = corpus.path("new.json");
    let learn = |src: &str, tgt: &str, more: &[&str]| {
        let (src, tgt) = (corpus.path(src), corpus.path(tgt));
        let mut arguments = vec!["vocab", "--src", &src, "--tgt", &tgt, "--out", &out];
        arguments.extend(more);
        bad(&arguments, b"")
    };
    let cases = [
        (learn("en", "short", &[]), "has 4 lines but"),
        (learn("en", "latin", &[]), "latin, line 2: byte 2"),
        (learn("en", "missing", &[]), "missing"),
        (learn("en", "", &[]), "it is a folder"),
        (learn("cut.gz", "cut.gz", &[]), "cut.gz is cut off or damaged (gzip)"),
        (learn("empty", "empty", &[]), "nothing to learn from"),
        (learn("en", "de", &["--size", "261"]), "a vocabulary of 261 is too small"),
        (learn("en", "de", &["--coverage", "0"]), "coverage of 0"),
        (learn("en", "de", &["--kind", "subword"]), "invalid value 'subword'"),
        (
            bad(&["vocab", "--tgt", &corpus.path("en"), "--out", &out], b""),
            "0 source files but 1 target files",
        ),
        (bad(&["vocab", "--out", &out], b""), "no corpus"),
        (bad(&["vocab"], b""), "required"),
        (bad(&["vocab", "--show", &corpus.path("en")], b""), "is not a tokenizer.json"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn bad_lines_are_named() {
    let corpus = Corpus::new();
    assert!(corpus.learn("v.json", &[]).status.success());
    let file = corpus.path("v.json");
    let error = |arguments: &[&str], input: &[u8]| {
        let output = heedful(arguments, input);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(error(&["vocab", "--decode", &file], b"5 6\n7 x\n").contains("line 2: `x` is not a token id"));
    assert!(error(&["vocab", "--decode", &file], b"999999\n").contains("no token 999999"));
    let message = error(&["vocab", "--encode", &file], b"good\n\xFF\n");
    assert!(message.contains("standard input, line 2"), "{message}");
}
