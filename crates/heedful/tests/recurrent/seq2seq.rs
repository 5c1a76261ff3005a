//! The encoder-decoder with and without attention: batching and threads change no bit, step-by-step decoding
//! equals the full pass, and it learns.

use std::ops::Range;

use heedful::data::batch::Batch;
use heedful::decode::{MaxLength, SearchOptions, score, search};
use heedful::layers::{AttentionMask, AttentionRole, AttentionScore, Pass, Positions};
use heedful::models::convolution::ConvolutionalConfig;
use heedful::models::recurrent::{
    AttentionOrder, Cell, ConvolutionalSource, Directions, Hardness, RecurrentAttention, RecurrentConfig,
    Seq2Seq,
};
use heedful::models::{Generate, Model, Row};
use heedful::tensor::cpu::{memory, threads};
use heedful::tensor::{DType, Precision, Ragged, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use crate::exclusive;

const VOCABULARY: usize = 61;
const LENGTHS: [(usize, usize); 7] = [(1, 1), (33, 20), (7, 40), (50, 3), (2, 2), (16, 17), (1, 30)];

fn configs() -> Vec<RecurrentConfig> {
    // No width is a multiple of a tile.
    let small = RecurrentConfig { d_model: 36, d_encoder: 20, ..RecurrentConfig::tiny(VOCABULARY) };
    vec![
        RecurrentConfig { cell: Cell::Simple, directions: Directions::Forward, ..small.clone() },
        RecurrentConfig { decoder_layers: 2, norm_epsilon: Some(1e-5), ..small.clone() },
        RecurrentConfig { cell: Cell::Lstm, encoder_layers: 3, decoder_layers: 2, ..small.clone() },
        with_attention(&small, AttentionScore::Additive, Hardness::Soft),
        with_attention(
            &RecurrentConfig { cell: Cell::Lstm, d_model: 40, decoder_layers: 2, ..small.clone() },
            AttentionScore::ScaledDot,
            Hardness::Soft,
        ),
        with_attention(
            &RecurrentConfig { norm_epsilon: Some(1e-5), ..small.clone() },
            AttentionScore::General,
            Hardness::ScoreFunction { reward: 0.1, entropy: 0.01 },
        ),
        with_attention(&small, AttentionScore::Additive, Hardness::StraightThrough),
        after(&with_attention(&small, AttentionScore::Additive, Hardness::Soft), AttentionOrder::After),
        after(
            &with_attention(
                &RecurrentConfig {
                    cell: Cell::Lstm,
                    decoder_layers: 2,
                    norm_epsilon: Some(1e-5),
                    directions: Directions::Forward,
                    ..small.clone()
                },
                AttentionScore::General,
                Hardness::ScoreFunction { reward: 0.1, entropy: 0.01 },
            ),
            AttentionOrder::After,
        ),
        after(
            &with_attention(
                &RecurrentConfig { cell: Cell::Lstm, d_model: 40, decoder_layers: 2, ..small.clone() },
                AttentionScore::Dot,
                Hardness::Soft,
            ),
            AttentionOrder::Feeding,
        ),
        after(
            &with_attention(&small, AttentionScore::Additive, Hardness::StraightThrough),
            AttentionOrder::Feeding,
        ),
        convolutional(&RecurrentConfig { cell: Cell::Lstm, decoder_layers: 2, ..small.clone() }),
        with_attention(&convolutional(&small), AttentionScore::Dot, Hardness::Soft),
        after(
            &with_attention(&convolutional(&small), AttentionScore::Additive, Hardness::Soft),
            AttentionOrder::After,
        ),
    ]
}

fn convolutional(config: &RecurrentConfig) -> RecurrentConfig {
    let stack =
        ConvolutionalConfig { d_model: config.d_model, dilation: 2, ..ConvolutionalConfig::tiny(VOCABULARY) };
    let source = ConvolutionalSource { stack: stack.encoder(), positions: Positions::Sinusoidal };
    RecurrentConfig { convolution: Some(source), ..config.clone() }
}

fn with_attention(config: &RecurrentConfig, score: AttentionScore, hardness: Hardness) -> RecurrentConfig {
    let order = AttentionOrder::Before;
    let attention = RecurrentAttention { score, width: 28, hardness, order };
    RecurrentConfig { attention: Some(attention), ..config.clone() }
}

fn after(config: &RecurrentConfig, order: AttentionOrder) -> RecurrentConfig {
    let attention = config.attention.map(|attention| RecurrentAttention { order, ..attention });
    RecurrentConfig { attention, ..config.clone() }
}

fn model(config: &RecurrentConfig) -> Seq2Seq {
    Seq2Seq::new(config.clone(), 5).expect("a good configuration")
}

fn pairs() -> Vec<(Vec<u32>, Vec<u32>)> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let sentence = |first: usize, length: usize| (first..first + length).map(word).collect();
    LENGTHS.iter().enumerate().map(|(i, &(n, m))| (sentence(i, n), sentence(50 + i, m))).collect()
}

