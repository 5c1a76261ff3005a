//! Text files: plain, tab-separated, labelled, parallel.

use std::fs;
use std::path::Path;

use heedful::data::labels::Labels;
use heedful::data::{CorpusFiles, Input};
use heedful::explain::MaskRows;
use heedful::layers::AttentionRole;
use heedful::tasks::translate::Terms;

use super::small_model::LINES;
use super::{Opened, Target, Verdict, target};

const WORDS: &[&str] =
    &["\n", "\r\n", "\t", "\r", "\u{feff}", "\u{2028}", "\0", "\n\n", "\t\t", "\u{85}", "é", "一"];

pub(super) fn targets() -> Vec<Target> {
    vec![
        target("plain-text", plain, WORDS, 500),
        target("tab-separated", tab_separated, WORDS, 500),
        target("labelled-text", labelled, WORDS, 500),
        target("parallel-text", parallel, WORDS, 500),
        target("terms", terms, WORDS, 500),
        target("mask", mask, MASK_WORDS, 1000),
    ]
}

const MASK_WORDS: &[&str] = &[
    "0", "1", " ", "\n", ",", "[", "]", "[[", "]]", "true", "false", "#", "null", "\"1\"", "1.0", "1e9", "一",
];

/// A boolean mask, as text and as JSON.
fn mask(_: &Path) -> Opened {
    let reads = |bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return Verdict::Rejected };
        let rows = MaskRows::parse(text);
        if let Ok(rows) = &rows {
            rows.mask(AttentionRole::Cross);
        }
        Verdict::of(rows)
    };
    let seeds = ["1 0 0\n110\n1,1,1 # all\n", "[[1, 0], [true, 1]]"].map(|text| text.as_bytes().to_vec());
    Opened { seeds: seeds.to_vec(), read: Box::new(reads) }
}

/// Reads a corpus to its end.
pub(super) fn read(files: &CorpusFiles) -> Verdict {
    Verdict::of(files.pairs().try_for_each(|pair| pair.map(drop)))
}

fn plain(folder: &Path) -> Opened {
    let file = folder.join("text.txt");
    let files = CorpusFiles::plain(&[Input::new(&file)]).expect("a file");
    let reads = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        read(&files)
    };
    Opened {
        seeds: vec![(LINES.join("\n") + "\n").into_bytes(), b"\xEF\xBB\xBFa\r\nb".to_vec()],
        read: Box::new(reads),
    }
}

fn tab_separated(folder: &Path) -> Opened {
    let file = folder.join("pairs.tsv");
    let files = CorpusFiles::new(&[], &[], &[Input::new(&file)]).expect("a file");
    let reads = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        read(&files)
    };
    Opened { seeds: vec!["a dog\tein Hund\n\n一\tone\tthird\r\n".into()], read: Box::new(reads) }
}

/// A terminology list, which is then searched in the list itself.
fn terms(folder: &Path) -> Opened {
    let file = folder.join("terms.tsv");
    let reads = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        let terms = Terms::open(&file);
        if let Ok(terms) = &terms {
            terms.found_in(&String::from_utf8_lossy(bytes));
        }
        Verdict::of(terms)
    };
    Opened { seeds: vec!["dog\tHund\n\nNew York\tNueva York\r\n一套\tone\n".into()], read: Box::new(reads) }
}

fn labelled(folder: &Path) -> Opened {
    let file = folder.join("labelled.tsv");
    let files = CorpusFiles::labelled(&[Input::new(&file)]).expect("a file");
    let reads = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        read(&files.without_labels());
        Verdict::of(Labels::collect(&files))
    };
    Opened { seeds: vec!["good\ta b\n\nbad\tc\n体育\td\te\n".into()], read: Box::new(reads) }
}

/// Two files in one input, split in the middle; lines have a length limit.
fn parallel(folder: &Path) -> Opened {
    let paths = [folder.join("source.txt"), folder.join("target.txt")];
    let files = CorpusFiles::parallel(&paths[0], &paths[1]);
    let reads = move |bytes: &[u8]| {
        let (source, target) = bytes.split_at(bytes.len() / 2);
        fs::write(&paths[0], source).expect("disk space");
        fs::write(&paths[1], target).expect("disk space");
        let whole = read(&files);
        let _ = files.pairs().cut_at([5, 3]).try_for_each(|pair| pair.map(drop));
        whole
    };
    Opened { seeds: vec!["one\n一二\nthree\none\n一二\nthree\n".into()], read: Box::new(reads) }
}
