//! A corpus may be larger than memory: four times the text uses no more memory, from the files to the
//! batches.
//!
//! The high-water mark is process-wide, so this file has one test only.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use heedful::data::batches::{BatchOptions, BatchPosition, Batches, Prefetched};
use heedful::data::encoded::EncodedCorpus;
use heedful::data::tokenizer::{Sharing, Tokenizers, VocabularyKind, VocabularyOptions};
use heedful::data::{CorpusFiles, Filters, Input};
use heedful::tensor::cpu::threads;

const WORDS_A_SIDE: usize = 50;
const SLACK: u64 = 16 << 20;

#[test]
fn four_times_the_text_uses_no_more_memory() {
    threads::set_thread_count(2);
    let folder = tempfile::tempdir().expect("a folder");
    let (small, large) = (40_000, 160_000);
    read_one_epoch(folder.path(), small);
    let before = peak_memory();
    read_one_epoch(folder.path(), large);
    let growth = peak_memory() - before;
    let in_memory = (large * 2 * WORDS_A_SIDE * size_of::<u32>()) as u64;
    assert!(in_memory > 3 * SLACK, "the corpus is too small to show anything");
    assert!(growth < SLACK, "{growth} bytes more for {in_memory} bytes of ids");
}

/// Trains a vocabulary, encodes the corpus, and iterates over all batches once.
fn read_one_epoch(folder: &Path, pairs: usize) {
    let path = folder.join("text.tsv");
    write_corpus(&path, pairs);
    let files = CorpusFiles::new(&[], &[], &[Input::new(&path)]).expect("one file");
    let options =
        VocabularyOptions { kind: VocabularyKind::Word, size: 1000, ..VocabularyOptions::default() };
    let tokenizers = Tokenizers::train(&files, &options, Sharing::Joint, &mut |_| {}).expect("a vocabulary");
    let encoded = folder.join(format!("{pairs}.bin"));
    let corpus = EncodedCorpus::build(&encoded, &files, &tokenizers, &Filters::default(), &mut |_| {});
    let corpus = Arc::new(corpus.expect("an encoded corpus"));
    assert_eq!(corpus.pairs(), pairs as u64);
    let options = BatchOptions { window_blocks: 8, ..BatchOptions::default() };
    let batches = Batches::at(Arc::clone(&corpus), &options, BatchPosition::default()).expect("a beginning");
    let mut sentences = 0;
    for placed in Prefetched::new(batches) {
        let placed = placed.expect("a good file");
        sentences += placed.batch.sentences();
        if placed.next.epoch > 0 {
            break;
        }
    }
    assert_eq!(sentences, pairs);
}

fn write_corpus(path: &Path, pairs: usize) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    for pair in 0..pairs {
        for word in 0..2 * WORDS_A_SIDE {
            let letters = [b'a' + (pair % 26) as u8, b'a' + (word * 7 % 26) as u8];
            file.write_all(&letters).expect("a written file");
            let end = match word + 1 {
                WORDS_A_SIDE => b"\t",
                word if word == 2 * WORDS_A_SIDE => b"\n",
                _ => b" ",
            };
            file.write_all(end).expect("a written file");
        }
    }
    file.flush().expect("a written file");
}

/// The peak memory of this process, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the high-water mark");
    let kilobytes = line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number");
    kilobytes << 10
}
