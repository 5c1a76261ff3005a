//! Decoding step by step equals the full pass, and batching changes no bit.

use heedful::data::batch::Batch;
use heedful::decode::{Hypothesis, MaxLength, SearchOptions, attend, score, search};
use heedful::layers::{AttentionRole, Pass, Positions};
use heedful::models::convolution::{Balance, ConvolutionKind, Convolutional, ConvolutionalConfig};
use heedful::models::{Generate, Model, Row};
use heedful::tensor::cpu::{memory, threads};
use heedful::tensor::{DType, Ragged, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use super::exclusive;
use super::support::distance;

const VOCABULARY: usize = 61;

fn config() -> ConvolutionalConfig {
    // No width is a multiple of a tile.
    ConvolutionalConfig { d_model: 36, ..ConvolutionalConfig::tiny(VOCABULARY) }
}

fn variants() -> [ConvolutionalConfig; 5] {
    let positions = Positions::Learned { max_length: 50 };
    [
        config(),
        ConvolutionalConfig { balance: Balance::Norm, encoder_taps: 5, decoder_taps: 4, ..config() },
        ConvolutionalConfig { positions, decoder_taps: 1, ..config() },
        // The third layer's receptive field exceeds most sentences.
        ConvolutionalConfig { dilation: 4, decoder_layers: 3, encoder_layers: 3, ..config() },
        ConvolutionalConfig { dilation: 2, kind: ConvolutionKind::Relu, decoder_taps: 2, ..config() },
    ]
}

fn model(config: ConvolutionalConfig) -> Convolutional {
    Convolutional::new(config, 5).expect("a good configuration")
}

fn sources() -> Vec<Vec<u32>> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let lengths = [1, 9, 33, 2, 17, 5, 1];
    lengths.iter().enumerate().map(|(i, &n)| (i * 13..i * 13 + n).map(word).collect()).collect()
}

fn options(compute: DType, beam: usize) -> SearchOptions {
    let max_length = MaxLength::Relative { factor: 0.5, plus: 9 };
    SearchOptions {
        compute: Some(compute.into()),
        beam,
        n_best: beam.min(2),
        max_length,
        ..SearchOptions::default()
    }
}

#[test]
fn decoding_step_by_step_equals_the_full_pass() {
    let _lock = exclusive();
    for (config, compute) in variants().iter().flat_map(|c| [(c, DType::F32), (c, DType::Bf16)]) {
        let model = model(config.clone());
        let target: Vec<u32> = (0..20).map(|i| 3 + i * i % 50).collect();
        let pairs: Vec<_> = sources().into_iter().map(|source| (source, target.clone())).collect();
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        let whole = model.logits(&batch, &mut Pass::inference(compute)).to_vec();

        let mut decoding = model.start(compute.into());
        decoding.read(&batch.source, &batch.source_sequences);
        let mut stepped = vec![0.0; whole.len()];
        for step in 0..=target.len() {
            let row = |sentence| Row {
                sentence,
                parent: (step > 0).then_some(sentence),
                token: batch.target_in[step],
            };
            let rows: Vec<Row> = (0..pairs.len()).map(row).collect();
            let scores = decoding.step(&rows).to_vec();
            for (sentence, scores) in scores.chunks_exact(VOCABULARY).enumerate() {
                let at = (batch.target_sequences.range(sentence).start + step) * VOCABULARY;
                stepped[at..at + VOCABULARY].copy_from_slice(scores);
            }
        }
        // The full pass rounds attention weights and scores to bf16, single steps round neither.
        let tolerance = if compute == DType::F32 { 1e-5 } else { 2e-2 };
        let off = distance(&stepped, &whole);
        println!("{:?} {compute}: {off:.1e}", config.balance);
        assert!(off < tolerance, "{compute} {:?}: {off}", config.balance);
    }
}