pub(crate) fn batch(pairs: &[(Vec<u32>, Vec<u32>)]) -> Batch {
    Batch::new(pairs, 1, 2).expect("a good batch")
}

/// Short sentences over nine words, each to be copied.
pub(crate) fn copies() -> Vec<(Vec<u32>, Vec<u32>)> {
    let word = |i: usize, k: usize| (3 + (i * 5 + k * k + i / 4) % 9) as u32;
    let sentence = |i: usize| -> Vec<u32> { (0..2 + i % 3).map(|k| word(i, k)).collect() };
    (0..24).map(|i| (sentence(i), sentence(i))).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn the_rest_of_the_batch_does_not_change_bits() {
    let _lock = exclusive();
    for config in configs() {
        let model = model(&config);
        for compute in [DType::F32, DType::Bf16] {
            let logits = |pairs: &[(Vec<u32>, Vec<u32>)]| {
                let batch = batch(pairs);
                let logits = model.logits(&batch, &mut Pass::inference(compute)).to_vec();
                let of = |rows: Range<usize>| bits(&logits[rows.start * VOCABULARY..rows.end * VOCABULARY]);
                batch.target_sequences.ranges().map(of).collect::<Vec<_>>()
            };
            let together = logits(&pairs());
            for (i, pair) in pairs().iter().enumerate() {
                let alone = &logits(std::slice::from_ref(pair))[0];
                assert!(alone == &together[i], "{:?} {compute}: sentence {i}", config.cell);
            }
        }
    }
}

#[test]
fn a_mask_hides_keys_in_every_attention_order_and_a_full_mask_changes_no_bit() {
    let _lock = exclusive();
    let pair = &pairs()[5];
    let batch = batch(std::slice::from_ref(pair));
    let sizes = [batch.target_sequences.tokens(), batch.source_sequences.tokens()];
    let mask = |is_seen: fn(usize, usize) -> bool| {
        let allowed = (0..sizes[0]).flat_map(|i| (0..sizes[1]).map(move |j| is_seen(i, j))).collect();
        AttentionMask::new(AttentionRole::Cross, sizes, allowed)
    };
    for config in configs().iter().filter(|config| config.attention.is_some()) {
        let model = model(config);
        let run = |masks: &[AttentionMask]| {
            let mut pass = Pass::inference(DType::F32).with_masks(masks).recording_scores();
            let logits = bits(&model.logits(&batch, &mut pass).to_vec());
            pass.check_masks().expect("it fits and was used");
            (logits, pass.take_attention().expect("few weights").remove(0))
        };
        let (open, _) = run(&[]);
        assert!(run(&[mask(|_, _| true)]).0 == open, "{config:?}");
        let (hidden, map) = run(&[mask(|i, j| j == 0 || (i + j) % 3 != 0)]);
        assert!(hidden != open, "{config:?}");
        let scores = map.scores.expect("requested");
        for (index, (weight, score)) in map.weights[0][0].iter().zip(&scores[0][0]).enumerate() {
            let (i, j) = (index / sizes[1], index % sizes[1]);
            let is_seen = j == 0 || (i + j) % 3 != 0;
            assert_eq!(score.is_finite(), is_seen, "{config:?}: {i}, {j}");
            assert!(is_seen || *weight == 0.0, "{config:?}: {i}, {j}");
        }
    }
}

#[test]
fn threads_do_not_change_bits() {
    let _lock = exclusive();
    for config in configs() {
        for compute in [DType::F32, DType::Bf16] {
            let three_steps = |count: usize| {
                threads::set_thread_count(count);
                let model = model(&RecurrentConfig { dropout: 0.1, label_smoothing: 0.1, ..config.clone() });
                let found = model.loss(&batch(&pairs()), &mut Pass::training(compute, 3, 1));
                tape::backward(&found.loss);
                let gradients = bits(&model.params().gradients());
                model.params().clear_gradients();
                let options = TrainerOptions::new(compute, 3, Schedule::Constant { rate: 1e-2 });
                let mut trainer = StepTrainer::new(model, options);
                for _ in 0..3 {
                    trainer.step(&batch(&pairs())).expect("a good batch");
                }
                let values = bits(&trainer.model().params().to_vec());
                (found.loss.item().to_bits(), gradients, values)
            };
            assert!(three_steps(1) == three_steps(2), "{:?} {compute}", config.cell);
        }
    }
}

#[test]
fn decoding_step_by_step_equals_the_full_pass() {
    let _lock = exclusive();
    for config in configs() {
        let model = model(&config);
        let pairs = pairs();
        let batch = batch(&pairs);
        let expected = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
        let mut decoding = model.start(Precision::F32);
        // Sources arrive in two parts, so that sentences start while others are being decoded.
        let read = |decoding: &mut Box<dyn heedful::models::Decoding + '_>, part: Range<usize>| {
            let rows = batch.source_sequences.range(part.start).start
                ..batch.source_sequences.range(part.end - 1).end;
            let sequences = Ragged::from_lengths(part.map(|i| batch.source_sequences.length(i)));
            decoding.read(&batch.source[rows], &sequences);
        };
        read(&mut decoding, 0..4);
        let late = 2;
        let mut before: Vec<usize> = Vec::new();
        for step in 0_usize.. {
            if step == late {
                read(&mut decoding, 4..7);
            }
            let position = |sentence: usize| if sentence < 4 { Some(step) } else { step.checked_sub(late) };
            let is_active = |&sentence: &usize| {
                position(sentence).is_some_and(|at| at < batch.target_sequences.length(sentence))
            };
            // The order changes from step to step: the row index has no meaning.
            let mut now: Vec<usize> = (0..pairs.len()).filter(is_active).collect();
            if step % 2 == 1 {
                now.reverse();
            }
            if now.is_empty() {
                break;
            }
            let token = |sentence: usize| {
                batch.target_sequences.range(sentence).start + position(sentence).expect("an active sentence")
            };
            let rows: Vec<Row> = now
                .iter()
                .map(|&sentence| Row {
                    sentence,
                    parent: before.iter().position(|&other| other == sentence),
                    token: batch.target_in[token(sentence)],
                })
                .collect();
            let scores = decoding.step(&rows).to_vec();
            for (scores, &sentence) in scores.chunks_exact(VOCABULARY).zip(&now) {
                let at = token(sentence) * VOCABULARY;
                let whole = &expected[at..at + VOCABULARY];
                assert!(bits(scores) == bits(whole), "{:?}: sentence {sentence}, step {step}", config.cell);
            }
            before = now;
        }
    }
}

