//! Properties of the recurrent decoder with attention that the gradient table does not cover.

use heedful_tensor::ops::{
    AttentionRnn, AttentionRnnInputs, AttentionRnnOptions, AttentionRnnWeights, AttentionScore, Cell,
    Estimator, Mask, RecurrentState, ReturnWeights, Selection, SourceRows, StepWeights, attend_rows,
    attention_rnn, project_f32_out,
};
use heedful_tensor::random::Stream;
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Compute, DType, Device, Init, Param, Params, Ragged, Tensor};

const D: usize = 16;

struct Decoder {
    hidden: Param,
    context: Param,
    query: Param,
    score: Param,
}

impl Decoder {
    fn new() -> Decoder {
        let params = Params::new(3);
        let add = |name, rows, width| params.add(name, rows, width, Init::Normal(0.4));
        Decoder {
            hidden: add("hidden", D, 3 * D),
            context: add("context", D, 3 * D),
            query: add("query", D, D),
            score: add("score", 1, D),
        }
    }

    fn run(
        &self,
        sequences: &[(usize, usize)],
        offset: usize,
        selection: Selection,
    ) -> (Tensor, AttentionRnn) {
        self.run_with(sequences, offset, selection, ReturnWeights::All)
    }

    fn run_with(
        &self,
        sequences: &[(usize, usize)],
        offset: usize,
        selection: Selection,
        weights: ReturnWeights,
    ) -> (Tensor, AttentionRnn) {
        let targets = Ragged::from_lengths(sequences.iter().map(|(target, _)| *target));
        let sources = Ragged::from_lengths(sequences.iter().map(|(_, source)| *source));
        let draw = |rows, width, operation| {
            let stream = Stream::new(9, 0, operation);
            let values: Vec<f32> =
                (0..rows * width).map(|i| stream.normal((i + offset * width) as u32)).collect();
            Tensor::variable(Array::from_f32(rows, width, &values))
        };
        let keys = draw(sources.tokens(), D, 1);
        let found = attention_rnn(
            AttentionRnnInputs {
                x_gates: &draw(targets.tokens(), 3 * D, 0),
                targets: &targets,
                initial: &RecurrentState::zeros(Device::Cpu, Cell::Gru, sequences.len(), D),
                keys: &keys,
                values: &draw(sources.tokens(), D, 2),
                sources: &sources,
                mask: &Mask::full(),
            },
            AttentionRnnWeights {
                hidden: &self.hidden,
                bias: None,
                context: &self.context,
                query: Some(&self.query),
                score: AttentionScore::Additive,
                score_weight: Some(&self.score),
            },
            AttentionRnnOptions {
                cell: Cell::Gru,
                selection,
                compute: Compute::training(DType::F32),
                weights,
            },
        );
        (keys, found)
    }
}

fn sampled(estimator: Estimator) -> Selection {
    Selection::Sampled { stream: Stream::new(4, 0, 0), soft_share: 0.0, estimator }
}

fn weights_of(found: &AttentionRnn) -> &StepWeights {
    found.attention.as_ref().expect("requested")
}

#[test]
fn discarding_attention_weights_of_long_sequences_changes_no_bit() {
    let decoder = Decoder::new();
    let sequences = [(2100, 2010), (7, 3), (1, 5)];
    for selection in [Selection::Soft, sampled(Estimator::StraightThrough), sampled(Estimator::ScoreFunction)]
    {
        let [kept, recomputed] = [ReturnWeights::All, ReturnWeights::None].map(|weights| {
            let (keys, found) = decoder.run_with(&sequences, 0, selection, weights);
            assert_eq!(found.attention.is_some(), weights == ReturnWeights::All);
            let upstream: Vec<f32> = (0..2108 * D).map(|i| (i % 7) as f32 - 3.0).collect();
            let gradients = backward_from(&found.contexts, Array::from_f32(2108, D, &upstream));
            let keys = gradients.of(&keys).expect("keys have a gradient").f32().to_vec();
            (found.states.to_vec(), found.contexts.to_vec(), found.taken.to_vec(), keys)
        });
        assert!(kept == recomputed, "{selection:?}");
    }
}

