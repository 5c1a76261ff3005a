//! Search on a GPU: the same results as on the CPU, and for a sentence alone the same as in any batch.

use heedful::decode::{
    Constraints, Hypothesis, Limits, MaxLength, Sampling, Scheduler, SearchInput, SearchOptions, SentenceId,
    attend, score, search, search_by,
};
use heedful::layers::Norm;
use heedful::models::{EncoderDecoderConfig, Generate};
use heedful::recipe::{AttentionKind, AttentionOrder, DecoderLayer, Family, PositionKind, Preset, Recipe};
use heedful::tasks::ModelConfig;
use heedful::tensor::ops::Cell;
use heedful::tensor::{Device, Precision};

const VOCABULARY: usize = 333;

const FROM_ZERO: &str = "beginning from zero";

/// A kind of model: its name and its changes to a recipe.
type Kind = (&'static str, fn(&mut Recipe));

const KINDS: [Kind; 12] = [
    ("post-norm", |_| {}),
    ("pre-norm, learned positions", |recipe| {
        (recipe.model.norm, recipe.model.positions) = (Norm::Pre, PositionKind::Learned);
    }),
    ("a window, an output bias", |recipe| {
        (recipe.model.window, recipe.model.output_bias) = (Some(3), true);
    }),
    ("odd widths", |recipe| {
        (recipe.model.d_model, recipe.model.heads, recipe.model.d_ff) = (36, 3, 50);
    }),
    ("SSRU", |recipe| recipe.model.decoder_layer = DecoderLayer::Ssru),
    (FROM_ZERO, |_| {}),
    ("convolutional", |recipe| recipe.start_from_family(Family::Convolutional)),
    ("dilated", |recipe| {
        recipe.start_from_family(Family::Convolutional);
        recipe.model.dilation = 2;
    }),
    ("LSTM, additive", |recipe| recurrent(recipe, Cell::Lstm, AttentionKind::Soft)),
    ("GRU without attention", |recipe| recurrent(recipe, Cell::Gru, AttentionKind::None)),
    ("hard attention", |recipe| recurrent(recipe, Cell::Gru, AttentionKind::Hard)),
    ("attention with input feeding", |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
        recipe.model.attend = AttentionOrder::Feeding;
    }),
];

fn recurrent(recipe: &mut Recipe, cell: Cell, attention: AttentionKind) {
    recipe.start_from_family(Family::Recurrent);
    (recipe.model.cell, recipe.model.attention) = (cell, attention);
}

fn models() -> Vec<(&'static str, Box<dyn Generate>)> {
    let build = |(name, change): Kind| {
        let mut recipe = Recipe::preset(Preset::Tiny);
        (recipe.model.d_model, recipe.model.heads, recipe.model.d_ff) = (128, 2, 256);
        change(&mut recipe);
        let config = recipe.model_config([VOCABULARY; 2], 2).expect("a good recipe");
        let ModelConfig::Translate(mut config) = config else { panic!("{name}: not a translator") };
        if let (FROM_ZERO, EncoderDecoderConfig::Transformer(config)) = (name, &mut config) {
            config.special.start_from_zero = true;
        }
        (name, config.build(7).expect("a good configuration"))
    };
    KINDS.map(build).into()
}

fn sources(count: u32) -> Vec<Vec<u32>> {
    (0..count)
        .map(|i| (0..1 + i * 13 % 40).map(|j| 4 + (i * 7 + j * 31) % (VOCABULARY as u32 - 4)).collect())
        .collect()
}

/// Untrained models rarely generate `<eos>`.
fn short() -> SearchOptions {
    SearchOptions { max_length: MaxLength::Relative { factor: 0.5, plus: 4 }, ..SearchOptions::default() }
}

