//! `heedful compare layers`: the paper's table 1, measured here.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::compare::layers::{self, LayerSettings};
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;

use super::bar::Bar;
use crate::commands::train::Voice;
use crate::commands::translate::compute;

/// Measure self attention, restricted self attention, recurrence and convolution as sequences grow.
///
/// One sequence of n tokens, each a vector of width d, goes forward and back through one layer of each kind. Time is the
/// median over repetitions, memory what its buffers held at most, and what waits for the way back.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Lengths n of the sequence, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "16,64,256,1024")]
    lengths: Vec<usize>,
    /// Widths d of its vectors, separated by commas
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "64,256")]
    widths: Vec<usize>,
    /// How far restricted self attention sees, to each side: r
    #[arg(long, value_name = "R", default_value_t = 16)]
    window: usize,
    /// How many tokens the convolution sees; odd: k
    #[arg(long, value_name = "K", default_value_t = 3)]
    taps: usize,
    /// How long each time is measured
    #[arg(long, value_name = "X", default_value_t = 0.3)]
    seconds: f64,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
    /// Also write compare.md, compare.csv and report.html into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Say nothing but the result and errors
    #[arg(long)]
    quiet: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let settings = LayerSettings {
        lengths: ascending(&arguments.lengths),
        widths: ascending(&arguments.widths),
        window: arguments.window,
        taps: arguments.taps,
        seconds: arguments.seconds,
        compute: arguments.compute,
    };
    let voice = if arguments.quiet { Voice::Silent } else { Voice::Talking };
    let bar = Bar::new(voice, settings.count());
    bar.show(0, 0.0, || "measuring".to_owned());
    let mut done = 0;
    let measured = layers::measure(&settings, &mut |found| {
        done += 1;
        bar.show(done, 0.0, || format!("{}, n {}, d {}", found.kind, found.n, found.d));
    });
    bar.finish();
    let files = layers::files(&settings, &measured?);
    if let Some(folder) = &arguments.out {
        files.save(folder)?;
    }
    Ok(io::stdout().lock().write_all(files.markdown.as_bytes())?)
}

fn ascending(sizes: &[usize]) -> Vec<usize> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
