use heedful_tensor::DType;

use super::*;
use crate::data::batch::BatchLayout;
use crate::decode::{MaxLength, Sampling};
use crate::decode::{Search, SearchOptions, score, search};
use crate::layers::Positions;
use crate::models::transformer::TransformerConfig;

fn model(positions: Positions) -> LanguageModel {
    let stack = StackConfig { positions, ..TransformerConfig::tiny(30).decoder() };
    let config = LanguageConfig { stack, text: TextShape::Lines, label_smoothing: 0.0, output_bias: false };
    LanguageModel::new(config, 3).expect("a good configuration")
}

#[test]
fn no_token_sees_a_later_one() {
    let model = model(Positions::Sinusoidal);
    let logits = |text: &[u32]| {
        let batch = Batch::of(BatchLayout::Lines, &[(vec![], text.to_vec())], [1, 2]).expect("a good batch");
        model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec()
    };
    let (one, other) = (logits(&[5, 6, 7, 8]), logits(&[5, 6, 9, 4]));
    assert_eq!(one[..3 * 30], other[..3 * 30]);
    assert_ne!(one[3 * 30..], other[3 * 30..]);
}

#[test]
fn a_given_text_is_as_probable_as_the_loss_says() {
    let model = model(Positions::Learned { max_length: 12 });
    let text = vec![7, 9, 4, 20];
    let batch = Batch::of(BatchLayout::Lines, &[(vec![], text.clone())], [1, 2]).expect("a good batch");
    let expected = model.loss(&batch, &mut Pass::inference(DType::F32)).negative_log_likelihood();
    let options = SearchOptions::default();
    let whole = score(&model, &[(vec![1], text.clone())], &options).expect("known tokens");
    assert!(
        (whole[0].log_probability + expected).abs() < 1e-4,
        "{} and {expected}",
        whole[0].log_probability
    );
    // The same, half of it as a prompt.
    let rest = score(&model, &[(vec![1, 7, 9], vec![4, 20])], &options).expect("known tokens");
    assert_eq!(rest[0].tokens, whole[0].tokens[2..]);
}

#[test]
fn what_follows_a_prompt_depends_on_no_other_prompt() {
    let model = model(Positions::Sinusoidal);
    let prompts: Vec<Vec<u32>> =
        vec![vec![1], vec![1, 5, 6, 7], vec![1, 9], vec![1, 8, 8, 8, 8, 8, 8], vec![1, 5, 6, 7, 8]];
    let sampling = Some(Sampling { seed: 4, ..Sampling::default() });
    for sampling in [None, sampling] {
        let options = SearchOptions {
            sampling,
            n_best: 2,
            max_length: MaxLength::Absolute(12),
            batch_tokens: 9,
            ..SearchOptions::default()
        };
        let together = search(&model, &prompts, &options).expect("known tokens");
        for (prompt, found) in prompts.iter().zip(&together) {
            let alone = search(&model, std::slice::from_ref(prompt), &options).expect("known tokens");
            assert_eq!(alone[0], *found);
            assert_eq!(found.len(), 2);
            let given = score(&model, &[(prompt.clone(), found[0].tokens.clone())], &options);
            assert_eq!(given.expect("known tokens")[0].log_probability, found[0].log_probability);
        }
    }
}

/// A prompt of so many tokens.
fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| if i == 0 { 1 } else { 4 + (i * 7 + length) % 26 }).collect()
}

#[test]
fn a_short_prompt_is_answered_while_a_long_one_is_read_and_both_as_if_alone() {
    let model = model(Positions::Sinusoidal);
    let options = SearchOptions { max_length: MaxLength::Absolute(5), ..SearchOptions::default() };
    let alone = |prompt: &Vec<u32>| {
        search(&model, std::slice::from_ref(prompt), &options).expect("known tokens").remove(0)
    };
    // Around the slices in which prompts are read.
    let prompts = [200, 3, 16, 17, 18, 33].map(prompt);
    let mut search = Search::new(&model, &options).expect("good options");
    search.push(0, prompts[0].clone()).expect("known tokens");
    assert!(search.step().is_empty());
    for (ticket, prompt) in prompts.iter().enumerate().skip(1) {
        search.push(ticket, prompt.clone()).expect("known tokens");
    }
    let mut found = Vec::new();
    while !search.is_idle() {
        found.extend(search.step());
    }
    assert_eq!(found.last().map(|(ticket, _)| *ticket), Some(0), "the long one was read meanwhile");
    assert_eq!(found.len(), prompts.len());
    for (ticket, hypotheses) in found {
        assert_eq!(hypotheses.expect("finite scores"), alone(&prompts[ticket]), "prompt {ticket}");
    }
}

#[test]
fn a_long_prompt_that_is_cancelled_while_it_is_read_leaves_no_trace() {
    let model = model(Positions::Sinusoidal);
    let options = SearchOptions { max_length: MaxLength::Absolute(5), ..SearchOptions::default() };
    let mut search = Search::new(&model, &options).expect("good options");
    search.push(0, prompt(200)).expect("known tokens");
    search.push(1, prompt(100)).expect("known tokens");
    assert!(search.step().is_empty());
    search.cancel(0);
    let found: Vec<_> = std::iter::from_fn(|| (!search.is_idle()).then(|| search.step())).flatten().collect();
    let expected = crate::decode::search(&model, &[prompt(100)], &options).expect("known tokens").remove(0);
    assert_eq!(found, [(1, Ok(expected))]);
}