fn on_gpu(model: &dyn Generate) -> &dyn Generate {
    model.params().move_to(Device::Cuda).expect("it fits");
    model
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn hypotheses_match_the_cpu() {
    for (name, model) in models() {
        let options =
            SearchOptions { beam: 4, n_best: 4, compute: Some(Precision::F32), ..SearchOptions::default() };
        let expected = search(&*model, &sources(30), &options).expect("good sources");
        let found = search(on_gpu(&*model), &sources(30), &options).expect("good sources");
        for (found, expected) in found.iter().zip(&expected) {
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found.tokens, expected.tokens, "{name}");
                assert!((found.score - expected.score).abs() < 1e-3, "{name}: {found:?} {expected:?}");
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_sentence_has_the_same_result_alone_and_in_any_batch() {
    let sampling = Sampling { temperature: 1.0, top_k: None, top_p: Some(0.9), seed: 5 };
    let fewer = Sampling { temperature: 0.7, top_k: Some(20), top_p: None, seed: 5 };
    let kinds = [
        SearchOptions { beam: 5, n_best: 5, ..short() },
        SearchOptions { beam: 1, ..short() },
        SearchOptions { beam: 3, no_repeat_ngram: Some(2), ..short() },
        SearchOptions { beam: 1, n_best: 2, sampling: Some(sampling), ..short() },
        SearchOptions { beam: 1, sampling: Some(fewer), ..short() },
    ];
    for (name, model) in models() {
        let model = on_gpu(&*model);
        for (kind, compute) in kinds.iter().flat_map(|kind| [(kind, Precision::F32), (kind, Precision::Bf16)])
        {
            let options = SearchOptions { compute: Some(compute), ..kind.clone() };
            let together = search(model, &sources(150), &options).expect("good sources");
            let small = SearchOptions { batch_tokens: Some(300), ..options.clone() };
            assert!(
                search(model, &sources(150), &small).expect("good sources") == together,
                "{name} in small batches"
            );
            for (source, together) in sources(150).iter().zip(&together).step_by(29) {
                let alone = search(model, std::slice::from_ref(source), &options).expect("a good source");
                assert!(alone[0] == *together, "{name}, {compute}, beam {}", options.beam);
            }
        }
    }
}

/// Enough sentences that the GPU works on some while the host prepares others; with the second size they run
/// one after another.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn pipelined_sentences_have_the_same_results() {
    let sampling = Sampling { temperature: 1.0, top_k: Some(20), top_p: None, seed: 5 };
    let kinds = [
        SearchOptions { beam: 5, n_best: 2, ..short() },
        SearchOptions { beam: 1, n_best: 3, sampling: Some(sampling), ..short() },
    ];
    for (name, model) in models() {
        let model = on_gpu(&*model);
        for kind in &kinds {
            let run = |batch_tokens: usize| {
                let options = SearchOptions { batch_tokens: Some(batch_tokens), ..kind.clone() };
                search(model, &sources(900), &options).expect("good sources")
            };
            let expected = run(1 << 12);
            for batch_tokens in [1 << 20, 1 << 16] {
                assert!(run(batch_tokens) == expected, "{name}, {batch_tokens} tokens at a time");
            }
            // Sentences that are cancelled during a step do not change the others.
            let options = SearchOptions { batch_tokens: Some(1 << 20), ..kind.clone() };
            let mut scheduler = Scheduler::new(model, &options).expect("good options");
            let ids: Vec<SentenceId> = sources(900).into_iter().map(|s| scheduler.push(s)).collect();
            let mut found = 0;
            for step in 0.. {
                scheduler.step().expect("it fits");
                while let Some((id, hypotheses)) = scheduler.poll() {
                    assert!(hypotheses.expect("a good source") == expected[id.0], "{name}");
                    found += 1;
                }
                if step == 2 {
                    ids.iter().step_by(3).for_each(|&id| scheduler.cancel(id));
                }
                if scheduler.is_idle() {
                    break;
                }
            }
            assert!(found >= 600, "{name}: {found} were found");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn concurrent_searches_do_not_affect_each_other() {
    for (name, model) in models().into_iter().step_by(4) {
        let options = SearchOptions { beam: 3, compute: Some(Precision::F32), ..SearchOptions::default() };
        let model = on_gpu(&*model);
        let found = search(model, &sources(60), &options).expect("good sources");
        // The weights are not rounded yet, and all threads need them rounded at once.
        model.params().set(&model.params().to_vec());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let again = search(model, &sources(60), &options).expect("good sources");
                        assert!(again == found, "{name}");
                    }
                });
            }
            // Meanwhile, other models are created and dropped.
            scope.spawn(|| {
                for (name, other) in models().into_iter().take(3) {
                    let first = search(on_gpu(&*other), &sources(5), &options).expect("good sources");
                    let again = search(&*other, &sources(5), &options).expect("good sources");
                    assert!(first == again, "{name}");
                }
            });
        });
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn scoring_gives_the_scores_that_a_search_reports() {
    for (name, model) in models() {
        let model = on_gpu(&*model);
        for compute in [Precision::F32, Precision::Bf16] {
            let options = SearchOptions { compute: Some(compute), ..SearchOptions::default() };
            let found = search(model, &sources(40), &options).expect("good sources");
            let best = |hypotheses: &Vec<Hypothesis>| hypotheses[0].tokens.clone();
            let pairs: Vec<_> = sources(40).into_iter().zip(found.iter().map(best)).collect();
            let scores = score(model, &pairs, &options).expect("good pairs");
            for (score, found) in scores.iter().zip(&found) {
                let sum: f64 = score.tokens.iter().sum();
                assert_eq!(sum, found[0].log_probability, "{name} in {compute}");
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn constraints_and_attention_match_the_cpu() {
    for (name, model) in models() {
        let inputs: Vec<SearchInput> = sources(10)
            .into_iter()
            .enumerate()
            .map(|(number, source)| {
                let phrases = if number % 2 == 0 { vec![vec![50, 60]] } else { Vec::new() };
                let prefix = if number % 3 == 0 { vec![9, 10] } else { Vec::new() };
                SearchInput { source, constraints: Constraints { prefix, phrases } }
            })
            .collect();
        let options = SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() };
        let run = |model: &dyn Generate| {
            let found = search_by(&model.into(), &inputs, &options, &Limits::default()).expect("good inputs");
            let maps = attend(model, &inputs[7].source, &[5, 6, 7, 8], &options).expect("a good pair");
            let weights: Vec<f32> = maps.iter().flat_map(|map| map.weights.concat().concat()).collect();
            (found.iter().map(|found| found[0].tokens.clone()).collect::<Vec<_>>(), weights)
        };
        let expected = run(&*model);
        let found = run(on_gpu(&*model));
        assert_eq!(found.0, expected.0, "{name}");
        assert_eq!(found.1.len(), expected.1.len());
        let off = found.1.iter().zip(&expected.1).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-4, "{name}: weights are {off:e} off");
    }
}