#[test]
fn rows_can_be_dropped_kept_and_duplicated() {
    let _lock = exclusive();
    let model = model(config());
    let sources = sources();
    for compute in [DType::F32, DType::Bf16] {
        // The scores after a prefix, decoded alone.
        let after = |source: &[u32], prefix: &[u32]| {
            let mut decoding = model.start(compute.into());
            decoding.read(source, &Ragged::from_lengths([source.len()]));
            let step = |(i, &token): (usize, &u32)| {
                decoding.step(&[Row { sentence: 0, parent: (i > 0).then_some(0), token }]).to_vec()
            };
            prefix.iter().enumerate().map(step).last().expect("a prefix")
        };
        let mut decoding = model.start(compute.into());
        for source in &sources[1..3] {
            decoding.read(source, &Ragged::from_lengths([source.len()]));
        }
        // (sentence, past) of each row, and the parent rows of each step in the previous step.
        let mut pasts: Vec<(usize, Vec<u32>)> = vec![(0, vec![]), (1, vec![])];
        let plan: [&[Option<usize>]; 5] = [
            &[None, None],
            &[Some(1), Some(0), Some(1)],
            &[Some(2), Some(1), Some(0), Some(0)],
            &[Some(3), Some(2)],
            &[Some(1)],
        ];
        for (step, parents) in plan.into_iter().enumerate() {
            let next = parents.iter().enumerate().map(|(i, parent)| {
                let (sentence, mut past) = pasts[parent.unwrap_or(i)].clone();
                past.push(3 + (step * 7 + i) as u32);
                (sentence, past)
            });
            pasts = next.collect();
            let rows = pasts.iter().zip(parents).map(|((sentence, past), &parent)| Row {
                sentence: *sentence,
                parent,
                token: *past.last().expect("a token"),
            });
            let scores = decoding.step(&rows.collect::<Vec<_>>()).to_vec();
            for ((sentence, past), scores) in pasts.iter().zip(scores.chunks_exact(VOCABULARY)) {
                assert!(scores == after(&sources[1 + sentence], past), "{compute} step {step}: {past:?}");
            }
        }
    }
}

#[test]
fn batching_order_and_threads_change_no_bit() {
    let _lock = exclusive();
    let sources = sources();
    for (compute, beam) in [(DType::F32, 3), (DType::Bf16, 2)] {
        let model = model(config());
        let run = |sources: &[Vec<u32>], batch_tokens: usize, thread_count: usize| {
            threads::set_thread_count(thread_count);
            let options = SearchOptions { batch_tokens: Some(batch_tokens), ..options(compute, beam) };
            let found = search(&model, sources, &options).expect("good sources");
            found.iter().map(|found| bits(found)).collect::<Vec<_>>()
        };
        let together = run(&sources, 100_000, 1);
        for (batch_tokens, thread_count) in [(100_000, 2), (60, 2), (300, 1)] {
            assert!(together == run(&sources, batch_tokens, thread_count), "{compute} {batch_tokens}");
        }
        for (source, found) in sources.iter().zip(&together) {
            assert!(&run(std::slice::from_ref(source), 500, 2)[0] == found, "{compute} differs alone");
        }
    }
}

fn bits(found: &[Hypothesis]) -> Vec<(Vec<u32>, u64, u64)> {
    found.iter().map(|f| (f.tokens.clone(), f.score.to_bits(), f.log_probability.to_bits())).collect()
}

#[test]
fn scoring_an_output_gives_the_score_that_the_search_reported() {
    let _lock = exclusive();
    let (model, sources, options) = (model(config()), sources(), options(DType::F32, 3));
    let found = search(&model, &sources, &options).expect("good sources");
    let each = sources.iter().zip(&found);
    let pairs = each.flat_map(|(source, found)| found.iter().map(|f| (source.clone(), f.tokens.clone())));
    let pairs: Vec<_> = pairs.collect();
    let scored =
        score(&model, &pairs, &SearchOptions { batch_tokens: Some(77), ..options }).expect("good pairs");
    for (found, scored) in found.iter().flatten().zip(&scored) {
        assert_eq!(found.log_probability.to_bits(), scored.log_probability.to_bits());
    }
}

