//! Mismatched shapes panic with the operation's name and both shapes; extreme values stay finite.

use std::panic::{AssertUnwindSafe, catch_unwind};

use heedful_tensor::ops::*;
use heedful_tensor::random::Dropout;
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Compute, DType, Device, Init, Param, Params, Ragged, Rows, Tensor};

fn tensor(rows: usize, width: usize) -> Tensor {
    Tensor::new(Array::zeros(DType::F32, rows, width))
}

fn param(rows: usize, width: usize) -> Param {
    Params::new(1).add("p", rows, width, Init::Constant(0.5))
}

fn linear_options() -> LinearOptions {
    LinearOptions {
        activation: Activation::Identity,
        dropout: Dropout::NONE,
        compute: Compute::training(DType::F32),
    }
}

fn embedding_options(positions: Positions<'_>) -> EmbeddingOptions<'_> {
    let dropout = Dropout::NONE;
    EmbeddingOptions {
        scale: 1.0,
        positions,
        first_position: 0,
        dropout,
        compute: Compute::training(DType::F32),
    }
}

fn attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    heads: usize,
    lengths: [usize; 2],
) -> AttentionOutput {
    let options = AttentionOptions {
        heads,
        scale: 1.0,
        mask: Mask::full(),
        dropout: Dropout::NONE,
        weights: ReturnWeights::All,
        rounding: heedful_tensor::Rounding::Fused,
    };
    let [queries, keys, values] = [queries, keys, values].map(|tensor| {
        let columns = 0..tensor.width();
        ColumnView { tensor, columns }
    });
    let [queries_long, keys_long] = lengths.map(|length| Ragged::from_lengths([length]));
    attention(queries, keys, values, &queries_long, &keys_long, &options)
}

const RECURRENT: RecurrentOptions = RecurrentOptions {
    cell: Cell::Lstm,
    direction: Direction::Forward,
    compute: Compute::training(DType::F32),
};
fn convolution_options(taps: usize) -> ConvolutionOptions {
    ConvolutionOptions { taps, dilation: 1, padding: Padding::Same, compute: Compute::training(DType::F32) }
}

const NORM: NormOptions = NormOptions { epsilon: 1e-5, compute: Compute::training(DType::F32) };
const LOSS: CrossEntropyOptions =
    CrossEntropyOptions { smoothing: 0.0, r_drop: None, compute: Compute::training(DType::F32) };

type Mismatch = (&'static [&'static str], fn());

