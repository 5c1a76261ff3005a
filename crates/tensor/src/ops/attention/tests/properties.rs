//! Properties of every attention.

use std::process::Command;

use super::*;

#[test]
fn agrees_with_the_definition_and_its_gradients_in_f32() {
    for (name, case) in cases() {
        check(name, &case, DType::F32);
    }
}

#[test]
fn agrees_with_the_definition_and_its_gradients_in_bf16() {
    for (name, case) in cases() {
        check(name, &case, DType::Bf16);
    }
}

/// In separate processes, because other tests run in this one meanwhile.
#[test]
fn agrees_on_every_instruction_set() {
    let module = module_path!().split_once("::").expect("a module of a crate").1;
    let test = format!("{module}::agrees_with_the_definition_and_its_gradients_in_f32");
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let mut alone = Command::new(std::env::current_exe().expect("this test program"));
        alone.args(["--exact", &test]).env("HEEDFUL_ISA", isa.to_string());
        let output = alone.output().expect("this program starts again");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{isa}: {text}");
    }
}

#[test]
fn a_sequence_has_the_same_bits_alone_in_a_batch_and_on_any_number_of_threads() {
    // The first case is large enough for several tasks.
    let large = ("large", Case::new(&[70, 33, 64, 1, 90], 8, 32, 32).causal());
    for (name, case) in [large].into_iter().chain(cases()) {
        // Draws are numbered by rows of the batch, and boolean masks belong to it.
        let alone = case.dropout.is_none() && case.rules.booleans.is_none();
        for dtype in [DType::F32, DType::Bf16] {
            let arrays = case.arrays(dtype);
            let outcome = |threads: usize| {
                set_thread_count(threads);
                run(&case, &arrays)
            };
            assert!(outcome(1) == outcome(2), "{name} in {dtype} depends on the number of threads");
            let batch = !alone || run(&case, &arrays) == one_by_one(&case, &arrays);
            assert!(batch, "{name} in {dtype} depends on the batch");
        }
    }
}

/// Each sequence by itself, then concatenated.
fn one_by_one(case: &Case, arrays: &[Array; 4]) -> Outcome {
    let mut all = Outcome::default();
    let [queries, keys] = case.sequences();
    for (q, k) in queries.ranges().zip(keys.ranges()) {
        let own = Case { queries: vec![q.len()], keys: vec![k.len()], ..case.clone() };
        let [a, b, c, d] = arrays;
        let outcome = run(&own, &[rows(a, q.clone()), rows(b, k.clone()), rows(c, k), rows(d, q)]);
        all.context.extend(outcome.context);
        all.weights.extend(outcome.weights);
        all.scores.extend(outcome.scores);
        for (all, own) in all.gradients.iter_mut().zip(outcome.gradients) {
            all.extend(own);
        }
    }
    all
}

pub(super) fn rows(array: &Array, rows: Range<usize>) -> Array {
    let (dtype, width) = (array.dtype(), array.width());
    Array::from_f32(rows.len(), width, &array.to(DType::F32).f32()[rows.start * width..rows.end * width])
        .to(dtype)
}

#[test]
fn a_query_with_cached_keys_gets_the_bits_of_the_full_sequence() {
    let case = Case::new(&[45], 2, 9, 9).causal().within(17);
    for dtype in [DType::F32, DType::Bf16] {
        let [q, k, v, _] = case.arrays(dtype).map(Tensor::new);
        let n = Ragged::from_lengths([45]);
        let attend = |q: &Tensor, queries: &Ragged| {
            let [q, k, v] = [q, &k, &v].map(|tensor| ColumnView::whole(tensor.clone()));
            no_grad(|| attention(q, k, v, queries, &n, &case.options()).context.to_vec())
        };
        let last = Tensor::new(rows(q.array(), 44..45));
        let agree = attend(&q, &n)[44 * 18..] == attend(&last, &Ragged::from_lengths([1]));
        assert!(agree, "incremental decoding differs in {dtype}");
    }
}

