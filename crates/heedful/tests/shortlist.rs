//! Searches with a vocabulary shortlist. A separate test binary, because it changes the number of threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heedful::data::batch::{Batch, BatchError};
use heedful::data::shortlist::Shortlist;
use heedful::decode::{
    Constraints, Copies, Ensemble, Hypothesis, Limits, Links, MaxLength, Sampling, Scheduler, SearchInput,
    SearchOptions, SentenceId, ShortlistOptions, search, search_by,
};
use heedful::layers::Pass;
use heedful::models::recurrent::{RecurrentConfig, Seq2Seq};
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{Decoding, Generate, Model, Row};
use heedful::tensor::cpu::threads;
use heedful::tensor::ops::CrossEntropy;
use heedful::tensor::{Params, Precision, Ragged, Tensor};

const VOCABULARY: usize = 173;
const EOS: u32 = 2;
const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::Bf16, Precision::Int8];

fn model() -> Transformer {
    // No width is a multiple of a tile.
    let config = TransformerConfig { d_model: 36, d_ff: 70, heads: 3, ..TransformerConfig::tiny(VOCABULARY) };
    Transformer::new(config, 5).expect("a good configuration")
}

/// A few tokens for each source token, and fewer for all sources.
fn shortlist() -> Arc<Shortlist> {
    let linked =
        |source: u32| (0..5).map(|i| 3 + (source * 7 + i * i * 11) % (VOCABULARY as u32 - 3)).collect();
    Arc::new(Shortlist::new(VOCABULARY, vec![9, 30, 101], (0..VOCABULARY as u32).map(linked).collect()))
}

fn sources() -> Vec<Vec<u32>> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let lengths = [1, 9, 33, 2, 17, 5, 40, 12];
    lengths.iter().enumerate().map(|(i, &n)| (i * 13..i * 13 + n).map(word).collect()).collect()
}

fn options(compute: Precision) -> SearchOptions {
    let max_length = MaxLength::Relative { factor: 0.5, plus: 9 };
    SearchOptions {
        compute: Some(compute),
        max_length,
        shortlist: Some(shortlist()),
        ..SearchOptions::default()
    }
}

fn bits(found: &[Hypothesis]) -> Vec<(Vec<u32>, u64, u64)> {
    found.iter().map(|f| (f.tokens.clone(), f.score.to_bits(), f.log_probability.to_bits())).collect()
}

/// The same model, with scores of −∞ for tokens outside a sentence's list.
struct Masked(Transformer);

struct MaskedDecoding<'m> {
    inner: Box<dyn Decoding + 'm>,
    lists: Vec<Vec<u32>>,
}

impl Model for Masked {
    fn params(&self) -> &Params {
        self.0.params()
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.0.check(batch)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        self.0.loss(batch, pass)
    }
}

impl Generate for Masked {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.0.check_source(source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.0.longest_target()
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        Box::new(MaskedDecoding { inner: self.0.start(compute), lists: Vec::new() })
    }
}

impl Decoding for MaskedDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        self.inner.read(source, sequences);
        self.lists.extend(sequences.ranges().map(|range| shortlist().tokens(&source[range], [EOS])));
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let logits = self.inner.step(rows);
        let mut masked = vec![f32::NEG_INFINITY; rows.len() * VOCABULARY];
        for (number, row) in rows.iter().enumerate() {
            for &token in &self.lists[row.sentence] {
                masked[number * VOCABULARY + token as usize] = logits.row(number)[token as usize];
            }
        }
        Tensor::from_f32(rows.len(), VOCABULARY, &masked)
    }
}

#[test]
fn a_shortlist_gives_the_same_outputs_as_masking_all_other_tokens() {
    let _lock = exclusive();
    for compute in PRECISIONS {
        let with_list = options(compute);
        let sampled = SearchOptions { n_best: 3, sampling: Some(Sampling::default()), ..with_list.clone() };
        let repeating = SearchOptions { no_repeat_ngram: Some(1), min_length: 4, ..with_list.clone() };
        for options in [SearchOptions { beam: 1, ..with_list.clone() }, with_list, sampled, repeating] {
            let found = search(&model(), &sources(), &options).expect("good sources");
            let all = SearchOptions { shortlist: None, ..options.clone() };
            let masked = search(&Masked(model()), &sources(), &all).expect("good sources");
            assert_ne!(found, search(&model(), &sources(), &all).expect("good sources"), "the list matters");
            for (found, masked) in found.iter().flatten().zip(masked.iter().flatten()) {
                assert_eq!(found.tokens, masked.tokens, "{compute} {options:?}");
                // The scores have the same bits, but the normalizer sums fewer of them, in a different order.
                let distance = (found.log_probability - masked.log_probability).abs();
                assert!(distance < 1e-4, "{compute}: {distance}");
            }
        }
    }
}

#[test]
fn neither_the_batch_nor_the_threads_change_a_bit() {
    let _lock = exclusive();
    let model = model();
    for compute in PRECISIONS {
        let options = options(compute);
        let together = search(&model, &sources(), &options).expect("good sources");
        for threads in [1, 2, 3] {
            threads::set_thread_count(threads);
            for (source, expected) in sources().iter().zip(&together) {
                let alone = search(&model, std::slice::from_ref(source), &options).expect("a good source");
                assert_eq!(bits(&alone[0]), bits(expected), "{compute}, {threads} threads");
            }
            let narrow = SearchOptions { batch_tokens: Some(100), ..options.clone() };
            let mut backwards = sources();
            backwards.reverse();
            let found = search(&model, &backwards, &narrow).expect("good sources");
            for (found, expected) in found.iter().rev().zip(&together) {
                assert_eq!(bits(found), bits(expected), "{compute}, {threads} threads");
            }
        }
    }
}

