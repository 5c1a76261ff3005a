//! Compressed text. The formats have checksums of the content, which are compared after it is read.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use heedful::data::{CorpusFiles, Input};
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::small_model::LINES;
use super::texts::read;
use super::{Opened, Target, sealing, target};

const WORDS: &[&str] = &["\u{1f}", "\u{0}", "\u{1}\u{0}\u{0}", "YZ", "P*M\u{18}", "\u{7f}"];

pub(super) fn targets() -> Vec<Target> {
    vec![target("gzip", gzip, WORDS, 300), target("xz", xz, WORDS, 100), target("zstd", zstd, WORDS, 300)]
}

fn opened(folder: &Path, seeds: Vec<Vec<u8>>, seal: fn(&[u8]) -> Vec<u8>) -> Opened {
    let file = folder.join("text.packed");
    let files = CorpusFiles::plain(&[Input::new(&file)]).expect("a file");
    let reads = move |bytes: &[u8]| {
        fs::write(&file, seal(bytes)).expect("disk space");
        read(&files)
    };
    Opened { seeds, read: Box::new(reads) }
}

/// A short text, a longer one, and one that repeats itself.
fn texts() -> [String; 3] {
    let text = LINES.join("\n") + "\n";
    [LINES[0].to_owned(), text.clone(), text.repeat(20)]
}

fn gzip(folder: &Path) -> Opened {
    let packed = |text: &String| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory")
    };
    let mut seeds: Vec<Vec<u8>> = texts().iter().map(packed).collect();
    // Two concatenated files are a valid file.
    seeds.push(seeds.concat());
    opened(folder, seeds, <[u8]>::to_vec)
}

fn xz(folder: &Path) -> Opened {
    let packed = |text: &String| {
        let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("a preset");
        encoder.write_all(text.as_bytes()).expect("memory");
        encoder.finish().expect("memory")
    };
    opened(folder, texts().iter().map(packed).collect(), sealing::xz)
}

fn zstd(folder: &Path) -> Opened {
    let packed = |text: &String| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
    let mut seeds: Vec<Vec<u8>> = texts().iter().map(packed).collect();
    let skipped = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
    seeds.push([&skipped[..], &seeds[1], &seeds[0]].concat());
    opened(folder, seeds, <[u8]>::to_vec)
}
