use heedful_tensor::DType;

use super::*;
use crate::data::batch::BatchLayout;
use crate::decode::{MaxLength, Sampling};
use crate::decode::{SearchOptions, score, search};
use crate::layers::Positions;
use crate::models::transformer::TransformerConfig;

fn model(positions: Positions) -> LanguageModel {
    let stack = StackConfig { positions, ..TransformerConfig::tiny(30).decoder() };
    let config = LanguageConfig { stack, text: TextShape::Lines, label_smoothing: 0.0 };
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