#[test]
fn gradients_do_not_depend_on_threads_and_logits_do_not_depend_on_the_batch() {
    let _lock = exclusive();
    let target = |source: &[u32]| source.iter().rev().copied().chain([7, 8]).collect::<Vec<u32>>();
    let pairs: Vec<_> = sources().into_iter().map(|s| (s.clone(), target(&s))).collect();
    let together = Batch::new(&pairs, 1, 2).expect("a good batch");
    for (config, compute) in variants().iter().flat_map(|c| [(c, DType::F32), (c, DType::Bf16)]) {
        let model = model(ConvolutionalConfig { dropout: 0.2, ..config.clone() });
        let gradients = |thread_count| {
            threads::set_thread_count(thread_count);
            model.params().clear_gradients();
            tape::backward(&model.loss(&together, &mut Pass::training(compute, 3, 1)).loss);
            model.params().gradients()
        };
        assert!(gradients(1) == gradients(2), "{compute} {:?}: threads", config.balance);

        let all = model.logits(&together, &mut Pass::inference(compute)).to_vec();
        for (i, pair) in pairs.iter().enumerate() {
            let own = Batch::new(std::slice::from_ref(pair), 1, 2).expect("a good batch");
            let alone = model.logits(&own, &mut Pass::inference(compute)).to_vec();
            let rows = together.target_sequences.range(i);
            let part = &all[rows.start * VOCABULARY..rows.end * VOCABULARY];
            assert!(alone == part, "{compute} {:?}: sentence {i} alone and in a batch", config.balance);
        }
    }
}

#[test]
fn attend_returns_every_weight_of_a_hypothesis() {
    let _lock = exclusive();
    let model = model(config());
    let maps = attend(&model, &[5, 6, 7, 8], &[8, 9], &options(DType::F32, 1)).expect("a good pair");
    let sites: Vec<_> = maps.iter().map(|map| (map.site.layer_name().to_string(), map.site.role)).collect();
    let expected = ["decoder.0.cross", "decoder.1.cross"];
    assert_eq!(sites, expected.map(|name| (name.to_owned(), AttentionRole::Cross)));
    for map in &maps {
        let weights = &map.weights[0][0];
        assert_eq!((map.heads(), weights.len()), (1, 3 * 4));
        assert!(weights.chunks_exact(4).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-4));
    }
}

#[test]
fn a_step_at_steady_state_allocates_nothing() {
    let _lock = exclusive();
    let target: Vec<u32> = (3..12).collect();
    let pairs: Vec<_> = sources().into_iter().map(|source| (source, target.clone())).collect();
    let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
    for (thread_count, compute) in [(1, DType::F32), (2, DType::Bf16)] {
        threads::set_thread_count(thread_count);
        let options = TrainerOptions::new(compute, 1, Schedule::Constant { rate: 1e-3 });
        let mut trainer = StepTrainer::new(model(ConvolutionalConfig { dropout: 0.1, ..config() }), options);
        let mut steps = |count| {
            for _ in 0..count {
                trainer.step(&batch).expect("a good batch");
            }
        };
        steps(2);
        let before = memory::bytes_from_system();
        steps(5);
        assert_eq!(
            memory::bytes_from_system(),
            before,
            "{thread_count} threads, {compute}: the pool has grown"
        );
    }
}

#[test]
fn a_resumed_run_has_the_same_bits() {
    let _lock = exclusive();
    let pairs: Vec<_> = sources().into_iter().map(|source| (source.clone(), source)).collect();
    let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
    for config in variants() {
        let config = ConvolutionalConfig { dropout: 0.1, label_smoothing: 0.1, ..config };
        let trainer = |seed| {
            let model = Convolutional::new(config.clone(), seed).expect("a good configuration");
            let options = TrainerOptions::new(DType::Bf16, 3, Schedule::Constant { rate: 1e-2 });
            StepTrainer::new(model, options)
        };
        let steps = |trainer: &mut StepTrainer<Convolutional>, count| {
            for _ in 0..count {
                trainer.step(&batch).expect("a good batch");
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
