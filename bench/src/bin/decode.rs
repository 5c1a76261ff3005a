//! Sentences per second: search with a KV cache against recomputing every prefix.
//!
//! `cargo run --release -p heedful-bench --bin decode` (sentences, length, rounds and one name: `-- 100 25 3 'bf16 cached, beam 4'`)

use std::time::Instant;

use heedful::decode::{MaxLength, SearchOptions, search};
use heedful::layers::Pass;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::{DType, Ragged, ops};

const VOCABULARY: usize = 8000;

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(4);
    let mut numbers = std::env::args().skip(1).take(3).map(|number| number.parse::<usize>());
    let mut number = |default| numbers.next().unwrap_or(Ok(default));
    let (count, length, rounds) = (number(100)?, number(25)?, number(3)?);
    let config = TransformerConfig {
        d_model: 256,
        d_ff: 1024,
        heads: 8,
        encoder_layers: 3,
        decoder_layers: 3,
        dropout: DropoutRates::default(),
        ..TransformerConfig::tiny(VOCABULARY)
    };
    let model = Transformer::new(config, 1)?;
    let word = |i: usize| (3 + i * 7919 % (VOCABULARY - 3)) as u32;
    let sources: Vec<Vec<u32>> =
        (0..count).map(|i| (i * length..(i + 1) * length).map(word).collect()).collect();
    println!(
        "{count} sentences of {length} tokens, as many out, d 256, 3 + 3 layers, vocabulary {VOCABULARY}"
    );
    for compute in [DType::Bf16, DType::F32] {
        let measure = |name: &str, work: &dyn Fn() -> anyhow::Result<usize>| -> anyhow::Result<()> {
            if only.as_ref().is_some_and(|only| *only != format!("{compute} {name}")) {
                return Ok(());
            }
            let mut best = f64::INFINITY;
            let mut tokens = 0;
            for _ in 0..rounds {
                let start = Instant::now();
                tokens = work()?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            let rate = count as f64 / best;
            println!("{compute:5} {name:22} {rate:8.1} sentences/s   {tokens} tokens");
            Ok(())
        };
        measure("every prefix anew", &|| Ok(prefixes_anew(&model, &sources, compute)))?;
        for beam in [1, 4, 5] {
            let max_length = MaxLength::Absolute(length);
            let options = SearchOptions {
                beam,
                max_length,
                compute: compute.into(),
                min_length: length,
                ..SearchOptions::default()
            };
            measure(&format!("cached, beam {beam}"), &|| {
                let found = search(&model, &sources, &options)?;
                Ok(found.iter().map(|found| found[0].tokens.len()).sum())
            })?;
        }
    }
    Ok(())
}

/// Greedy search without a cache.
fn prefixes_anew(model: &Transformer, sources: &[Vec<u32>], compute: DType) -> usize {
    let mut pass = Pass::inference(compute);
    let memory =
        model.encode(&sources.concat(), &Ragged::from_lengths(sources.iter().map(Vec::len)), &mut pass);
    let mut outputs = vec![vec![1]; sources.len()];
    for _ in 0..sources[0].len() {
        let prefixes = Ragged::from_lengths(outputs.iter().map(Vec::len));
        let states = model.decode(&outputs.concat(), &prefixes, &memory, &mut pass);
        let ends: Vec<usize> = prefixes.ranges().map(|range| range.end - 1).collect();
        let scores = model.project(&ops::gather_rows(&states, &ends), &mut pass).to_vec();
        for (output, row) in outputs.iter_mut().zip(scores.chunks_exact(VOCABULARY)) {
            output.push((1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best }) as u32);
        }
    }
    outputs.iter().map(|output| output.len() - 1).sum()
}
