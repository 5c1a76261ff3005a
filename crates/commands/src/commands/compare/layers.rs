//! `heedful compare layers`: the paper's table 1, measured on this machine.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::compare::layers::{self, LayerSettings};
use heedful::tensor::Precision;

use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet};

/// Measure time and memory of self attention, restricted self attention, recurrence and convolution, plain
/// and dilated (table 1)
///
/// One sequence of n tokens, each a vector of width d, runs forward and backward through one layer of each
/// kind. Time is the median over repetitions; memory is the peak of all buffers, and the activations saved
/// for the backward pass. Attention computes its weights in blocks: its time grows with n², its memory with
/// n.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Sequence lengths n, separated by commas
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "16,64,256,1024,4096,8192")]
    lengths: Vec<usize>,
    /// Widths d of the vectors, separated by commas
    #[arg(long, value_name = "D,…", value_delimiter = ',', default_value = "64,256")]
    widths: Vec<usize>,
    /// Window r of restricted self attention: tokens on each side
    #[arg(long, value_name = "R", default_value_t = 16)]
    window: usize,
    /// Kernel size k of the convolution; odd
    #[arg(long, alias = "taps", value_name = "K", default_value_t = 3)]
    kernel_size: usize,
    /// Duration of each measurement in seconds
    #[arg(long, value_name = "S", default_value_t = 0.3)]
    seconds: f64,
    /// Also write compare.md, compare.csv and report.html to this folder
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    out: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful compare layers
  heedful compare layers --lengths 64,1024,16384 --widths 512 --compute f32 --out layers";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up_cpu("measuring layers", arguments.quiet.verbosity())?;
    if arguments.machine.precision() == Some(Precision::Int8) {
        bail!(
            "layers are measured forward and backward, and int8 supports inference only: use --compute bf16 or f32"
        );
    }
    if let Some(folder) = &arguments.out {
        arguments.force.check_folder(folder, &[])?;
    }
    let settings = LayerSettings {
        lengths: ascending(&arguments.lengths),
        widths: ascending(&arguments.widths),
        window: arguments.window,
        kernel_size: arguments.kernel_size,
        seconds: arguments.seconds,
        compute: arguments.machine.precision().unwrap_or(Precision::Bf16).dtype(),
    };
    check(arguments)?;
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), settings.count());
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

/// Refuses sizes that would exhaust memory.
fn check(arguments: &Arguments) -> Result<()> {
    let largest = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(0);
    for (flag, value, max) in [
        ("--lengths", largest(&arguments.lengths), 131_072),
        ("--widths", largest(&arguments.widths), 8_192),
        ("--kernel-size", arguments.kernel_size, 1_001),
    ] {
        if value > max {
            bail!("{flag} has {value}: it may be at most {max}");
        }
    }
    if !(0.0..=3600.0).contains(&arguments.seconds) {
        bail!("--seconds is {}: it must be from 0 to 3600", arguments.seconds);
    }
    Ok(())
}

fn ascending(sizes: &[usize]) -> Vec<usize> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