#[test]
fn forced_tokens_are_added_to_the_list() {
    let _lock = exclusive();
    let (model, source) = (model(), sources()[1].clone());
    let list = shortlist().tokens(&source, [EOS]);
    let outside: Vec<u32> = (3..VOCABULARY as u32).filter(|token| !list.contains(token)).take(3).collect();
    let constraints = Constraints { prefix: outside[..1].to_vec(), phrases: vec![outside[1..].to_vec()] };
    let input = SearchInput { source, constraints: constraints.clone() };
    for compute in PRECISIONS {
        let model: &dyn Generate = &model;
        let found =
            search_by(&model.into(), std::slice::from_ref(&input), &options(compute), &Limits::default());
        let best = &found.expect("a good source")[0][0];
        assert_eq!(best.tokens[0], outside[0]);
        assert!(constraints.missing(&best.tokens).is_empty());
        assert!(best.log_probability.is_finite());
        assert!(best.tokens.iter().all(|token| list.contains(token) || outside.contains(token)));
    }
}

#[test]
fn cancelled_sentences_do_not_change_the_others() {
    let _lock = exclusive();
    let (model, options) = (model(), options(Precision::Int8));
    let expected = search(&model, &sources(), &options).expect("good sources");
    let mut scheduler = Scheduler::new(&model, &options).expect("good options");
    let ids: Vec<SentenceId> = sources().into_iter().map(|source| scheduler.push(source)).collect();
    scheduler.step().expect("it fits");
    [1, 4].into_iter().for_each(|number| scheduler.cancel(ids[number]));
    let mut count = 0;
    while !scheduler.is_idle() {
        while let Some((id, found)) = scheduler.poll() {
            assert_eq!(bits(&found.expect("a good model")), bits(&expected[id.0]));
            count += 1;
        }
        scheduler.step().expect("it fits");
    }
    assert_eq!(count, 6);
}

#[test]
fn sentences_that_arrive_while_others_are_decoded_or_leave_do_not_change_them() {
    let _lock = exclusive();
    let model = model();
    for compute in PRECISIONS {
        let options = SearchOptions { beam: 3, ..options(compute) };
        let alone = |source: Vec<u32>| search(&model, &[source], &options).expect("a good source").remove(0);
        let expected: Vec<_> = sources().into_iter().map(|source| bits(&alone(source))).collect();
        let mut scheduler = Scheduler::new(&model, &options).expect("good options");
        let (mut arriving, mut ids) = (sources().into_iter(), Vec::new());
        let mut count = 0;
        for step in 0.. {
            ids.extend(arriving.next().map(|source| scheduler.push(source)));
            // Long sentences, in the middle of their outputs.
            match step {
                6 => scheduler.cancel(ids[2]),
                11 => scheduler.cancel(ids[6]),
                _ => {}
            }
            scheduler.step().expect("it fits");
            while let Some((id, found)) = scheduler.poll() {
                assert_eq!(bits(&found.expect("a good model")), expected[id.0], "{compute}");
                count += 1;
            }
            if scheduler.is_idle() {
                break;
            }
        }
        assert_eq!(count, 6);
    }
}

#[test]
fn models_without_shortlist_support_report_an_error() {
    let complaint = |ensemble: &Ensemble<'_>, options: &SearchOptions| {
        Scheduler::new(ensemble.clone(), options).err().expect("no such search").to_string()
    };
    let (one, options) = (model(), options(Precision::F32));
    let alone = Ensemble::new(vec![&one]).expect("a model");
    assert!(alone.supports_shortlist() && Scheduler::new(alone.clone(), &options).is_ok());
    let both = Ensemble::new(vec![&one, &one]).expect("one vocabulary");
    let recurrent = Seq2Seq::new(RecurrentConfig::tiny(VOCABULARY), 3).expect("a good configuration");
    let recurrent: &dyn Generate = &recurrent;
    for ensemble in [both, recurrent.into()] {
        assert!(!ensemble.supports_shortlist());
        let message = complaint(&ensemble, &options);
        assert!(message.contains("only a single Transformer"), "{message}");
    }
    let other = Shortlist::new(VOCABULARY + 1, Vec::new(), Vec::new());
    let message = complaint(&alone, &SearchOptions { shortlist: Some(Arc::new(other)), ..options });
    assert!(message.contains("another vocabulary"), "{message}");
}

#[test]
fn links_do_not_depend_on_the_chunks_of_pairs() {
    let _lock = exclusive();
    let model = model();
    let mut pairs: Vec<_> = sources().into_iter().map(|source| (source.clone(), source)).collect();
    pairs.extend([(vec![5], Vec::new()), (Vec::new(), vec![5])]);
    let sizes = ShortlistOptions { per_token: 4, frequent: 3, copies: Copies::None };
    let learned = |chunks: &[&[(Vec<u32>, Vec<u32>)]]| {
        let mut links = Links::default();
        for chunk in chunks {
            links
                .learn(
                    &model,
                    chunk,
                    &SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() },
                )
                .expect("good pairs");
        }
        links.shortlist([VOCABULARY, VOCABULARY], sizes)
    };
    let together = learned(&[&pairs]);
    assert_eq!(together.tokens(&[], []).len(), 3);
    assert!(together.links() > 0 && together.links() <= 4 * VOCABULARY);
    assert_eq!(learned(&[&pairs[5..], &pairs[..2], &pairs[2..5]]), together);
}

/// Tests that set the number of threads, which is process-wide, run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
