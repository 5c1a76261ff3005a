//! Search with a Transformer: decoding step by step equals the full pass, and batching changes no bit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heedful::data::batch::Batch;
use heedful::decode::{
    AlignmentLayer, DecodeError, Hypothesis, MaxLength, Sampling, Scheduler, SearchOptions, SentenceId,
    align, attend, attend_to_source, score, search,
};
use heedful::layers::Tying;
use heedful::layers::{AttentionRole, Norm, Pass, Positions};
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{BrokenModel, Generate, Model, Row};
use heedful::tensor::cpu::threads;
use heedful::tensor::{Precision, Ragged};

pub(crate) const VOCABULARY: usize = 61;

/// Tests that set the number of threads, which is process-wide, run one at a time.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn config() -> TransformerConfig {
    // No width is a multiple of a tile.
    TransformerConfig {
        d_model: 36,
        d_ff: 70,
        heads: 3,
        encoder_layers: 2,
        decoder_layers: 2,
        ..TransformerConfig::tiny(VOCABULARY)
    }
}

pub(crate) fn model(config: TransformerConfig) -> Transformer {
    let model = Transformer::new(config, 5).expect("a good configuration");
    // Untrained models have flat distributions; sharper scores make searches differ.
    for param in model.params().iter().filter(|param| param.name() == "embedding.weight") {
        let sharper: Vec<f32> = param.to_vec().iter().map(|x| 3.0 * x).collect();
        param.set(&sharper);
    }
    model
}

pub(crate) fn sources() -> Vec<Vec<u32>> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let lengths = [1, 9, 33, 2, 17, 5, 9, 40, 1, 12, 3];
    lengths.iter().enumerate().map(|(i, &n)| (i * 13..i * 13 + n).map(word).collect()).collect()
}

pub(crate) fn options(compute: Precision, beam: usize) -> SearchOptions {
    let max_length = MaxLength::Relative { factor: 0.5, plus: 9 };
    SearchOptions {
        compute: Some(compute),
        beam,
        n_best: beam.min(2),
        max_length,
        ..SearchOptions::default()
    }
}

#[test]
fn decoding_step_by_step_equals_the_full_pass() {
    let _lock = exclusive();
    let variants = [
        config(),
        TransformerConfig { norm: Norm::Pre, window: Some(3), ..config() },
        TransformerConfig {
            positions: Positions::Learned { max_length: 50 },
            key_width: Some(24),
            ..config()
        },
    ];
    for (config, compute) in variants.iter().flat_map(|config| {
        [Precision::F32, Precision::Bf16, Precision::Int8].map(|compute| (config, compute))
    }) {
        let model = model(config.clone());
        let target: Vec<u32> = (0..20).map(|i| 3 + i * i % 50).collect();
        let pairs: Vec<_> = sources().into_iter().map(|source| (source, target.clone())).collect();
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        let whole = model.logits(&batch, &mut Pass::inference(compute)).to_vec();

        let mut decoding = model.start(compute);
        decoding.read(&batch.source, &batch.source_sequences);
        let mut off = 0.0_f32;
        for step in 0..=target.len() {
            let rows: Vec<Row> = (0..pairs.len())
                .map(|sentence| Row {
                    sentence,
                    parent: (step > 0).then_some(sentence),
                    token: batch.target_in[step],
                })
                .collect();
            let scores = decoding.step(&rows).to_vec();
            for (sentence, scores) in scores.chunks_exact(VOCABULARY).enumerate() {
                let at = (batch.target_sequences.range(sentence).start + step) * VOCABULARY;
                let pairs = scores.iter().zip(&whole[at..at + VOCABULARY]);
                off = pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(off, f32::max);
            }
        }
        let tolerance = match compute {
            Precision::F32 => 2e-5,
            Precision::Bf16 => 8e-2,
            // Both quantize values that differ slightly, because cached keys and values are bf16: near a
            // rounding boundary the int8 values differ.
            Precision::Int8 => 2e-1,
        };
        assert!(off < tolerance, "{compute} {:?}: {off}", config.norm);
    }
}