#[test]
fn mismatched_shapes_are_named() {
    let table: &[Mismatch] = &[
        (&["linear", "[2, 3]", "[4, 5]"], || {
            linear(&tensor(2, 3), &param(4, 5), None, linear_options());
        }),
        (&["linear", "[3, 5]", "[1, 4]"], || {
            linear(&tensor(2, 3), &param(3, 5), Some(&param(1, 4)), linear_options());
        }),
        (&["project", "[2, 3]", "[5, 4]"], || {
            drop(project(&tensor(2, 3), &param(5, 4), Compute::training(DType::F32)));
        }),
        (&["embedding", "3 ids", "4 tokens"], || {
            let options = embedding_options(Positions::None);
            embedding(&[0, 1, 2], &Ragged::from_lengths([1, 3]), &param(5, 4), options);
        }),
        (&["embedding", "[5, 4]", "[9, 6]"], || {
            let learned = param(9, 6);
            let options = embedding_options(Positions::Learned(&learned));
            embedding(&[0], &Ragged::from_lengths([1]), &param(5, 4), options);
        }),
        (&["embedding", "even width", "7"], || {
            let options = embedding_options(Positions::Sinusoidal(SinusoidLayout::Interleaved));
            embedding(&[0], &Ragged::from_lengths([1]), &param(5, 7), options);
        }),
        (&["attention", "width 4", "width 6"], || {
            attend(tensor(2, 4), tensor(2, 6), tensor(2, 4), 1, [2, 2]);
        }),
        (&["attention", "queries", "2×4", "3 tokens"], || {
            attend(tensor(2, 4), tensor(2, 4), tensor(2, 4), 1, [3, 2]);
        }),
        (&["attention", "values", "3×4", "2 tokens"], || {
            attend(tensor(2, 4), tensor(2, 4), tensor(3, 4), 1, [2, 2]);
        }),
        (&["attention", "width 4", "3 heads"], || {
            attend(tensor(2, 4), tensor(2, 4), tensor(2, 4), 3, [2, 2]);
        }),
        (&["layer_norm", "gamma", "[2, 3]", "[1, 4]"], || {
            layer_norm(&tensor(2, 3), &param(1, 4), &param(1, 3), NORM);
        }),
        (&["layer_norm", "beta", "[2, 3]", "[3, 1]"], || {
            layer_norm(&tensor(2, 3), &param(1, 3), &param(3, 1), NORM);
        }),
        (&["residual_norm", "[2, 3]", "[3, 2]"], || {
            residual_norm(&tensor(2, 3), &tensor(3, 2), &param(1, 3), &param(1, 3), Dropout::NONE, NORM);
        }),
        (&["residual", "[2, 3]", "[2, 4]"], || drop(residual(&tensor(2, 3), &tensor(2, 4), Dropout::NONE))),
        (&["cross_entropy", "[2, 3]", "[5, 4]"], || {
            cross_entropy(&tensor(2, 3), &param(5, 4), &[0, 1], LOSS);
        }),
        (&["cross_entropy", "3 labels", "[2, 4]"], || {
            cross_entropy(&tensor(2, 4), &param(5, 4), &[0, 1, 2], LOSS);
        }),
        (&["cross_entropy", "label 5", "[5, 4]"], || {
            cross_entropy(&tensor(2, 4), &param(5, 4), &[0, 5], LOSS);
        }),
        (&["cross_entropy", "3 labels", "one pass twice"], || {
            let options = CrossEntropyOptions { r_drop: Some(2.0), ..LOSS };
            cross_entropy(&tensor(3, 4), &param(5, 4), &[2, 2, 2], options);
        }),
        (&["cross_entropy", "4 labels", "one pass twice"], || {
            let options = CrossEntropyOptions { r_drop: Some(2.0), ..LOSS };
            cross_entropy(&tensor(4, 4), &param(5, 4), &[2, 3, 3, 2], options);
        }),
        (&["cross_entropy", "-1", "R-Drop"], || {
            let options = CrossEntropyOptions { r_drop: Some(-1.0), ..LOSS };
            cross_entropy(&tensor(2, 4), &param(5, 4), &[2, 2], options);
        }),
        (&["add", "[2, 3]", "[3, 2]"], || drop(add(&tensor(2, 3), &tensor(3, 2)))),
        (&["subtract", "[2, 3]", "[2, 2]"], || drop(subtract(&tensor(2, 3), &tensor(2, 2)))),
        (&["multiply", "[2, 3]", "[6, 1]"], || drop(multiply(&tensor(2, 3), &tensor(6, 1)))),
        (&["matmul", "[2, 3]", "[2, 3]"], || drop(matmul(&tensor(2, 3), &tensor(2, 3), Rows::Many))),
        (&["concat_columns", "[2, 3]", "[4, 5]"], || drop(concat_columns(&[&tensor(2, 3), &tensor(4, 5)]))),
        (&["concat_rows", "[2, 3]", "[4, 5]"], || drop(concat_rows(&[&tensor(2, 3), &tensor(4, 5)]))),
        (&["columns", "2..4", "[2, 3]"], || drop(columns(&tensor(2, 3), 2..4))),
        (&["gather_rows", "row 2", "[2, 3]"], || drop(gather_rows(&tensor(2, 3), &[1, 2]))),
        (&["recurrent", "[4, 12]", "Lstm", "[4, 16]"], || {
            recurrent(&tensor(2, 12), &Ragged::from_lengths([2]), None, &param(4, 12), None, RECURRENT);
        }),
        (&["recurrent", "[2, 16]", "3 tokens"], || {
            recurrent(&tensor(2, 16), &Ragged::from_lengths([3]), None, &param(4, 16), None, RECURRENT);
        }),
        (&["recurrent", "[1, 4]", "[2, 4]"], || {
            let state = RecurrentState::zeros(Device::Cpu, Cell::Lstm, 1, 4);
            recurrent_step(
                &tensor(2, 16),
                &state,
                &param(4, 16),
                None,
                Cell::Lstm,
                Compute::inference(DType::F32),
            );
        }),
        (&["recurrent", "Gru", "state c"], || {
            let state = RecurrentState::zeros(Device::Cpu, Cell::Lstm, 2, 4);
            recurrent_step(
                &tensor(2, 12),
                &state,
                &param(4, 12),
                None,
                Cell::Gru,
                Compute::inference(DType::F32),
            );
        }),
        (&["convolution", "[2, 3]", "3 tokens"], || {
            let options = convolution_options(1);
            convolution(&tensor(2, 3), &Ragged::from_lengths([3]), &param(3, 5), None, options);
        }),
        (&["convolution", "3 taps", "[2, 3]", "[8, 5]"], || {
            let options = convolution_options(3);
            convolution(&tensor(2, 3), &Ragged::from_lengths([2]), &param(8, 5), None, options);
        }),
        (&["convolution", "[9, 5]", "[1, 4]"], || {
            let (options, bias) = (convolution_options(3), param(1, 4));
            convolution(&tensor(2, 3), &Ragged::from_lengths([2]), &param(9, 5), Some(&bias), options);
        }),
        (&["convolution", "2 taps", "odd"], || {
            let options = convolution_options(2);
            convolution(&tensor(2, 3), &Ragged::from_lengths([2]), &param(6, 5), None, options);
        }),
        (&["glu", "[2, 3]"], || drop(glu(&tensor(2, 3)))),
        (&["mean_pool", "[2, 3]", "4 tokens"], || {
            drop(mean_pool(&tensor(2, 3), &Ragged::from_lengths([4])));
        }),
        (&["max_pool", "sequence 1"], || drop(max_pool(&tensor(2, 3), &Ragged::from_lengths([2, 0])))),
        (&["slide_windows", "2×3", "3 parents"], || drop(slide_windows(None, &[None; 3], &tensor(2, 3), 2))),
        (&["dilated_windows", "2 taps of width 2", "2×3"], || drop(dilated_windows(&tensor(2, 3), 2, 2, 1))),
    ];
    for (fragments, call) in table {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("mismatched shapes were accepted");
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&message| message.to_owned()))
            .unwrap_or_default();
        for fragment in *fragments {
            assert!(message.contains(fragment), "{fragment:?} is not in {message:?}");
        }
    }
}

