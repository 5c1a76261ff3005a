//! `heedful explain positions` and `heedful explain schedule`: two pictures of the paper.

use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::explain::position_table_svg;

use super::output::{scale, write_picture};

/// Draw the table of sinusoidal positions: sin and cos waves of growing length
#[derive(clap::Args)]
pub(super) struct Positions {
    /// .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How many positions
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=512))]
    positions: u16,
    /// How many dimensions
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(2..=1024))]
    d_model: u16,
    /// Pixels for each unit of a .png
    #[arg(long, value_name = "X", default_value = "2", value_parser = scale)]
    scale: f32,
}

/// Draw the learning rate of the paper: up for the warmup, then down with the root of the step
#[derive(clap::Args)]
pub(super) struct Schedule {
    /// .svg or .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Width of the model: wider ones take smaller steps
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    d_model: u32,
    /// Steps until the top
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u64).range(1..))]
    warmup: u64,
    /// Steps in all
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..))]
    steps: u64,
    /// Pixels for each unit of a .png
    #[arg(long, value_name = "X", default_value = "2", value_parser = scale)]
    scale: f32,
}

impl Positions {
    pub(super) fn run(&self) -> Result<()> {
        if !self.d_model.is_multiple_of(2) {
            bail!("--d-model {} is odd: dimensions come in pairs of sin and cos", self.d_model);
        }
        write_picture(
            &self.output,
            &position_table_svg(self.positions.into(), self.d_model.into()),
            self.scale,
        )
    }
}

impl Schedule {
    pub(super) fn run(&self) -> Result<()> {
        let schedule = heedful::train::Schedule::noam(self.d_model as usize, self.warmup);
        write_picture(&self.output, &schedule.svg(self.steps), self.scale)
    }
}