#[test]
fn scoring_gives_the_score_that_a_search_reports() {
    let _lock = exclusive();
    for config in configs() {
        let model = model(&config);
        let sources: Vec<Vec<u32>> = pairs().into_iter().map(|(source, _)| source).collect();
        let max_length = MaxLength::Relative { factor: 0.5, plus: 9 };
        let options =
            SearchOptions { compute: Some(Precision::F32), beam: 3, max_length, ..SearchOptions::default() };
        let found = search(&model, &sources, &options).expect("good sources");
        let again: Vec<_> = sources
            .iter()
            .map(|source| {
                search(&model, std::slice::from_ref(source), &options).expect("a good source").remove(0)
            })
            .collect();
        assert!(found == again, "{:?}: alone and in a batch", config.cell);
        let best: Vec<_> = sources
            .iter()
            .zip(&found)
            .map(|(source, found)| (source.clone(), found[0].tokens.clone()))
            .collect();
        let scores = score(&model, &best, &options).expect("good pairs");
        for (score, found) in scores.iter().zip(&found) {
            assert_eq!(
                score.log_probability.to_bits(),
                found[0].log_probability.to_bits(),
                "{:?}",
                config.cell
            );
        }
    }
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let _lock = exclusive();
    for config in configs() {
        let config = RecurrentConfig { dropout: 0.1, label_smoothing: 0.1, ..config };
        let trainer = |seed| {
            let model = Seq2Seq::new(config.clone(), seed).expect("a good configuration");
            let options = TrainerOptions::new(DType::Bf16, 3, Schedule::Constant { rate: 1e-2 });
            StepTrainer::new(model, options)
        };
        let steps = |trainer: &mut StepTrainer<Seq2Seq>, count| {
            for _ in 0..count {
                trainer.step(&batch(&pairs())).expect("a good batch");
            }
        };
        let mut whole = trainer(1);
        steps(&mut whole, 2);
        // A different seed: every value must come from the state.
        let mut second = trainer(2);
        second.restore(&whole.state()).expect("the same model");
        steps(&mut whole, 2);
        steps(&mut second, 2);
        assert!(whole.state() == second.state(), "{}", config.summary());
    }
}

#[test]
fn copy_task_converges_without_allocating() {
    let _lock = exclusive();
    let plain = RecurrentConfig { d_model: 48, d_encoder: 24, ..RecurrentConfig::tiny(12) };
    let with_attention = with_attention(&plain, AttentionScore::General, Hardness::Soft);
    for config in [
        &plain,
        &after(&with_attention, AttentionOrder::After),
        &after(&with_attention, AttentionOrder::Feeding),
        &convolutional(&with_attention),
    ] {
        let model = Seq2Seq::new(config.clone(), 1).expect("a good configuration");
        let pairs = copies();
        let options = TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 5e-3 });
        let mut trainer = StepTrainer::new(model, options);
        let mut losses = Vec::new();
        let mut taken = 0;
        for step in 0..150 {
            losses.push(trainer.step(&batch(&pairs)).expect("a good batch").loss);
            if step == 3 {
                taken = memory::bytes_from_system();
            }
        }
        let name = config.summary();
        assert_eq!(memory::bytes_from_system(), taken, "{name}: the pool has grown");
        assert!(losses[149] < 0.1 * losses[0], "{name}: {} after {}", losses[149], losses[0]);
    }
}
