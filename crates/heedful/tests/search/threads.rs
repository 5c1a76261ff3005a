//! Threads that decode their own sentences.

use heedful::decode::{SearchOptions, score, search};
use heedful::tensor::Precision;
use heedful::tensor::cpu::threads;

use crate::transformer::{VOCABULARY, bits, config, exclusive, model, options};

/// Enough sentences that every thread has its own, and some threads start later than others.
#[test]
fn sentences_have_the_same_bits_whether_one_thread_or_all_threads_decode_them() {
    let _lock = exclusive();
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
