//! A training step on a card: `card [SECONDS] [CELL]`. Target tokens a second of the base model (25,600 tokens a side, 32,000 subwords)
//! and of the IWSLT model (4,096 tokens, 10,000 subwords), for equal and for log-normal lengths.

use std::time::Instant;

use anyhow::Result;
use heedful::data::batch::Batch;
use heedful::models::Model;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::random::Stream;
use heedful::tensor::{DType, Device, cuda};
use heedful::train::{Schedule, Trainer, TrainerOptions};

fn main() -> Result<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(3.0), |text| text.parse())?;
    let cell = std::env::args().nth(2).unwrap_or_default();
    let card = cuda::card()?;
    println!("{} {}", card.name(), card.architecture());
    for (name, feed_forward, heads, vocabulary, tokens) in
        [("base", 2048, 8, 32_000, 25_600), ("iwslt", 1024, 4, 10_000, 4_096)]
    {
        for spread in ["equal", "log-normal"] {
            if !format!("{name} {spread}").contains(&cell) {
                continue;
            }
            let config = TransformerConfig {
                source_vocabulary: vocabulary,
                target_vocabulary: vocabulary,
                d_model: 512,
                heads,
                d_ff: feed_forward,
                encoder_layers: 6,
                decoder_layers: 6,
                label_smoothing: 0.1,
                dropout: DropoutRates { residual: 0.1, ..DropoutRates::default() },
                ..TransformerConfig::tiny(vocabulary)
            };
            let model = Transformer::new(config, 1)?;
            model.params().move_to(Device::Cuda);
            let options = TrainerOptions::new(DType::Bf16, 1, Schedule::noam(512, 4000));
            let mut trainer = Trainer::new(model, options);
            let batches: Vec<Batch> = (0..4).map(|i| batch(i, spread, tokens, vocabulary as u32)).collect();
            let mut steps = 0;
            // Seen, recorded, replayed.
            for batch in batches.iter().chain(&batches).chain(&batches) {
                trainer.step(batch)?;
            }
            card.wait();
            cuda::take_profile();
            let (start, mut done, waited) = (Instant::now(), 0, cuda::waited());
            let mut loss = 0.0;
            while start.elapsed().as_secs_f64() < seconds {
                let batch = &batches[steps % batches.len()];
                for report in trainer.submit(std::slice::from_ref(batch))? {
                    loss = report.loss;
                }
                done += batch.target_in.len();
                steps += 1;
            }
            trainer.drain()?;
            let took = start.elapsed().as_secs_f64();
            println!(
                "{name} {spread}: {:.0} target tokens/s, {:.2} ms a step ({:.2} of the host), loss {loss:.3}, memory {} MiB of {} MiB",
                done as f64 / took,
                1e3 * took / steps as f64,
                1e3 * (took - (cuda::waited() - waited).as_secs_f64()) / steps as f64,
                cuda::most_bytes_held() >> 20,
                cuda::bytes_reserved() >> 20,
            );
            for (what, count, milliseconds) in cuda::take_profile() {
                let (per_step, each) = (milliseconds / steps as f64, 1e3 * milliseconds / count as f64);
                println!(
                    "  {per_step:8.3} ms  {:6.1} times  {each:8.1} us  {what}",
                    count as f64 / steps as f64
                );
            }
        }
    }
    Ok(())
}

fn batch(number: u64, spread: &str, tokens: usize, vocabulary: u32) -> Batch {
    let stream = Stream::new(9, number, 0);
    let mut pairs = Vec::new();
    let (mut left, mut draw) = (tokens, 0);
    while left > 0 {
        let length = match spread {
            "equal" => 32,
            _ => {
                draw += 1;
                // A log-normal length of mean 25.
                (25.0_f32.ln() - 0.18 + 0.6 * stream.normal(draw)).exp().round().clamp(2.0, 250.0) as usize
            }
        };
        let length = length.min(left).max(2);
        let sentence = |side: u32, length: usize| -> Vec<u32> {
            (0..length as u32)
                .map(|t| 4 + stream.bits(t * 8 + side + pairs.len() as u32 * 4096) % (vocabulary - 4))
                .collect()
        };
        // Both sides have one token more: <eos> and <bos>.
        pairs.push((sentence(0, length - 1), sentence(1, length - 1)));
        left = left.saturating_sub(length);
    }
    Batch::new(&pairs, 1, 2).expect("a good batch")
}