#[test]
fn a_query_without_visible_keys_is_an_error() {
    let (queries, keys) = (Ragged::from_lengths([1, 2]), Ragged::from_lengths([2, 1]));
    let error = BoolMask::new(&queries, &keys, vec![false, true, true, false])
        .expect_err("query 1 has no visible key");
    assert_eq!(error, MaskError { sequence: 1, query: 1 });
}

#[test]
fn huge_scores_stay_finite() {
    let huge = [3e4_f32, -3e4, 2e4, -1e4, 1e4, 3e4];
    let variable = || Tensor::variable(Array::from_f32(3, 2, &huge));
    let (q, k, v) = (variable(), variable(), variable());
    let attended = attend(q.clone(), k.clone(), v.clone(), 1, [3, 3]);
    let gradients = backward_from(&attended.context, Array::from_f32(3, 2, &[1.0; 6]));
    let finite = |values: &[f32]| values.iter().all(|x| x.is_finite());
    assert!(finite(&attended.context.to_vec()));
    assert!([&q, &k, &v].iter().all(|x| finite(gradients.of(x).expect("gradient").f32())));

    let (x, weight) = (variable(), param(4, 2));
    weight.set(&[2e4, -1e4, 3e4, 1e4, -1e4, -1e4, 0.0, 5.0]);
    let found = cross_entropy(&x, &weight, &[0, 1, 2], CrossEntropyOptions { smoothing: 0.1, ..LOSS });
    let gradients = backward_from(&found.loss, Array::from_f32(1, 1, &[1.0]));
    assert!(found.loss.item().is_finite() && found.negative_log_likelihood().is_finite());
    assert!(finite(gradients.of(&x).expect("gradient").f32()) && finite(&weight.gradient()));
}

#[test]
fn an_empty_batch_works() {
    let table = param(5, 4);
    let none = Ragged::from_lengths([]);
    let x =
        embedding(&[], &none, &table, embedding_options(Positions::Sinusoidal(SinusoidLayout::Interleaved)));
    let y = layer_norm(&x, &param(1, 4), &param(1, 4), NORM);
    let y = softmax(&add(&y, &y));
    assert_eq!(y.shape(), [0, 4]);
    assert_eq!(sum(&y).item(), 0.0);
    backward_from(&y, Array::zeros(DType::F32, 0, 4));
    let (x, taps) = (Tensor::variable(Array::zeros(DType::F32, 0, 4)), param(12, 8));
    let y = glu(&convolution(&x, &none, &taps, Some(&param(1, 8)), convolution_options(3)));
    let y = mean_pool(&add(&y, &max_pool(&y, &none)), &none);
    backward_from(&y, Array::zeros(DType::F32, 0, 4));
    assert!(taps.gradient().iter().all(|&g| g == 0.0));
    assert!(table.gradient().iter().all(|&g| g == 0.0));
}

#[test]
fn an_empty_recurrent_batch_works() {
    let (weight, none) = (param(4, 16), Ragged::from_lengths([]));
    let found = recurrent(&tensor(0, 16), &none, None, &weight, None, RECURRENT);
    assert_eq!((found.outputs.shape(), found.last.h.shape()), ([0, 4], [0, 4]));
    backward_from(&found.outputs, Array::zeros(DType::F32, 0, 4));
    assert!(weight.gradient().iter().all(|&g| g == 0.0));
}
