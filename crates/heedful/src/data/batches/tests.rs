use std::fs;
use std::path::Path;

use super::*;
use crate::data::corpus::{CorpusFiles, Filters};
use crate::data::tokenizer::{Tokenizers, VocabularyKind, VocabularyOptions, WordCounts};

/// A corpus of `count` pairs of various lengths, each containing its number.
fn corpus(folder: &Path, count: usize) -> Arc<EncodedCorpus> {
    let line = |number: usize| format!("{number} {}", "x ".repeat(number * 7919 % 40));
    let lines: String =
        (0..count).map(|number| format!("{}\t{}\n", line(number), line(number / 2))).collect();
    let path = folder.join("corpus.tsv");
    fs::write(&path, lines).expect("a written corpus");
    let files = CorpusFiles::new(&[], &[], &[crate::data::Input::new(path)]).expect("one file");
    let mut counts = WordCounts::new(&VocabularyOptions {
        kind: VocabularyKind::Character,
        size: 300,
        ..VocabularyOptions::default()
    });
    counts.add("0123456789 x");
    let tokenizers = Tokenizers::joint(counts.train().expect("a vocabulary"));
    let path = folder.join("corpus.bin");
    let built = EncodedCorpus::build(&path, &files, &tokenizers, &Filters::default(), &mut |_| {});
    Arc::new(built.expect("an encoded corpus"))
}

fn options() -> BatchOptions {
    BatchOptions { batch_tokens: 700, seed: 3, window_blocks: 2, ..BatchOptions::default() }
}

/// The batches from `position` to the end of its epoch.
fn rest_of_epoch(corpus: &Arc<EncodedCorpus>, position: BatchPosition) -> Vec<PositionedBatch> {
    let batches = Batches::at(Arc::clone(corpus), &options(), position).expect("a good position");
    batches
        .map(|batch| batch.expect("a good file"))
        .take_while(|positioned| positioned.position.epoch == position.epoch)
        .collect()
}

fn sources(positioned: &[PositionedBatch]) -> Vec<Vec<u32>> {
    let batches = positioned.iter().map(|positioned| &positioned.batch);
    let sources = batches.flat_map(|batch| {
        (0..batch.sentences()).map(|sentence| batch.source[batch.source_sequences.range(sentence)].to_vec())
    });
    sources.collect()
}

#[test]
fn an_epoch_has_every_pair_once_in_its_own_order_and_within_the_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = corpus(folder.path(), 5000);
    assert!(corpus.blocks() > 4);
    let first = rest_of_epoch(&corpus, BatchPosition::default());
    let second = rest_of_epoch(&corpus, BatchPosition { epoch: 1, batch: 0 });
    for positioned in first.iter().chain(&second) {
        assert!(positioned.batch.source.len() <= 700 && positioned.batch.target_tokens() <= 700);
    }
    let (mut a, mut b) = (sources(&first), sources(&second));
    assert_ne!(a, b);
    a.sort();
    b.sort();
    assert_eq!(a.len(), 5000);
    assert_eq!(a, b);
    a.dedup();
    assert_eq!(a.len(), 5000);
    assert_eq!(first, rest_of_epoch(&corpus, BatchPosition::default()));
}

#[test]
fn the_stream_can_be_resumed_at_any_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = corpus(folder.path(), 3500);
    let all = rest_of_epoch(&corpus, BatchPosition::default());
    for (index, positioned) in all.iter().enumerate() {
        assert_eq!(positioned.position, BatchPosition { epoch: 0, batch: index as u64 });
        let again = Batches::at(Arc::clone(&corpus), &options(), positioned.position)
            .expect("a good position")
            .next()
            .expect("an endless stream")
            .expect("a good file");
        assert_eq!(again, *positioned);
    }
    let last = all.last().expect("some batches");
    assert_eq!(last.next, BatchPosition { epoch: 1, batch: 0 });
    let at_the_end = BatchPosition { epoch: 0, batch: all.len() as u64 };
    let next =
        Batches::at(Arc::clone(&corpus), &options(), at_the_end).expect("the end is the next beginning");
    assert_eq!(next.position(), last.next);
    let beyond = Batches::at(corpus, &options(), BatchPosition { epoch: 0, batch: all.len() as u64 + 1 });
    assert!(matches!(beyond, Err(EncodedError::NoSuchBatch { .. })));
}

#[test]
fn a_prefetched_batch_is_the_same_batch() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = corpus(folder.path(), 1500);
    let batches =
        || Batches::at(Arc::clone(&corpus), &options(), BatchPosition::default()).expect("a good position");
    let ahead: Vec<PositionedBatch> =
        Prefetched::new(batches()).take(300).map(|batch| batch.expect("a good file")).collect();
    let plain: Vec<PositionedBatch> = batches().take(300).map(|batch| batch.expect("a good file")).collect();
    assert_eq!(ahead, plain);
    assert!(ahead.last().expect("some batches").position.epoch > 0);
}

#[test]
fn a_pair_over_the_limit_makes_a_batch_of_its_own() {
    let pair = |length| (vec![9; length], vec![9]);
    let lengths = |batches: Vec<Vec<EncodedPair>>| {
        batches
            .iter()
            .map(|batch| batch.iter().map(|pair| pair.0.len()).collect())
            .collect::<Vec<Vec<usize>>>()
    };
    let cut = order::cut(vec![pair(2), pair(3), pair(50), pair(4)], 6);
    assert_eq!(lengths(cut), [vec![2, 3], vec![50], vec![4]]);
}

#[test]
fn only_one_window_is_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let corpus = corpus(folder.path(), 9000);
    let mut batches = Batches::at(corpus, &options(), BatchPosition::default()).expect("a good position");
    for _ in 0..100 {
        batches.next().expect("an endless stream").expect("a good file");
        assert!(batches.resident_pairs() <= 2 * 1024);
    }
}