#[test]
fn the_softmax_of_the_scores_gives_the_weights() {
    let decoder = Decoder::new();
    for selection in [Selection::Soft, Selection::Best] {
        let (keys, found) = decoder.run_with(&[(4, 3), (2, 7)], 0, selection, ReturnWeights::WithScores);
        let scores = found.scores.as_ref().expect("requested");
        for (sequence, width) in [(0, 3), (1, 7)] {
            let weights = weights_of(&found).to_vec(sequence);
            for (scores, weights) in
                scores.to_vec(sequence).chunks_exact(width).zip(weights.chunks_exact(width))
            {
                let exps: Vec<f64> = scores.iter().map(|&score| f64::from(score).exp()).collect();
                let total: f64 = exps.iter().sum();
                for (exp, weight) in exps.iter().zip(weights) {
                    assert!((exp / total - f64::from(*weight)).abs() < 1e-6, "{scores:?} {weights:?}");
                }
            }
        }
        // The first state is 0, and so is the first query: e_j = w · tanh(k_j).
        let weight = decoder.score.to_vec();
        let first = scores.to_vec(1)[..7].to_vec();
        for (score, key) in first.iter().zip(keys.to_vec()[3 * D..].chunks_exact(D)) {
            let expected: f64 =
                key.iter().zip(&weight).map(|(k, w)| f64::from(*w) * f64::from(*k).tanh()).sum();
            assert!((f64::from(*score) - expected).abs() < 1e-5, "{score}, not {expected}");
        }
    }
    let (_, found) = decoder.run(&[(4, 3)], 0, Selection::Soft);
    assert!(found.scores.is_none() && found.attention.is_some());
}

#[test]
fn weights_sum_to_one_and_hard_attention_selects_one_position() {
    let decoder = Decoder::new();
    for selection in [Selection::Soft, Selection::Best, sampled(Estimator::ScoreFunction)] {
        let (_, found) = decoder.run(&[(4, 3), (2, 7)], 0, selection);
        for (sequence, keys) in [(0, 3), (1, 7)] {
            for row in weights_of(&found).to_vec(sequence).chunks_exact(keys) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
            }
        }
        if matches!(selection, Selection::Best) {
            for (row, taken) in weights_of(&found).to_vec(0).chunks_exact(3).zip(found.taken.iter()) {
                let taken = taken.expect("a position is selected");
                assert!(row.iter().all(|weight| *weight <= row[taken]));
            }
        }
    }
}

#[test]
fn a_sequence_has_the_same_bits_alone_and_in_a_batch() {
    let decoder = Decoder::new();
    let (_, alone) = decoder.run(&[(4, 3)], 0, Selection::Soft);
    let (_, batch) = decoder.run(&[(4, 3), (6, 9)], 0, Selection::Soft);
    assert_eq!(alone.states.to_vec(), batch.states.to_vec()[..4 * D]);
    assert_eq!(weights_of(&alone).to_vec(0), weights_of(&batch).to_vec(0));
}

#[test]
fn straight_through_gives_the_gradients_of_soft_attention() {
    // One token each: no gradient flows back through a later state.
    let decoder = Decoder::new();
    let slopes = |selection| {
        let (keys, found) = decoder.run(&[(1, 5), (1, 3)], 0, selection);
        let upstream: Vec<f32> = (0..2 * D).map(|i| (i % 7) as f32 - 3.0).collect();
        let gradients = backward_from(&found.contexts, Array::from_f32(2, D, &upstream));
        gradients.of(&keys).expect("keys have a gradient").f32().to_vec()
    };
    let soft = slopes(Selection::Soft);
    assert!(soft.iter().any(|slope| slope.abs() > 1e-3));
    assert_eq!(slopes(sampled(Estimator::StraightThrough)), soft);
    assert!(slopes(sampled(Estimator::ScoreFunction)).iter().all(|slope| *slope == 0.0));
}

#[test]
fn attend_rows_gives_the_context_of_the_decoders_first_step() {
    let decoder = Decoder::new();
    let params = Params::new(3);
    // Queries of zero states: q = 0 · W_q.
    let zero = params.add("zero", D, D, Init::Constant(0.0));
    let (keys, found) = decoder.run(&[(1, 5), (1, 3)], 0, Selection::Soft);
    let queries =
        project_f32_out(&Tensor::from_f32(2, D, &[0.0; 2 * D]), &zero, Compute::inference(DType::F32));
    let (keys, values) = (keys.array(), {
        let stream = Stream::new(9, 0, 2);
        let values: Vec<f32> = (0..8 * D).map(|i| stream.normal(i as u32)).collect();
        Array::from_f32(8, D, &values)
    });
    let rows = |range: std::ops::Range<usize>| SourceRows { keys, values: &values, rows: range };
    let (sources, weight) = ([rows(0..5), rows(5..8)], Some(&decoder.score));
    let contexts = attend_rows(&queries, &sources, AttentionScore::Additive, weight, Selection::Soft);
    assert_eq!(contexts.to_vec(), found.contexts.to_vec());
}

#[test]
#[should_panic(expected = "attention_rnn: a source is empty")]
fn an_empty_source_is_an_error() {
    Decoder::new().run(&[(2, 3), (1, 0)], 0, Selection::Soft);
}
