use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).expect("a written file");
    path
}

fn read(files: &CorpusFiles) -> Result<Vec<(String, String)>, String> {
    let pairs = files.pairs().map(|pair| pair.map(|pair| (pair.source, pair.target)));
    pairs.collect::<Result<_, _>>().map_err(|error: CorpusError| error.to_string())
}

fn read_tsv(path: &Path) -> Result<Vec<(String, String)>, String> {
    read(&CorpusFiles::new(&[], &[], &[Input::new(path)]).expect("one file"))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

fn xz(text: &[u8]) -> Vec<u8> {
    let mut encoder =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(3)).expect("options");
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

type Compressor = fn(&[u8]) -> Vec<u8>;
const COMPRESSORS: [(&str, Compressor); 3] = [("gzip", gzip), ("zstd", zstd), ("xz", xz)];

#[test]
fn only_newlines_end_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = write(folder.path(), "a", "\u{FEFF}one\r\n\u{FEFF}two\u{2028}x\u{85}y\u{B}z\r\r\n\nfour");
    let target = write(folder.path(), "b", "1\n2\n\u{3000}\n4\r");
    let pairs = read(&CorpusFiles::parallel(source, target)).expect("four pairs");
    let expected =
        [("one", "1"), ("\u{FEFF}two\u{2028}x\u{85}y\u{B}z\r", "2"), ("", "\u{3000}"), ("four", "4\r")];
    assert_eq!(pairs, expected.map(|(source, target)| (source.to_owned(), target.to_owned())));
}

#[test]
fn files_follow_each_other_and_tabs_separate() {
    let folder = tempfile::tempdir().expect("a folder");
    let inputs = |names: &[&str]| -> Vec<Input> {
        names.iter().map(|name| Input::new(write(folder.path(), name, format!("{name}\n")))).collect()
    };
    let tsv = Input::new(write(folder.path(), "t", "s\tt\tmore\n\n\tempty source\n"));
    let files = CorpusFiles::new(&inputs(&["a", "b"]), &inputs(&["c", "d"]), &[tsv]).expect("five files");
    let expected = [("a", "c"), ("b", "d"), ("s", "t"), ("", ""), ("", "empty source")];
    assert_eq!(read(&files).expect("good files"), expected.map(|(s, t)| (s.to_owned(), t.to_owned())));
}

#[test]
fn compression_is_detected_by_content_and_files_may_have_several_members() {
    let folder = tempfile::tempdir().expect("a folder");
    let first: String = (0..5000).map(|number| format!("{number}\tα{number}\n")).collect();
    let expected: Vec<_> =
        (0..5000).chain([7]).map(|number| (number.to_string(), format!("α{number}"))).collect();
    for (format, compress) in COMPRESSORS {
        let compressed = [compress(first.as_bytes()), compress(b""), compress("7\tα7".as_bytes())].concat();
        let path = write(folder.path(), "no-telling-name", &compressed);
        assert_eq!(read_tsv(&path).expect("a good file"), expected, "{format}");
    }
}

#[test]
fn truncated_and_damaged_files_are_errors_that_name_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let text: String = (0..3000).map(|number| format!("{}\tt\n", number * 7919 % 3001)).collect();
    for (format, compress) in COMPRESSORS {
        let compressed = compress(text.as_bytes());
        for length in [10, compressed.len() / 2, compressed.len() - 5, compressed.len() - 1] {
            let path = write(folder.path(), "cut", &compressed[..length]);
            let error = read_tsv(&path).expect_err("a cut file");
            assert!(error.contains("cut") && error.contains(format), "{format} at {length}: {error}");
        }
        let mut damaged = compressed.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        damaged[middle + 1] ^= 0xAA;
        let error = read_tsv(&write(folder.path(), "damaged", &damaged)).expect_err("a damaged file");
        assert!(error.contains("damaged"), "{format}: {error}");
        let mut followed = compressed;
        followed.extend_from_slice(b"something else");
        assert!(read_tsv(&write(folder.path(), "followed", &followed)).is_err(), "{format}");
    }
}

