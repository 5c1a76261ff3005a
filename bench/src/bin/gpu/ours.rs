//! heedful's side of the benchmark.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Result, bail};
use heedful::data::batch::Batch;
use heedful::models::Model;
use heedful::models::transformer::Transformer;
use heedful::tensor::{DType, Device, cuda};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};
use serde_json::{Value, json};

use crate::work::Work;

const BATCHES: u64 = 4;
/// Passes over the batches in which CUDA graphs are captured and replayed.
const WARM_UPS: usize = 3;

/// A model that is being trained on the GPU, and its batches.
pub(crate) struct Run {
    trainer: StepTrainer<Transformer>,
    batches: Vec<Batch>,
}

/// The result of a round.
pub(crate) struct Round {
    pub(crate) tokens: usize,
    pub(crate) seconds: f64,
    pub(crate) steps: usize,
    pub(crate) loss: f32,
}

impl Run {
    pub(crate) fn new(work: &Work) -> Result<Run> {
        let gpu = cuda::gpu()?;
        let model = Transformer::new(work.config(), 1)?;
        model.params().move_to(Device::Cuda)?;
        let options = TrainerOptions::new(DType::Bf16, 1, Schedule::noam(512, 4000));
        let mut trainer = StepTrainer::new(model, options);
        let batches: Vec<Batch> = (0..BATCHES).map(|number| work.batch(number)).collect();
        for _ in 0..WARM_UPS {
            for batch in &batches {
                trainer.step(batch)?;
            }
        }
        gpu.wait();
        cuda::take_profile();
        Ok(Run { trainer, batches })
    }

    /// Trains whole passes over the batches, at least one, until the seconds have passed.
    pub(crate) fn round(&mut self, seconds: f64) -> Result<Round> {
        let start = Instant::now();
        let (mut tokens, mut steps, mut loss) = (0, 0, 0.0);
        while steps == 0 || start.elapsed().as_secs_f64() < seconds {
            for batch in &self.batches {
                for report in self.trainer.submit(std::slice::from_ref(batch))? {
                    loss = report.loss;
                }
                tokens += batch.target_in.len();
                steps += 1;
            }
        }
        for report in self.trainer.drain()? {
            loss = report.loss;
        }
        Ok(Round { tokens, seconds: start.elapsed().as_secs_f64(), steps, loss })
    }
}

/// Prints the speed of one cell, and with `HEEDFUL_CUDA_PROFILE=1` the time of each kernel.
pub(crate) fn print(work: &Work, seconds: f64) -> Result<()> {
    let Round { tokens, seconds, steps, loss } = Run::new(work)?.round(seconds)?;
    println!(
        "{}: {:.0} target tokens/s, {:.2} ms a step, loss {loss:.3}, memory {} MiB of {} MiB",
        work.name,
        tokens as f64 / seconds,
        1e3 * seconds / steps as f64,
        cuda::peak_bytes_in_use() >> 20,
        cuda::bytes_reserved() >> 20,
    );
    for (what, count, milliseconds) in cuda::take_profile() {
        let (per_step, each) = (milliseconds / steps as f64, 1e3 * milliseconds / count as f64);
        println!("  {per_step:8.3} ms  {:6.1} times  {each:8.1} us  {what}", count as f64 / steps as f64);
    }
    Ok(())
}

/// Speaks the peer's protocol (`peers/gpu.py`) on stdin and stdout, in a separate process: memory is counted
/// per process.
pub(crate) fn serve(work: &Work) -> Result<()> {
    let mut run = Run::new(work)?;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = match request["op"].as_str() {
            Some("ready") => json!({"name": cuda::gpu()?.name()}),
            Some("round") => {
                let round = run.round(request["seconds"].as_f64().unwrap_or(0.0))?;
                json!({
                    "tokens": round.tokens, "seconds": round.seconds, "steps": round.steps, "loss": round.loss,
                    "held": cuda::peak_bytes_in_use(), "reserved": cuda::bytes_reserved(),
                })
            }
            _ => bail!("no operation in {request}"),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
