use std::fs;
use std::path::Path;

use super::*;
use crate::data::corpus::{CorpusFiles, Filters};
use crate::data::tokenizer::{Tokenizers, VocabularyKind, VocabularyOptions, WordCounts};

fn tokenizers() -> Tokenizers {
    let options =
        VocabularyOptions { kind: VocabularyKind::Character, size: 300, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    counts.add("abcdefghij");
    Tokenizers::joint(counts.train().expect("a vocabulary"))
}

fn files(folder: &Path, source: &str, target: &str) -> CorpusFiles {
    let paths = ["source", "target"].map(|name| folder.join(name));
    fs::write(&paths[0], source).expect("a written file");
    fs::write(&paths[1], target).expect("a written file");
    CorpusFiles::parallel(&paths[0], &paths[1])
}

fn build(folder: &Path, files: &CorpusFiles) -> Result<EncodedCorpus, EncodedError> {
    let path = folder.join("run/corpus.bin");
    {
        let examples = Examples { files, tokenizers: &tokenizers(), kind: ExampleKind::Pairs };
        EncodedCorpus::open_or_build(&path, &examples, &Filters::default(), &mut |_| {})
    }
}

#[test]
fn encoded_pairs_are_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines = |character: &str| -> String {
        (0..3000).map(|number| format!("{}\n", character.repeat(number % 300))).collect()
    };
    let corpus =
        build(folder.path(), &files(folder.path(), &lines("a"), &lines("你"))).expect("an encoded corpus");
    let report = corpus.report();
    // A third of the targets is over-long: 你 is not in the vocabulary and takes three bytes.
    assert_eq!((report.read, report.kept, report.empty, report.over_long), (3000, 850, 10, 2140));
    assert_eq!((corpus.pairs(), corpus.blocks()), (850, 2));
    let tokenizers = tokenizers();
    let blocks = (0..corpus.blocks()).map(|block| corpus.read_block(block).expect("a good block"));
    let mut expected = (0..3000).map(|number| number % 300).filter(|length| (1..=85).contains(length));
    for (source, target) in blocks.flatten() {
        let length = expected.next().expect("as many pairs");
        assert_eq!(source, tokenizers.source.encode(&"a".repeat(length)));
        assert_eq!(target, tokenizers.target.encode(&"你".repeat(length)));
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn a_changed_corpus_is_an_error_and_the_same_one_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = build(folder.path(), &files(folder.path(), "a\nb\n", "c\nd\n")).expect("an encoded corpus");
    let again = build(folder.path(), &files(folder.path(), "a\nb\n", "c\nd\n")).expect("the same corpus");
    assert_eq!(first.fingerprint(), again.fingerprint());
    // The same bytes, but another line ends the first file.
    let changed = build(folder.path(), &files(folder.path(), "a\nb\nc\n", "d\n"));
    assert!(matches!(changed, Err(EncodedError::Changed { .. })), "{changed:?}");
}

#[test]
fn damage_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = files(folder.path(), &"abc\n".repeat(2000), &"def\n".repeat(2000));
    drop(build(folder.path(), &corpus).expect("an encoded corpus"));
    let path = folder.path().join("run/corpus.bin");
    let good = fs::read(&path).expect("a file");
    let all_blocks = || -> Result<(), EncodedError> {
        let corpus = EncodedCorpus::open(&path)?;
        (0..corpus.blocks()).try_for_each(|block| corpus.read_block(block).map(|_| ()))
    };
    all_blocks().expect("a good file");
    for index in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[index] ^= 0x10;
        fs::write(&path, &bad).expect("a written file");
        assert!(matches!(all_blocks(), Err(EncodedError::Damaged { .. })), "a bit at {index}");
    }
    for length in [0, 7, 30, good.len() / 2, good.len() - 1] {
        fs::write(&path, &good[..length]).expect("a written file");
        assert!(matches!(all_blocks(), Err(EncodedError::Damaged { .. })), "cut at {length}");
    }
}

/// Impossible sizes are rejected even if the checksums match.
#[test]
fn impossible_sizes_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(build(folder.path(), &files(folder.path(), "a\nb\n", "c\nd\n")).expect("an encoded corpus"));
    let path = folder.path().join("run/corpus.bin");
    let good = fs::read(&path).expect("a file");
    let tail = good.len() - 24;
    let length = u64::from_le_bytes(good[tail..tail + 8].try_into().expect("eight bytes"));
    let start = tail - length as usize;
    let footer: serde_json::Value = serde_json::from_slice(&good[start..tail]).expect("JSON");
    for (field, number) in [
        ("bytes", u64::MAX),
        ("bytes", 1 << 40),
        ("offset", u64::MAX),
        ("offset", 0),
        ("pairs", u32::MAX.into()),
    ] {
        let mut changed = footer.clone();
        changed["blocks"][0][field] = number.into();
        let json = changed.to_string().into_bytes();
        let checksum = twox_hash::XxHash3_64::oneshot(&json).to_le_bytes();
        let length = (json.len() as u64).to_le_bytes();
        let whole = [&good[..start], &json, &length, &checksum, &good[tail + 16..]].concat();
        fs::write(&path, whole).expect("a written file");
        let read = EncodedCorpus::open(&path).and_then(|corpus| corpus.read_block(0));
        assert!(matches!(read, Err(EncodedError::Damaged { .. })), "{field} {number}: {read:?}");
    }
}

#[test]
fn a_bad_corpus_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let misaligned = build(folder.path(), &files(folder.path(), "a\nb\n", "c\n"));
    assert!(matches!(misaligned, Err(EncodedError::Corpus(_))));
    let empty = build(folder.path(), &files(folder.path(), "a\n\n", "\nb\n")).expect_err("no pair is left");
    assert!(empty.to_string().contains("2 were read, 2 are empty"), "{empty}");
    assert_eq!(fs::read_dir(folder.path().join("run")).expect("the folder").count(), 0);
}

#[test]
fn a_path_that_cannot_be_written_to_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = files(folder.path(), "a\n", "b\n");
    let path = folder.path().join("source").join("corpus.bin");
    let error = EncodedCorpus::build(&path, &corpus, &tokenizers(), &Filters::default(), &mut |_| {});
    let message = error.expect_err("a file is not a folder").to_string();
    assert!(message.starts_with("cannot write") && message.contains("corpus.bin"), "{message}");
}
