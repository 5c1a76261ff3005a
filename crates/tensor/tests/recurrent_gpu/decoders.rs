//! Decoders with attention: they match the CPU, have the same bits alone and in a batch, and hard attention
//! returns the selected value. The sizes let one to four thread blocks share a source, cached in shared
//! memory or not, and leave some blocks without one.

use std::ops::Range;

use heedful_tensor::ops::*;
use heedful_tensor::random::Stream;
use heedful_tensor::tape::{self, backward_from};
use heedful_tensor::{Array, Compute, DType, Device, Init, Params, Ragged, Tensor};

use super::{compare, random_array};

/// A decoder and the lengths of its targets and sources.
struct Setting<'a> {
    cell: Cell,
    score: AttentionScore,
    /// Widths of states, keys and values.
    widths: [usize; 3],
    selection: Selection,
    lengths: &'a [[usize; 2]],
}

/// The decoder's result for some of the sequences.
struct DecoderRun {
    result: AttentionRnn,
    params: Params,
    variables: Vec<Tensor>,
}

impl Setting<'_> {
    fn run(&self, device: Device, compute: DType, which: Range<usize>) -> DecoderRun {
        let ([d, key_width, value_width], score) = (self.widths, self.score);
        let params = Params::new(3);
        let gates = self.cell.gates() * d;
        let hidden = params.add("hidden", d, gates, Init::Xavier);
        let bias = params.add("bias", 1, gates, Init::Normal(0.1));
        let context = params.add("context", value_width, gates, Init::Xavier);
        let query = (!score.requires_equal_widths()).then(|| params.add("query", d, key_width, Init::Xavier));
        let is_additive = score.form() == ScoreForm::Additive;
        let score_weight = is_additive.then(|| params.add("score", 1, key_width, Init::Normal(0.2)));
        params.move_to(device).expect("it fits");
        let side = |side: usize, which: &Range<usize>| {
            Ragged::from_lengths(self.lengths[which.clone()].iter().map(|both| both[side]))
        };
        let [targets, sources] = [0, 1].map(|of| side(of, &which));
        let before = [0, 1].map(|of| side(of, &(0..which.start)).tokens());
        // A sequence has the same values in every batch.
        let part = |first: usize, rows: usize, width: usize, stream: u64| {
            let all = random_array(Device::Cpu, first + rows, width, stream);
            Array::from_f32_on(device, rows, width, &all.f32()[first * width..])
        };
        let x = Tensor::variable(part(before[0], targets.tokens(), gates, 0).into_dtype(compute));
        let keys = Tensor::variable(part(before[1], sources.tokens(), key_width, 1).into_dtype(compute));
        let values = Tensor::variable(part(before[1], sources.tokens(), value_width, 2));
        let state = |stream| Tensor::variable(part(which.start, which.len(), d, stream));
        let initial = RecurrentState { h: state(3), c: self.cell.has_memory().then(|| state(4)) };
        let inputs = AttentionRnnInputs {
            x_gates: &x,
            targets: &targets,
            initial: &initial,
            keys: &keys,
            values: &values,
            sources: &sources,
            mask: &Mask::full(),
        };
        let weights = AttentionRnnWeights {
            hidden: &hidden,
            bias: Some(&bias),
            context: &context,
            query: query.as_ref(),
            score,
            score_weight: score_weight.as_ref(),
        };
        let options = AttentionRnnOptions {
            cell: self.cell,
            selection: self.selection,
            compute: Compute::training(compute),
            weights: ReturnWeights::WithScores,
        };
        let result = attention_rnn(inputs, weights, options);
        let variables = [x, keys, values, initial.h].into_iter().chain(initial.c).collect();
        DecoderRun { result, params, variables }
    }

    fn all(&self) -> Range<usize> {
        0..self.lengths.len()
    }

    /// States, contexts and choices, then the gradients of inputs and parameters.
    fn with_gradients(&self, device: Device, compute: DType) -> Vec<Vec<f32>> {
        let DecoderRun { result, params, variables } = self.run(device, compute, self.all());
        let y = match self.selection {
            Selection::Soft => concat_columns(&[&result.states, &result.contexts]),
            _ => concat_columns(&[&result.states, &result.contexts, &result.choices]),
        };
        let gradients = backward_from(&y, random_array(device, y.rows(), y.width(), 20));
        let mut all = vec![y.to_vec()];
        all.extend(variables.iter().map(|variable| gradients.of(variable).expect("a gradient").to_vec()));
        all.extend(params.iter().map(|param| param.gradient()));
        all
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn decoders_match_the_cpu() {
    let short: Vec<[usize; 2]> = (0..70).map(|i| [(i * 7) % 9, 1 + (i * 11) % 40]).collect();
    // Sources too long to be cached, between shorter ones.
    let long = [[3, 700], [2, 1], [4, 90], [4, 300], [0, 5], [1, 1000]];
    for (cell, score, widths, lengths) in [
        (Cell::Lstm, AttentionScore::Additive, [512, 512, 1024], &short[..]),
        (Cell::Lstm, AttentionScore::Additive, [512, 512, 1024], &long[..]),
        (Cell::Gru, AttentionScore::Additive, [256, 256, 512], &short[..]),
        (Cell::Gru, AttentionScore::ScaledDot, [264, 264, 520], &long[..]),
        (Cell::Lstm, AttentionScore::General, [256, 512, 512], &short[..]),
        (Cell::Gru, AttentionScore::General, [512, 1024, 1024], &short[..]),
        (Cell::Gru, AttentionScore::ScaledDot, [512, 512, 512], &short[..]),
        (Cell::Simple, AttentionScore::Additive, [392, 200, 776], &short[..]),
        (Cell::Simple, AttentionScore::Dot, [128, 128, 256], &short[..]),
        (Cell::Simple, AttentionScore::Additive, [128, 64, 128], &short[..]),
        (Cell::Lstm, AttentionScore::Additive, [40, 40, 80], &short[..]),
        (Cell::Lstm, AttentionScore::Additive, [768, 512, 1536], &short[..]),
    ] {
        let setting = Setting { cell, score, widths, selection: Selection::Soft, lengths };
        compare(&format!("{cell:?} {score:?} {widths:?} {}", lengths.len()), |device, compute| {
            setting.with_gradients(device, compute)
        });
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_target_has_the_same_bits_alone_and_in_a_batch() {
    let lengths: Vec<[usize; 2]> = (0..40).map(|i| [1 + (i * 7) % 9, 1 + (i * 37) % 150]).collect();
    for (cell, widths) in [(Cell::Lstm, [512, 512, 1024]), (Cell::Gru, [264, 264, 520])] {
        for selection in [Selection::Soft, Selection::Best] {
            let setting =
                Setting { cell, score: AttentionScore::Additive, widths, selection, lengths: &lengths };
            let run = |which| tape::no_grad(|| setting.run(Device::Cuda, DType::Bf16, which).result);
            let whole = run(setting.all());
            let targets = Ragged::from_lengths(lengths.iter().map(|both| both[0]));
            for sequence in [0, 5, 17, 39] {
                let alone = run(sequence..sequence + 1);
                for (whole, alone) in [(&whole.states, &alone.states), (&whole.contexts, &alone.contexts)] {
                    let rows: Vec<f32> =
                        targets.range(sequence).flat_map(|row| whole.row(row).to_vec()).collect();
                    assert!(
                        alone.to_vec() == rows,
                        "{cell:?} {selection:?}: sequence {sequence} differs alone"
                    );
                }
                let scores = [(&whole, sequence), (&alone, 0)]
                    .map(|(found, index)| found.scores.as_ref().expect("requested").to_vec(index));
                assert!(
                    scores[0] == scores[1],
                    "{cell:?} {selection:?}: scores of sequence {sequence} differ alone"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_context_is_the_selected_value() {
    let lengths: Vec<[usize; 2]> = (0..20).map(|i| [i % 5, 1 + (i * 7) % 30]).collect();
    let sampled = |estimator| Selection::Sampled { stream: Stream::new(5, 0, 0), soft_share: 0.3, estimator };
    let selections =
        [Selection::Best, sampled(Estimator::ScoreFunction), sampled(Estimator::StraightThrough)];
    for selection in selections {
        let setting = Setting {
            cell: Cell::Lstm,
            score: AttentionScore::Additive,
            widths: [256, 256, 512],
            selection,
            lengths: &lengths,
        };
        let DecoderRun { result, variables, .. } = setting.run(Device::Cuda, DType::Bf16, setting.all());
        let values = variables[2].array().to(DType::Bf16).to(DType::F32).to_vec();
        let (mut token, mut source) = (0, 0);
        for [target, positions] in &lengths {
            for row in token..token + target {
                let Some(position) = result.taken[row] else { continue };
                assert!(position < *positions, "{selection:?}: token {row}");
                let at = (source + position) * 512;
                assert!(result.contexts.row(row)[..] == values[at..at + 512], "{selection:?}: token {row}");
            }
            (token, source) = (token + target, source + positions);
        }
        assert!(result.taken.iter().any(Option::is_some), "{selection:?}: no position was selected");
        let [once, again] = [(); 2].map(|()| setting.with_gradients(Device::Cuda, DType::Bf16));
        assert!(once == again, "{selection:?}: gradients differ on the second run");
        assert!(once.iter().flatten().all(|value| value.is_finite()), "{selection:?}");
    }
}