#[test]
fn views_of_one_tensor_share_one_gradient() {
    let case = Case::new(&[3, 6], 2, 4, 5);
    let arrays = case.arrays(DType::F32);
    let separate = run(&case, &arrays);
    let [queries, keys] = case.sequences();
    // One spare column, then values, keys, another spare column, queries.
    let columns = [20..28, 11..19, 1..11];
    let mut fused = vec![9.0; 9 * 28];
    for (array, columns) in arrays.iter().zip(&columns) {
        for row in 0..9 {
            let from = &array.f32()[row * array.width()..(row + 1) * array.width()];
            fused[row * 28..][columns.clone()].copy_from_slice(from);
        }
    }
    let fused = Tensor::variable(Array::from_f32(9, 28, &fused));
    let [q, k, v] = columns.clone().map(|columns| ColumnView { tensor: fused.clone(), columns });
    let attended = attention(q, k, v, &queries, &keys, &case.options());
    close(
        "fused",
        &attended.context.to_vec(),
        &separate.context.iter().map(|&x| x.into()).collect::<Vec<_>>(),
        1e-6,
    );
    let gradients = backward_from(&attended.context, arrays[3].clone());
    let gradient = gradients.of(&fused).expect("a gradient").f32();
    let mut expected = vec![0.0_f64; 9 * 28];
    for (part, columns) in separate.gradients.iter().zip(&columns) {
        for row in 0..9 {
            let width = columns.len();
            for (i, column) in columns.clone().enumerate() {
                expected[row * 28 + column] = part[row * width + i].into();
            }
        }
    }
    close("fused gradient", gradient, &expected, 1e-6);
    assert!((0..9).all(|row| gradient[row * 28] == 0.0 && gradient[row * 28 + 19] == 0.0));
}

#[test]
fn keys_that_are_also_the_values_get_both_gradients() {
    let case = Case::new(&[3, 6], 2, 4, 4);
    let [q, k, _, gradient] = case.arrays(DType::F32);
    let separate = run(&case, &[q.clone(), k.clone(), k.clone(), gradient.clone()]);
    let sum: Vec<f64> =
        separate.gradients[1].iter().zip(&separate.gradients[2]).map(|(a, b)| f64::from(a + b)).collect();
    let [queries, keys] = case.sequences();
    let memory = Tensor::variable(k);
    let parts = [Tensor::new(q), memory.clone(), memory.clone()].map(ColumnView::whole);
    let [q, k, v] = parts;
    let attended = attention(q, k, v, &queries, &keys, &case.options());
    let gradients = backward_from(&attended.context, gradient);
    close("memory", gradients.of(&memory).expect("a gradient").f32(), &sum, 1e-6);
}