#[test]
fn rows_can_be_dropped_kept_and_duplicated() {
    let _lock = exclusive();
    let model = model(config());
    let sources = sources();
    for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
        // The scores after a prefix, decoded alone.
        let after = |source: &[u32], prefix: &[u32]| {
            let mut decoding = model.start(compute);
            decoding.read(source, &Ragged::from_lengths([source.len()]));
            let step = |(i, &token): (usize, &u32)| {
                decoding.step(&[Row { sentence: 0, parent: (i > 0).then_some(0), token }]).to_vec()
            };
            prefix.iter().enumerate().map(step).last().expect("a prefix")
        };
        let mut decoding = model.start(compute);
        decoding.read(&sources[2], &Ragged::from_lengths([sources[2].len()]));
        let mut pasts: Vec<(usize, Vec<u32>)> = vec![(0, vec![1])];
        let mut rows = vec![Row { sentence: 0, parent: None, token: 1 }];
        for step in 0..12_u32 {
            let scores = decoding.step(&rows).to_vec();
            for ((sentence, past), scores) in pasts.iter().zip(scores.chunks_exact(VOCABULARY)) {
                assert!(after(&sources[[2, 1][*sentence]], past) == scores, "{compute}: {past:?}");
            }
            // Every row but the first is continued twice; at times a new sentence arrives and the first one
            // leaves.
            let first = usize::from(pasts.len() > 5);
            let mut next: Vec<usize> = (first..pasts.len()).flat_map(|row| [row, row]).collect();
            next.drain(..next.len().saturating_sub(9));
            rows = next
                .iter()
                .enumerate()
                .map(|(i, &parent)| Row {
                    sentence: pasts[parent].0,
                    parent: Some(parent),
                    token: 3 + (step * 7 + i as u32) % 50,
                })
                .collect();
            pasts = next
                .iter()
                .zip(&rows)
                .map(|(&parent, row)| (pasts[parent].0, [&pasts[parent].1[..], &[row.token]].concat()))
                .collect();
            if step == 3 {
                decoding.read(&sources[1], &Ragged::from_lengths([sources[1].len()]));
                rows.push(Row { sentence: 1, parent: None, token: 1 });
                pasts.push((1, vec![1]));
            }
            if step == 7 {
                let (kept, kept_pasts) = rows
                    .iter()
                    .zip(&pasts)
                    .filter(|(row, _)| row.sentence == 1)
                    .map(|(r, p)| (*r, p.clone()))
                    .unzip();
                (rows, pasts) = (kept, kept_pasts);
            }
        }
    }
}

#[test]
fn batching_order_and_threads_change_no_bit() {
    let _lock = exclusive();
    let sources = sources();
    for (compute, beam) in [
        (Precision::F32, 1),
        (Precision::F32, 5),
        (Precision::Bf16, 1),
        (Precision::Bf16, 4),
        (Precision::Int8, 1),
        (Precision::Int8, 4),
    ] {
        let model = model(config());
        for sampling in [None, Some(Sampling { top_p: Some(0.9), ..Sampling::default() })] {
            let options = SearchOptions { sampling, ..options(compute, beam) };
            let run = |sources: &[Vec<u32>], batch_tokens: usize, thread_count: usize| {
                threads::set_thread_count(thread_count);
                let options = SearchOptions { batch_tokens: Some(batch_tokens), ..options.clone() };
                search(&model, sources, &options)
                    .expect("good sources")
                    .iter()
                    .map(|found| bits(found))
                    .collect::<Vec<_>>()
            };
            let together = run(&sources, 100_000, 1);
            for (batch_tokens, thread_count) in [(100_000, 2), (1, 1), (60, 2), (300, 1), (1000, 2)] {
                assert!(
                    together == run(&sources, batch_tokens, thread_count),
                    "{compute} {beam} {batch_tokens}"
                );
            }
            let mut reversed = sources.clone();
            reversed.reverse();
            let mut backwards = run(&reversed, 500, 2);
            backwards.reverse();
            assert!(together == backwards, "{compute} {beam} reversed");
            for (source, found) in sources.iter().zip(&together) {
                assert!(
                    &run(std::slice::from_ref(source), 500, 2)[0] == found,
                    "{compute} {beam} differs alone"
                );
            }
        }
    }
}

