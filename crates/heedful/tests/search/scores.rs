//! Searches whose scores nobody uses.

use heedful::decode::{OutputScores, SearchOptions, search};
use heedful::tensor::Precision;

use crate::transformer::{config, exclusive, model, options, sources};

#[test]
fn greedy_search_without_scores_has_the_same_outputs() {
    let _lock = exclusive();
    let model = model(config());
    for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
        for beam in [1, 2] {
            let used = options(compute, beam);
            let unused = SearchOptions { scores: OutputScores::Unused, ..used.clone() };
            let with = search(&model, &sources(), &used).expect("good sources");
            let without = search(&model, &sources(), &unused).expect("good sources");
            for (with, without) in with.iter().flatten().zip(without.iter().flatten()) {
                assert_eq!(with.tokens, without.tokens, "{compute} beam {beam}");
                if beam == 1 {
                    assert!(without.score.is_nan() && without.log_probability.is_nan());
                } else {
                    assert_eq!(with, without);
                }
            }
        }
    }
}