#[test]
fn errors_name_file_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let two = write(folder.path(), "two", "1\n2\n");
    let five = write(folder.path(), "five", "1\n2\n3\n4\n5");
    let misaligned = read(&CorpusFiles::parallel(&two, &five)).expect_err("unequal files");
    assert!(misaligned.contains("two has 2 lines") && misaligned.contains("five has 5"), "{misaligned}");
    let misaligned = read(&CorpusFiles::parallel(&five, &two)).expect_err("unequal files");
    assert!(misaligned.contains("five has 5 lines") && misaligned.contains("two has 2"), "{misaligned}");

    let latin = write(folder.path(), "latin", b"good\tline\nB\xE4r\tbear\n");
    let error = read_tsv(&latin).expect_err("not UTF-8");
    assert!(error.contains("latin, line 2: byte 2"), "{error}");

    let no_tab = write(folder.path(), "no-tab", "a\tb\nc d\n");
    assert!(read_tsv(&no_tab).expect_err("no tab").contains("no-tab, line 2: no tab"));

    assert!(read_tsv(&path("missing")).expect_err("no file").contains("missing"));
    let error = read_tsv(folder.path()).expect_err("a folder");
    assert!(error.contains("it is a folder"), "{error}");
}

#[test]
fn unequal_numbers_of_files_are_an_error() {
    let inputs = |names: &[&str]| -> Vec<Input> { names.iter().map(Input::new).collect() };
    let message = |sources: &[&str], targets: &[&str], tsv: &[&str]| {
        let files = CorpusFiles::new(&inputs(sources), &inputs(targets), &inputs(tsv));
        files.expect_err("files that do not pair up").to_string()
    };
    assert!(message(&[], &[], &[]).contains("no corpus"));
    assert!(message(&["a", "b"], &["c"], &[]).contains("2 source files but 1 target"));
    assert!(message(&["-"], &["c"], &["-"]).contains("more than once"));
}

#[test]
fn reading_ends_after_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = Input::new(write(folder.path(), "bad", "a\tb\nno tab\nc\td\n"));
    let mut pairs = CorpusFiles::new(&[], &[], &[bad.clone(), bad]).expect("two files").pairs();
    assert!(pairs.next().is_some_and(|pair| pair.is_ok()));
    assert!(pairs.next().is_some_and(|pair| pair.is_err()));
    assert!(pairs.next().is_none());
}

#[test]
fn a_copied_corpus_has_the_same_pairs() {
    let folder = tempfile::tempdir().expect("a folder");
    let tsv = Input::new(write(folder.path(), "t", "\u{FEFF}\u{FEFF}a\tb\r\n\u{FEFF}c\td\n\n"));
    let files = CorpusFiles::new(&[], &[], &[tsv]).expect("one file");
    let kept = files.copy_into(&folder.path().join("run")).expect("a copy");
    assert_eq!(read(&kept), read(&files));
    assert!(!kept.reads_standard_input());
}

#[test]
fn lines_of_many_megabytes_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(20 << 20);
    let path = write(folder.path(), "long", gzip(format!("{long}\t{long}\nshort\tline\n").as_bytes()));
    let pairs = read_tsv(&path).expect("two pairs");
    assert_eq!((pairs[0].0.len(), pairs[0].1.len(), pairs.len()), (long.len(), long.len(), 2));
}

#[test]
fn long_lines_are_truncated_or_an_error_and_the_next_line_is_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("\u{FEFF}12345678\r\n{}\n你好你\n{}", "x".repeat(100_000), "y".repeat(9));
    for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
        let path = write(folder.path(), "long", content);
        let lines = |long| Lines::open(&Input::new(&path)).expect("a file").bounded(8, long);
        let mut cut = lines(LongLines::Cut);
        for expected in ["12345678", "xxxxxxxx", "你好", "yyyyyyyy"] {
            assert_eq!(cut.next().expect("text"), Some(expected));
        }
        assert_eq!(cut.next().expect("text"), None);
        assert_eq!(cut.number(), 4);
        let mut refused = lines(LongLines::Refused);
        assert_eq!(refused.next().expect("short enough"), Some("12345678"));
        let error = refused.next().expect_err("too long").to_string();
        assert!(
            error.ends_with("long, line 2 has more than 8 bytes: break it into several lines"),
            "{error}"
        );
    }
}