pub(crate) fn bits(found: &[Hypothesis]) -> Vec<(Vec<u32>, u64, u64)> {
    found.iter().map(|f| (f.tokens.clone(), f.score.to_bits(), f.log_probability.to_bits())).collect()
}

#[test]
fn scoring_an_output_gives_the_score_that_the_search_reported() {
    let _lock = exclusive();
    for (compute, norm) in [(Precision::F32, Norm::Post), (Precision::Bf16, Norm::Pre)] {
        let model = model(TransformerConfig { norm, ..config() });
        let options = options(compute, 4);
        let sources = sources();
        let found = search(&model, &sources, &options).expect("good sources");
        let pairs: Vec<_> = sources
            .iter()
            .zip(&found)
            .flat_map(|(source, found)| found.iter().map(|found| (source.clone(), found.tokens.clone())))
            .collect();
        let scored =
            score(&model, &pairs, &SearchOptions { batch_tokens: Some(77), ..options }).expect("good pairs");
        for (found, scored) in found.iter().flatten().zip(&scored) {
            assert_eq!(found.log_probability.to_bits(), scored.log_probability.to_bits());
        }
        // It equals the loss up to rounding.
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        let loss = model.loss(&batch, &mut Pass::inference(compute)).negative_log_likelihood();
        let total: f64 = scored.iter().map(|scored| scored.log_probability).sum();
        assert!((total + loss).abs() < 1e-2 * loss, "{compute}: {total} and {loss}");
    }
}

#[test]
fn learned_positions_end_the_output_and_broken_parameters_are_an_error() {
    let _lock = exclusive();
    let model = model(TransformerConfig { positions: Positions::Learned { max_length: 8 }, ..config() });
    let options = SearchOptions { min_length: 30, ..options(Precision::F32, 2) };
    let found = search(&model, &[vec![5, 6]], &options).expect("a good source");
    assert_eq!(found[0][0].tokens.len(), 7);

    model.params().get("decoder.0.self_attention.qkv.bias").expect("a parameter").set(&[f32::NAN; 108]);
    let broken = search(&model, &[vec![5, 6]], &options).expect_err("NaN");
    assert!(broken.to_string().contains("sentence 0 are not finite"), "{broken}");
}

#[test]
fn attend_returns_every_weight_of_a_hypothesis() {
    let _lock = exclusive();
    let model = model(config());
    let (source, target) = (vec![5, 6, 7, 8], vec![8, 9]);
    let maps = attend(&model, &source, &target, &options(Precision::F32, 1)).expect("a good pair");
    let count = |kind| maps.iter().filter(|map| map.site.role == kind).count();
    assert_eq!(
        [AttentionRole::EncoderSelf, AttentionRole::DecoderSelf, AttentionRole::Cross].map(count),
        [2; 3]
    );
    for map in &maps {
        let (rows, columns) = match map.site.role {
            AttentionRole::EncoderSelf => (4, 4),
            AttentionRole::DecoderSelf => (3, 3),
            AttentionRole::Cross => (3, 4),
            AttentionRole::Pooling => panic!("a translator has no pooling"),
        };
        assert_eq!((map.heads(), map.weights[0][0].len()), (3, rows * columns));
    }
    let cross_only =
        attend_to_source(&model, &source, &target, &options(Precision::F32, 1)).expect("a good pair");
    let cross = maps.iter().filter(|map| map.site.role == AttentionRole::Cross);
    assert!(
        cross_only.iter().map(|map| (&map.site, &map.weights)).eq(cross.map(|map| (&map.site, &map.weights)))
    );
    let words =
        align(&maps, AlignmentLayer::Sharpest, &[Some(0), Some(0), Some(1), None], &[Some(0), Some(1)]);
    assert_eq!(words.iter().map(|&(_, target)| target).collect::<Vec<_>>(), [0, 1]);
    assert!(words.iter().all(|&(source, _)| source < 2));
}