#[test]
fn huge_scores_stay_finite_and_hidden_weights_are_exactly_zero() {
    for size in [1e15, 1e18, 1e30] {
        let case = Case { size, ..Case::new(&[5, 40], 2, 4, 4) }.causal();
        for dtype in [DType::F32, DType::Bf16] {
            let mut arrays = case.arrays(dtype);
            // In the first sequence all keys tie for the largest score: the weights must still sum to 1.
            let mut keys = arrays[1].to(DType::F32);
            keys.f32_mut()[..5 * 8].fill(size);
            arrays[1] = keys.to(dtype);
            if size > 1e19 {
                // These scores overflow; with mixed signs they would be NaN before softmax.
                for part in &mut arrays[..2] {
                    let positive: Vec<f32> = part.to(DType::F32).f32().iter().map(|x| x.abs()).collect();
                    *part = Array::from_f32(45, 8, &positive).to(dtype);
                }
            }
            let outcome = run(&case, &arrays);
            let all = [&outcome.context, &outcome.gradients[2]];
            assert!(all.iter().all(|part| part.iter().all(|x| x.is_finite())), "{size} {dtype}");
            assert!(outcome.gradients.iter().flatten().all(|x| !x.is_nan()), "{size} {dtype}");
            for (weights, n) in outcome.weights.iter().zip([5, 40]) {
                for head in weights {
                    for (query, row) in head.chunks(n).enumerate() {
                        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{size}: {row:?}");
                        assert!(row[query + 1..].iter().all(|&weight| weight == 0.0), "{size}: {row:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_query_without_visible_keys_is_rejected() {
    let [q, k] = [[2, 3], [2, 1]].map(Ragged::from_lengths);
    let error = BoolMask::new(&q, &k, [true, false, true, true, true, false, true].to_vec()).unwrap_err();
    assert_eq!(error, MaskError { sequence: 1, query: 1 });
    assert_eq!(error.to_string(), "query 1 of sequence 1 sees no key: every query needs at least one");
    let wrong_length = catch_unwind(AssertUnwindSafe(|| BoolMask::new(&q, &k, vec![true])));
    assert!(wrong_length.is_err());

    let refused = |mask: Mask, queries: [usize; 2], keys: [usize; 2], error: (usize, usize)| {
        let case = Case::new(&queries, 1, 4, 4).cross(&keys);
        let [q, k] = case.sequences();
        let expected = MaskError { sequence: error.0, query: error.1 };
        assert_eq!(mask.check(&q, &k), Err(expected.clone()));
        let [a, b, c, _] = case.arrays(DType::F32).map(|array| ColumnView::whole(Tensor::new(array)));
        let options = AttentionOptions { mask, ..case.options() };
        let attended = catch_unwind(AssertUnwindSafe(|| attention(a, b, c, &q, &k, &options)));
        let panic = attended.err().expect("a panic");
        assert_eq!(panic.downcast_ref::<String>(), Some(&format!("attention: {expected}")));
    };
    refused(Mask::full(), [2, 1], [2, 0], (1, 0));
    refused(Mask::full().causal(), [2, 3], [2, 1], (1, 0));
    refused(Mask::full().within(1), [2, 3], [2, 1], (1, 0));
    let late = BoolMask::new(&q, &q, [false, true, false, true].into_iter().chain([true; 9]).collect());
    let late = late.expect("each sees one");
    refused(Mask::full().allowed(late).causal(), [2, 3], [2, 3], (0, 0));
    assert_eq!(Mask::full().within(9).within(2).check(&q, &k), Ok(()));
}

#[test]
fn mismatched_shapes_panic_with_both_shapes() {
    let n = Ragged::from_lengths([2]);
    let zeros = |rows, width| ColumnView::whole(Tensor::new(Array::zeros(DType::F32, rows, width)));
    let message = |q: ColumnView, k: ColumnView, v: ColumnView, keys: &Ragged, heads: usize| {
        let case = Case::new(&[2], heads, 2, 2);
        let panic = catch_unwind(AssertUnwindSafe(|| attention(q, k, v, &n, keys, &case.options())));
        panic.err().and_then(|panic| panic.downcast_ref::<String>().cloned()).expect("a message")
    };
    let heads = message(zeros(2, 4), zeros(2, 4), zeros(2, 4), &n, 3);
    assert!(heads.contains("attention: queries of width 4 cannot be divided among 3 heads"), "{heads}");
    let widths = message(zeros(2, 4), zeros(2, 6), zeros(2, 4), &n, 2);
    assert!(widths.contains("attention: queries of width 4 and keys of width 6"), "{widths}");
    let rows = message(zeros(2, 4), zeros(3, 4), zeros(3, 4), &n, 2);
    assert!(rows.contains("attention: keys are Tensor(f32 3×4), their sequences have 2 tokens"), "{rows}");
    let counts = message(zeros(2, 4), zeros(2, 4), zeros(2, 4), &Ragged::from_lengths([1, 1]), 2);
    assert!(counts.contains("attention: 1 sequences of queries and 2 of keys"), "{counts}");
}
