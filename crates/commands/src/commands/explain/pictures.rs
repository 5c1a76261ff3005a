//! `heedful explain positions` and `heedful explain schedule`: two figures of the paper, drawn without a
//! model.

use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::explain::position_table_svg;
use heedful::store::output::OutputFile;

use super::output::{Format, PICTURES, write_picture};

/// Draw the sinusoidal position encodings: sine and cosine waves of growing wavelength
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful explain positions -o positions.svg")]
pub(super) struct Positions {
    /// Picture to write: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Number of positions
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=512))]
    positions: u16,
    /// Dimensions of the encoding (d_model); even
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(2..=1024))]
    d_model: u16,
}

/// Draw the learning rate of “Attention Is All You Need” (noam): linear warmup, then
/// inverse square root decay
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful explain schedule -o schedule.svg --warmup 4000")]
pub(super) struct Schedule {
    /// Picture to write: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Width of the model (d_model): the learning rate is proportional to d_model^-0.5
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    d_model: u32,
    /// Warmup steps
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..))]
    warmup: u64,
    /// Total number of steps
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..))]
    steps: u64,
}

impl Positions {
    pub(super) fn run(&self) -> Result<()> {
        if !self.d_model.is_multiple_of(2) {
            bail!(
                "--d-model {} is odd: dimensions are pairs of sine and cosine, give an even number",
                self.d_model
            );
        }
        Format::of(&self.output, &PICTURES)?;
        let file = OutputFile::open(&self.output, &[])?;
        write_picture(file, &position_table_svg(self.positions.into(), self.d_model.into()))
    }
}

impl Schedule {
    pub(super) fn run(&self) -> Result<()> {
        Format::of(&self.output, &PICTURES)?;
        let file = OutputFile::open(&self.output, &[])?;
        let schedule = heedful::train::Schedule::noam(self.d_model as usize, self.warmup);
        write_picture(file, &schedule.svg(self.steps))
    }
}
