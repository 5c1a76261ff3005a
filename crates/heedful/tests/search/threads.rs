//! Threads that decode sentences of their own.

use heedful::decode::{SearchOptions, score, search};
use heedful::tensor::Precision;
use heedful::tensor::cpu::threads;

use crate::transformer::{VOCABULARY, alone, bits, config, model, options};

/// Sentences come in so many that every thread has some of its own, and some later than others.
#[test]
fn sentences_of_a_thread_have_the_bits_of_those_that_all_threads_share() {
    let _alone = alone();
    let word = |i: usize| (3 + (i * i * 11 + i * 5) % (VOCABULARY - 3)) as u32;
    let sources: Vec<Vec<u32>> = (0..90).map(|i| (i * 7..i * 7 + 1 + i % 23).map(word).collect()).collect();
    let model = model(config());
    for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let run = |batch_tokens: usize, thread_count: usize| {
            threads::set_thread_count(thread_count);
            let options = SearchOptions { batch_tokens: Some(batch_tokens), ..options(compute, 4) };
            let found = search(&model, &sources, &options).expect("good sources");
            let pairs: Vec<_> =
                sources.iter().cloned().zip(found.iter().map(|f| f[0].tokens.clone())).collect();
            let scores = score(&model, &pairs, &options).expect("good pairs");
            let scores: Vec<u64> = scores.iter().map(|score| score.log_probability.to_bits()).collect();
            (found.iter().map(|found| bits(found)).collect::<Vec<_>>(), scores)
        };
        let shared = run(100, 1);
        for (batch_tokens, thread_count) in [(100_000, 2), (100_000, 3), (2500, 2)] {
            assert!(shared == run(batch_tokens, thread_count), "{compute} {batch_tokens} {thread_count}");
        }
    }
}
