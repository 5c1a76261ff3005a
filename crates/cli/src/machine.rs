//! What a command computes with: the same flags, defaults and help for every command.
//!
//! ```text
//! Machine   --compute TYPE  --threads N     commands that open a model
//! DeviceName                --device NAME   train
//! Threads                   --threads N     train and compare variations, whose --compute is a key of the recipe;
//!                                           demo, which chooses the type itself; evaluate and vocab, which have no model
//! ```

use clap::ValueEnum;
use heedful::tensor::cpu::threads;
use heedful::tensor::{DType, cuda};
use heedful::train::run::DeviceChoice;

const HEADING: &str = "Machine";

/// The machine that a model runs on.
#[derive(clap::Args)]
pub(crate) struct Machine {
    /// Number type of the matrix products; everything else is computed in f32
    #[arg(long, value_enum, default_value = "bf16", value_name = "TYPE", help_heading = HEADING)]
    compute: Compute,
    #[command(flatten)]
    threads: Threads,
}

/// How many threads compute. Results never depend on it.
#[derive(clap::Args)]
pub(crate) struct Threads {
    /// Number of threads that compute; the results are the same with any number [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = HEADING)]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compute {
    /// Operands rounded to bf16, sums in f32; faster on processors with AMX
    Bf16,
    /// Operands and sums in f32
    F32,
}

/// What a model is trained on.
#[derive(clap::Args)]
pub(crate) struct DeviceName {
    /// What to train on; Transformers that translate train on NVIDIA cards
    #[arg(long, value_enum, default_value = "cpu", value_name = "NAME", help_heading = HEADING)]
    device: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The processor
    Cpu,
    /// The NVIDIA card
    Cuda,
    /// The card if there is one and the model trains there, else the processor
    Auto,
}

impl DeviceName {
    /// The choice. Where there is no card, `auto` says so in one line.
    pub(crate) fn choice(&self) -> DeviceChoice {
        match self.device {
            Name::Cpu => DeviceChoice::Cpu,
            Name::Cuda => DeviceChoice::Cuda,
            Name::Auto => {
                if let Err(reason) = cuda::card() {
                    eprintln!("heedful: uses the processor: {reason}");
                }
                DeviceChoice::Auto
            }
        }
    }
}

impl Machine {
    /// Sets the machine up, before anything is computed.
    pub(crate) fn set_up(&self) {
        self.threads.set_up();
    }

    /// Number type of the matrix products.
    pub(crate) fn compute(&self) -> DType {
        match self.compute {
            Compute::Bf16 => DType::Bf16,
            Compute::F32 => DType::F32,
        }
    }
}

impl Threads {
    /// Sets the number of threads, before anything is computed.
    pub(crate) fn set_up(&self) {
        if let Some(count) = self.threads {
            threads::set_thread_count(count.into());
        }
    }
}
