use heedful_tensor::{DType, tape};

use super::*;
use crate::data::batch::BatchLayout;
use crate::data::{UNK as MASK, special};
use crate::models::transformer::TransformerConfig;

const VOCABULARY: usize = 50;

fn masking() -> Masking {
    Masking::new(VOCABULARY, &SpecialTokens::default())
}

fn texts(lengths: &[usize]) -> (Vec<u32>, Ragged) {
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    ((0..sequences.tokens()).map(|i| 4 + (i * 7 % 46) as u32).collect(), sequences)
}

#[test]
fn fifteen_percent_of_the_tokens_are_chosen_and_most_of_them_masked() {
    let (text, sequences) = texts(&[2000, 1, 3, 4000]);
    let stream = heedful_tensor::random::Stream::new(1, 2, 3);
    let masked = MaskedText::draw(&text, &sequences, &masking(), Some(stream));
    assert_eq!(masked.rows.len(), 300 + 1 + 1 + 600);
    assert!(masked.rows.is_sorted_by(|a, b| a < b));
    let (mut gaps, mut kept) = (0, 0);
    for (&row, &hidden) in masked.rows.iter().zip(&masked.targets) {
        assert_eq!(text[row], hidden);
        gaps += usize::from(masked.text[row] == MASK);
        kept += usize::from(masked.text[row] == hidden);
    }
    let share = |count: usize| count as f64 / masked.rows.len() as f64;
    assert!((share(gaps) - 0.8).abs() < 0.05 && (share(kept) - 0.1).abs() < 0.04, "{gaps} and {kept}");
    let untouched = (0..text.len()).filter(|row| masked.rows.binary_search(row).is_err());
    assert!(untouched.into_iter().all(|row| masked.text[row] == text[row]));
    let ordinary = |token: &u32| *token as usize >= special::NAMES.len() || *token == MASK;
    assert!(masked.text.iter().all(ordinary));
    let other = heedful_tensor::random::Stream::new(1, 3, 3);
    assert_ne!(MaskedText::draw(&text, &sequences, &masking(), Some(other)), masked);
}

#[test]
fn outside_training_the_masks_of_a_text_depend_only_on_that_text() {
    let (text, sequences) = texts(&[9, 40, 3]);
    let together = MaskedText::draw(&text, &sequences, &masking(), None);
    let range = sequences.range(1);
    let alone = MaskedText::draw(&text[range.clone()], &Ragged::from_lengths([40]), &masking(), None);
    assert_eq!(alone.text, together.text[range]);
}

#[test]
fn every_parameter_has_a_gradient_and_predictions_are_counted() {
    let stack = TransformerConfig::tiny(VOCABULARY).encoder();
    let model = MaskedModel::new(MaskedConfig { stack, label_smoothing: 0.0, output_bias: false }, 1)
        .expect("a good configuration");
    let examples = [(texts(&[20]).0, vec![]), (texts(&[3]).0, vec![])];
    let batch = Batch::of(BatchLayout::Texts, &examples, [1, 2]).expect("a good batch");
    for compute in [DType::F32, DType::Bf16] {
        model.params().clear_gradients();
        let found = model.loss(&batch, &mut Pass::training(compute, 1, 1));
        assert_eq!((found.tokens, model.predictions(&batch)), (4, 4));
        tape::backward(&found.loss);
        for param in model.params().iter() {
            assert!(param.gradient().iter().any(|&g| g != 0.0), "{compute:?}: {}", param.name());
        }
    }
    let loss = |step| model.loss(&batch, &mut Pass::training(DType::F32, 1, step)).loss.item();
    assert_eq!(loss(5), loss(5));
    assert_ne!(loss(5), loss(6));
}
