//! Hard attention: both gradient estimators learn, and the weights select single positions.

use heedful::layers::{AttentionScore, Pass};
use heedful::models::recurrent::{AttentionOrder, Hardness, RecurrentAttention, RecurrentConfig, Seq2Seq};
use heedful::tensor::DType;
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use crate::exclusive;
use crate::seq2seq::{batch, copies};

const STEPS: usize = 150;

const ORDERS: [AttentionOrder; 3] = [AttentionOrder::Before, AttentionOrder::After, AttentionOrder::Feeding];

#[test]
fn hard_attention_learns_with_the_score_function_estimator() {
    for order in ORDERS {
        learns(Hardness::ScoreFunction { reward: 0.02, entropy: 0.01 }, order);
    }
}

#[test]
fn hard_attention_learns_with_the_straight_through_estimator() {
    for order in ORDERS {
        learns(Hardness::StraightThrough, order);
    }
}

fn learns(hardness: Hardness, order: AttentionOrder) {
    let _lock = exclusive();
    let attention = Some(RecurrentAttention { score: AttentionScore::Additive, width: 32, hardness, order });
    let config = RecurrentConfig { d_model: 48, d_encoder: 24, attention, ..RecurrentConfig::tiny(12) };
    let model = Seq2Seq::new(config, 1).expect("a good configuration");
    let batch = batch(&copies());
    let mut trainer =
        StepTrainer::new(model, TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 5e-3 }));
    let losses: Vec<f32> = (0..STEPS).map(|_| trainer.step(&batch).expect("a good batch").loss).collect();
    println!("{hardness:?} {order:?}: {} after {}", losses[STEPS - 1], losses[0]);
    assert!(
        losses[STEPS - 1] < 0.5 * losses[0],
        "{hardness:?} {order:?}: {} after {}",
        losses[STEPS - 1],
        losses[0]
    );

    let mut pass = Pass::inference(DType::F32).recording();
    trainer.model().logits(&batch, &mut pass);
    let maps = pass.take_attention().expect("few weights");
    let [map] = maps.as_slice() else { panic!("{} maps of one attention layer", maps.len()) };
    for (sentence, heads) in map.weights.iter().enumerate() {
        for row in heads[0].chunks_exact(batch.source_sequences.length(sentence)) {
            let ones = row.iter().filter(|&&weight| weight == 1.0).count();
            let zeros = row.iter().filter(|&&weight| weight == 0.0).count();
            assert_eq!((ones, zeros), (1, row.len() - 1), "{hardness:?}: sentence {sentence}: {row:?}");
        }
    }
}
