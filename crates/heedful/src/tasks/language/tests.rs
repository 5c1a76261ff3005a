use heedful_tensor::DType;

use super::*;
use crate::data::batch::BatchLayout;
use crate::decode::{DecodeError, Hypothesis, Scheduler, SearchOptions, SentenceId, score, search};
use crate::decode::{MaxLength, Sampling};
use crate::layers::Positions;
use crate::models::recurrent::{Cell, RecurrentDecoderConfig};
use crate::models::transformer::{StackConfig, TransformerConfig};
use crate::train::{Schedule, StepTrainer, TrainerOptions};

fn model(positions: Positions) -> LanguageModel {
    with_stack(StackConfig { positions, ..TransformerConfig::tiny(30).decoder() }, false)
}

fn with_stack(stack: impl Into<LanguageStack>, output_bias: bool) -> LanguageModel {
    let stack = stack.into();
    let config =
        LanguageConfig { stack, text: TextShape::Lines, block: None, label_smoothing: 0.0, output_bias };
    LanguageModel::new(config, 3).expect("a good configuration")
}

fn recurrent(cell: Cell) -> RecurrentDecoderConfig {
    let (d_model, layers) = (20, 2);
    RecurrentDecoderConfig { vocabulary: 30, cell, d_model, layers, norm_epsilon: None, dropout: 0.1 }
}

/// One model of each kind, some with an output bias.
fn models() -> Vec<LanguageModel> {
    let mut models: Vec<LanguageModel> =
        [Cell::Simple, Cell::Gru, Cell::Lstm].map(|cell| with_stack(recurrent(cell), true)).into();
    models
        .push(with_stack(RecurrentDecoderConfig { norm_epsilon: Some(1e-5), ..recurrent(Cell::Gru) }, false));
    models.push(model(Positions::Sinusoidal));
    models
}

#[test]
fn no_token_attends_to_a_later_one() {
    models().iter().for_each(check_no_token_sees_a_later_one);
}

fn check_no_token_sees_a_later_one(model: &LanguageModel) {
    let logits = |text: &[u32]| {
        let batch = Batch::of(BatchLayout::Lines, &[(vec![], text.to_vec())], [1, 2]).expect("a good batch");
        model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec()
    };
    let (one, other) = (logits(&[5, 6, 7, 8]), logits(&[5, 6, 9, 4]));
    assert_eq!(one[..3 * 30], other[..3 * 30]);
    assert_ne!(one[3 * 30..], other[3 * 30..]);
}

#[test]
fn scores_of_a_given_text_agree_with_the_loss() {
    check_given_text(&model(Positions::Learned { max_length: 12 }));
    models().iter().for_each(check_given_text);
}

fn check_given_text(model: &LanguageModel) {
    let text = vec![7, 9, 4, 20];
    let batch = Batch::of(BatchLayout::Lines, &[(vec![], text.clone())], [1, 2]).expect("a good batch");
    let expected = model.loss(&batch, &mut Pass::inference(DType::F32)).negative_log_likelihood();
    let options = SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() };
    let whole = score(model, &[(vec![1], text.clone())], &options).expect("known tokens");
    assert!(
        (whole[0].log_probability + expected).abs() < 1e-4,
        "{} and {expected}",
        whole[0].log_probability
    );
    // The same with half of the text as a prompt.
    let rest = score(model, &[(vec![1, 7, 9], vec![4, 20])], &options).expect("known tokens");
    assert_eq!(rest[0].tokens, whole[0].tokens[2..]);
}

#[test]
fn the_continuation_of_a_prompt_does_not_depend_on_other_prompts() {
    models().iter().for_each(check_prompts_alone_and_together);
}

