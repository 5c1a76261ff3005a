//! Long sequences, which are split into pieces.

use super::properties::rows;
use super::*;

/// More than two pieces; the last is not a whole piece, nor whole blocks.
const LONG: usize = 600;

/// Queries of one piece, and those around its end.
const PARTS: [Range<usize>; 5] = [0..256, 255..258, 256..512, 350..600, 599..600];

#[test]
fn agrees_with_the_definition() {
    let dropout = Dropout::new(0.3, Stream::new(1, 2, 3));
    let cases = [
        ("causal", Case::new(&[LONG, 3], 2, 4, 3).causal()),
        ("dropout", Case { dropout, ..Case::new(&[2, LONG], 2, 4, 3) }),
        ("window", Case::new(&[LONG], 1, 4, 3).within(200)),
        ("booleans", Case::new(&[LONG], 1, 3, 4).scattered()),
        ("cross", Case::new(&[LONG, 1, 0], 1, 4, 3).cross(&[40, 300, 2])),
    ];
    for (name, case) in cases {
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::Bf16, 2e-2)] {
            let arrays = case.arrays(dtype);
            let outcome = run(&case, &arrays);
            let (context, [weights, _]) = naive(&case, &[0, 1, 2].map(|part| wide(&arrays[part])));
            close(&format!("{name} {dtype}: context"), &outcome.context, &context, tolerance);
            close(&format!("{name} {dtype}: weights"), &outcome.weights.concat().concat(), &weights, 1e-5);
        }
    }
}

/// Queries that fit into one piece have the same bits as in a long sequence.
#[test]
fn a_query_has_the_same_bits_in_any_piece() {
    for (case, causal) in [(Case::new(&[LONG], 2, 9, 9), false), (Case::new(&[LONG], 2, 9, 9).causal(), true)]
    {
        for dtype in [DType::F32, DType::Bf16] {
            let [q, k, v, _] = case.arrays(dtype);
            for part in PARTS {
                // A causal query is at the position of the last key it may see.
                let keys = if causal { part.end } else { LONG };
                let of = |array: &Array, range: Range<usize>| {
                    let columns = 0..array.width();
                    ColumnView { tensor: Tensor::new(rows(array, range)), columns }
                };
                let attend = |queries: Range<usize>, keys: usize| {
                    let [n_queries, n_keys] = [queries.len(), keys].map(|n| Ragged::from_lengths([n]));
                    let parts = [of(&q, queries), of(&k, 0..keys), of(&v, 0..keys)];
                    let [q, k, v] = parts;
                    no_grad(|| attention(q, k, v, &n_queries, &n_keys, &case.options()).context.to_vec())
                };
                let agree =
                    attend(0..LONG, LONG)[part.start * 18..part.end * 18] == attend(part.clone(), keys);
                assert!(agree, "{part:?} in {dtype}, causal: {causal}");
            }
        }
    }
}

#[test]
fn weights_of_the_first_query_are_those_of_all() {
    let case = Case::new(&[LONG, 1, 40], 2, 4, 3);
    let arrays = case.arrays(DType::F32);
    let [queries, keys] = case.sequences();
    let weights = |requested: ReturnWeights| {
        let [q, k, v, _] = arrays.each_ref().map(|array| ColumnView::whole(Tensor::new(array.clone())));
        let options = AttentionOptions { weights: requested, ..case.options() };
        no_grad(|| attention(q, k, v, &queries, &keys, &options).weights)
    };
    assert!(weights(ReturnWeights::None).is_none());
    let all = weights(ReturnWeights::All).expect("all");
    let first = weights(ReturnWeights::FirstQuery).expect("the first");
    let cut = |(sequence, heads): (usize, &Vec<Vec<f32>>)| -> Vec<Vec<f32>> {
        heads.iter().map(|head| head[..case.keys[sequence]].to_vec()).collect()
    };
    assert!(first == all.iter().enumerate().map(cut).collect::<Vec<_>>());
}