#[test]
fn sources_with_different_options_share_a_search_and_keep_their_bits() {
    let _lock = exclusive();
    let model = model(config());
    for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let sampling = Some(Sampling { seed: 9, top_k: Some(7), ..Sampling::default() });
        let kinds = [
            options(compute, 1),
            options(compute, 5),
            SearchOptions { sampling, ..options(compute, 2) },
            SearchOptions { no_repeat_ngram: Some(2), min_length: 4, ..options(compute, 3) },
        ];
        let mut shared = Scheduler::new(&model, &kinds[0]).expect("good options");
        let of_kind = |i: usize| &kinds[i % kinds.len()];
        for (i, source) in sources().into_iter().enumerate() {
            shared.push_with(source, Arc::new(of_kind(i).clone()));
        }
        let mut found = vec![Vec::new(); sources().len()];
        while !shared.is_idle() {
            shared.step().expect("it fits");
            while let Some((id, hypotheses)) = shared.poll() {
                found[id.0] = hypotheses.expect("finite scores");
            }
        }
        for (i, source) in sources().into_iter().enumerate() {
            let by_itself = search(&model, &[source], of_kind(i)).expect("a good source");
            assert_eq!(found[i], by_itself[0], "{compute}, source {i}");
        }
    }
}

#[test]
fn a_cancelled_source_does_not_change_the_others() {
    let _lock = exclusive();
    let model = model(config());
    for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let options = options(compute, 3);
        let alone = search(&model, &sources(), &options).expect("good sources");
        // Only a few fit at a time, so that some of the cancelled ones are being decoded and others still
        // wait.
        let narrow = SearchOptions { batch_tokens: Some(150), ..options };
        for moment in [0, 1, 4, 9] {
            let mut shared = Scheduler::new(&model, &narrow).expect("good options");
            let ids: Vec<SentenceId> = sources().into_iter().map(|source| shared.push(source)).collect();
            let (mut found, mut step) = (vec![None; sources().len()], 0);
            while !shared.is_idle() {
                if step == moment {
                    ids.iter().step_by(2).for_each(|&id| shared.cancel(id));
                    shared.cancel(SentenceId(1000));
                }
                shared.step().expect("it fits");
                while let Some((SentenceId(i), hypotheses)) = shared.poll() {
                    assert!(i % 2 == 1 || step < moment, "{i} was cancelled");
                    found[i] = Some(hypotheses.expect("finite scores"));
                }
                step += 1;
            }
            for i in (1..sources().len()).step_by(2) {
                assert_eq!(found[i].as_ref(), Some(&alone[i]), "{compute}, cancelled at {moment}");
            }
        }
    }
}

#[test]
fn a_source_with_nan_scores_is_an_error_and_the_others_keep_their_bits() {
    let _lock = exclusive();
    let model = model(TransformerConfig { tying: Tying::TargetOutput, ..config() });
    let options = options(Precision::Bf16, 3);
    let good = search(&model, &sources(), &options).expect("good sources");
    // A word that no other source contains, with a NaN embedding.
    let (broken, word) = (7, 2);
    let mut sources = sources();
    sources[broken][3] = word;
    let table =
        model.params().iter().find(|param| param.name() == "source_embedding.weight").expect("a table");
    let mut values = table.to_vec();
    values[word as usize * config().d_model] = f32::NAN;
    table.set(&values);

    let mut shared = Scheduler::new(&model, &options).expect("good options");
    for source in sources.iter().cloned() {
        shared.push(source);
    }
    let mut found = vec![None; sources.len()];
    while !shared.is_idle() {
        shared.step().expect("it fits");
        while let Some((id, hypotheses)) = shared.poll() {
            found[id.0] = Some(hypotheses);
        }
    }
    for (i, found) in found.into_iter().enumerate() {
        let found = found.expect("an end");
        if i == broken {
            assert!(
                matches!(found, Err(DecodeError::Broken(BrokenModel { sentence })) if sentence == broken),
                "{found:?}"
            );
        } else {
            assert_eq!(found.as_ref(), Ok(&good[i]), "source {i}");
        }
    }
}