fn check_prompts_alone_and_together(model: &LanguageModel) {
    let prompts: Vec<Vec<u32>> =
        vec![vec![1], vec![1, 5, 6, 7], vec![1, 9], vec![1, 8, 8, 8, 8, 8, 8], vec![1, 5, 6, 7, 8]];
    let sampling = Some(Sampling { seed: 4, ..Sampling::default() });
    for sampling in [None, sampling] {
        let options = SearchOptions {
            sampling,
            n_best: 2,
            max_length: MaxLength::Absolute(12),
            batch_tokens: Some(9),
            compute: Some(Precision::F32),
            ..SearchOptions::default()
        };
        let together = search(model, &prompts, &options).expect("known tokens");
        for (prompt, found) in prompts.iter().zip(&together) {
            let alone = search(model, std::slice::from_ref(prompt), &options).expect("known tokens");
            assert_eq!(alone[0], *found);
            assert_eq!(found.len(), 2);
            let given = score(model, &[(prompt.clone(), found[0].tokens.clone())], &options);
            assert_eq!(given.expect("known tokens")[0].log_probability, found[0].log_probability);
        }
    }
}

/// A prompt of this length.
fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| if i == 0 { 1 } else { 4 + (i * 7 + length) % 26 }).collect()
}

#[test]
fn a_short_prompt_generates_during_the_prefill_of_a_long_one_and_both_as_if_alone() {
    models().iter().for_each(check_long_prompts);
}

fn check_long_prompts(model: &LanguageModel) {
    let options = SearchOptions {
        max_length: MaxLength::Absolute(5),
        compute: Some(Precision::F32),
        ..SearchOptions::default()
    };
    let alone = |prompt: &Vec<u32>| {
        search(model, std::slice::from_ref(prompt), &options).expect("known tokens").remove(0)
    };
    // Lengths around multiples of the prefill chunk.
    let prompts = [200, 3, 16, 17, 18, 33].map(prompt);
    let mut scheduler = Scheduler::new(model, &options).expect("good options");
    scheduler.push(prompts[0].clone());
    scheduler.step().expect("it fits");
    assert!(scheduler.poll().is_none());
    for prompt in &prompts[1..] {
        scheduler.push(prompt.clone());
    }
    let found = all_found(&mut scheduler);
    assert_eq!(found.last().map(|(id, _)| id.0), Some(0), "the long one was read meanwhile");
    assert_eq!(found.len(), prompts.len());
    for (SentenceId(number), hypotheses) in found {
        assert_eq!(hypotheses.expect("finite scores"), alone(&prompts[number]), "prompt {number}");
    }
}

fn all_found(scheduler: &mut Scheduler<'_>) -> Vec<(SentenceId, Result<Vec<Hypothesis>, DecodeError>)> {
    let mut found = Vec::new();
    while !scheduler.is_idle() {
        scheduler.step().expect("it fits");
        found.extend(std::iter::from_fn(|| scheduler.poll()));
    }
    found
}

#[test]
fn a_prompt_cancelled_during_prefill_has_no_effect_on_others() {
    models().iter().for_each(check_cancelled_prompts);
}

fn check_cancelled_prompts(model: &LanguageModel) {
    let options = SearchOptions {
        max_length: MaxLength::Absolute(5),
        compute: Some(Precision::F32),
        ..SearchOptions::default()
    };
    let mut scheduler = Scheduler::new(model, &options).expect("good options");
    let [long, short] = [200, 100].map(|length| scheduler.push(prompt(length)));
    scheduler.step().expect("it fits");
    assert!(scheduler.poll().is_none());
    scheduler.cancel(long);
    let expected = search(model, &[prompt(100)], &options).expect("known tokens").remove(0);
    assert_eq!(all_found(&mut scheduler), [(short, Ok(expected))]);
}

#[test]
fn recurrent_language_models_learn_and_every_parameter_has_a_gradient() {
    // Each text counts up from its first token.
    let texts: Vec<(Vec<u32>, Vec<u32>)> = (4..12).map(|i| (vec![], (i..i + 6).collect())).collect();
    let batch = Batch::of(BatchLayout::Lines, &texts, [1, 2]).expect("a good batch");
    for cell in [Cell::Simple, Cell::Gru, Cell::Lstm] {
        let stack = RecurrentDecoderConfig { dropout: 0.0, ..recurrent(cell) };
        let model = with_stack(stack, true);
        let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        heedful_tensor::tape::backward(&found.loss);
        for param in model.params().iter() {
            assert!(param.gradient().iter().any(|&g| g != 0.0), "{cell:?}: {}", param.name());
        }
        let options = TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 1e-2 });
        let mut trainer = StepTrainer::new(model, options);
        for _ in 0..150 {
            trainer.step(&batch).expect("a good step");
        }
        let options = SearchOptions {
            max_length: MaxLength::Absolute(3),
            compute: Some(Precision::F32),
            ..SearchOptions::default()
        };
        let found = search(trainer.model(), &[vec![1, 5, 6, 7]], &options).expect("known tokens");
        assert!(found[0][0].tokens.starts_with(&[8, 9]), "{cell:?}: {:?}", found[0][0].tokens);
    }
}

/// A reference LSTM of one layer in f64.
#[test]
fn a_recurrent_language_model_matches_its_formula() {
    let stack = RecurrentDecoderConfig { layers: 1, ..recurrent(Cell::Lstm) };
    let model = with_stack(stack, true);
    let values = |name: &str| -> Vec<f64> {
        let param = model.params().get(name).unwrap_or_else(|| panic!("{name}"));
        param.to_vec().into_iter().map(f64::from).collect()
    };
    model
        .params()
        .get("output.bias")
        .expect("a bias")
        .set(&(0..30).map(|i| i as f32 * 0.01).collect::<Vec<_>>());
    let (d, table, bias) = (20, values("embedding.weight"), values("output.bias"));
    let (input, input_bias) =
        (values("decoder.0.forward.input.weight"), values("decoder.0.forward.input.bias"));
    let hidden = values("decoder.0.forward.hidden.weight");
    let (mut h, mut c) = (vec![0.0; d], vec![0.0; d]);
    let text = [1_u32, 7, 9, 4, 20];
    let mut expected = Vec::new();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    for token in text {
        let x: Vec<f64> = (0..d).map(|i| (d as f64).sqrt() * table[token as usize * d + i]).collect();
        let gate = |g: usize, i: usize| -> f64 {
            let column = g * d + i;
            let sum: f64 =
                (0..d).map(|k| x[k] * input[k * 4 * d + column] + h[k] * hidden[k * 4 * d + column]).sum();
            sum + input_bias[column]
        };
        // PyTorch's order of gates: input, forget, cell, output.
        let gates: Vec<[f64; 4]> = (0..d).map(|i| [0, 1, 2, 3].map(|g| gate(g, i))).collect();
        for (i, [input, forget, cell, output]) in gates.into_iter().enumerate() {
            c[i] = sigmoid(forget) * c[i] + sigmoid(input) * cell.tanh();
            h[i] = sigmoid(output) * c[i].tanh();
        }
        expected.extend(
            (0..30).map(|token| (0..d).map(|i| h[i] * table[token * d + i]).sum::<f64>() + bias[token]),
        );
    }
    let batch = Batch::of(BatchLayout::Lines, &[(vec![], text[1..].to_vec())], [1, 2]).expect("a good batch");
    let found = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} and {expected}");
    }
}

#[test]
fn configurations_name_their_stack_and_older_ones_still_load() {
    let config = model(Positions::Sinusoidal).config().clone();
    let mut json = serde_json::to_value(&config).expect("JSON");
    let fields: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["label_smoothing", "stack", "text"]);
    assert_eq!(serde_json::from_value::<LanguageConfig>(json.clone()).expect("as before"), config);
    let recurrent = with_stack(recurrent(Cell::Gru), true).config().clone();
    let other = serde_json::to_value(&recurrent).expect("JSON");
    assert_eq!(serde_json::from_value::<LanguageConfig>(other.clone()).expect("as written"), recurrent);
    json["recurrent"] = other["recurrent"].clone();
    let error = serde_json::from_value::<LanguageConfig>(json.clone()).expect_err("two stacks").to_string();
    assert!(error.contains("not both"), "{error}");
    json.as_object_mut()
        .expect("an object")
        .retain(|name, _| !["stack", "recurrent"].contains(&name.as_str()));
    let error = serde_json::from_value::<LanguageConfig>(json).expect_err("no stack").to_string();
    assert!(error.contains("neither"), "{error}");
}
