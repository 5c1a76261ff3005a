//! Device, number type and threads of a command: the same flags, defaults and help for every command.
//!
//! ```text
//! Machine      --compute TYPE  --threads N  --device NAME    commands that open a model
//! DeviceName                                --device NAME    ┐ train and compare variations, whose --compute is a key of the
//! Threads                      --threads N                   ┘ recipe; demo, which computes in the default type
//! Threads                      --threads N                   vocab, which has no numbers to compute
//! ```

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;
use heedful::models::{ChosenDevice, DeviceChoice};
use heedful::tasks::OpenOptions;
use heedful::tensor::cpu::threads;
use heedful::tensor::{Device, Precision, cuda};

use crate::progress::Verbosity;

const HEADING: &str = "Machine";

/// The machine that a model runs on.
#[derive(clap::Args)]
pub(crate) struct Machine {
    /// Number type of the matrix products; everything else is computed in f32, and int8 keeps its KV cache in
    /// bf16 [default: bf16; int8 for an int8 model on the CPU]
    #[arg(long, value_enum, value_name = "TYPE", help_heading = HEADING)]
    compute: Option<Compute>,
    #[command(flatten)]
    device: DeviceName,
    #[command(flatten)]
    threads: Threads,
}

/// Number of threads. Results never depend on it.
#[derive(clap::Args)]
pub(crate) struct Threads {
    /// Number of threads; the results are the same with any number. `auto` is one for each core that this
    /// process may use, considering its affinity and cgroup limits [default: HEEDFUL_THREADS, or auto]
    #[arg(long, value_name = "N|auto", value_parser = thread_count, help_heading = HEADING)]
    threads: Option<ThreadCount>,
}

#[derive(Clone, Copy)]
enum ThreadCount {
    Auto,
    Exactly(usize),
}

fn thread_count(value: &str) -> Result<ThreadCount, String> {
    let most = threads::MAX_THREADS;
    if value == "auto" {
        return Ok(ThreadCount::Auto);
    }
    let count = value
        .parse()
        .map_err(|_| format!("the number of threads is a whole number from 1 to {most}, or auto"))?;
    match count {
        0 => Err("no thread would compute: use 1 or more".to_owned()),
        count if count > most => Err(format!("heedful computes with {most} threads at most")),
        count => Ok(ThreadCount::Exactly(count)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compute {
    /// Operands rounded to bf16, sums in f32; faster on CPUs with AMX
    Bf16,
    /// Operands and sums in f32
    F32,
    /// Operands in int8 with a scale for each row and column; the same result on every instruction set
    Int8,
}

/// The device.
#[derive(clap::Args)]
pub(crate) struct DeviceName {
    /// Device that computes: models train and run on both [default: auto]
    #[arg(long, value_enum, value_name = "NAME", help_heading = HEADING)]
    device: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The CPU
    Cpu,
    /// The NVIDIA GPU
    Cuda,
    /// The GPU if there is one, else the CPU
    Auto,
}

impl DeviceName {
    /// The choice. By default the CPU if there is no GPU, which then needs no reason.
    pub(crate) fn choice(&self) -> DeviceChoice {
        match self.device {
            Some(Name::Cpu) => DeviceChoice::Cpu,
            Some(Name::Cuda) => DeviceChoice::Cuda,
            Some(Name::Auto) => DeviceChoice::Auto,
            None if cuda::gpu().is_ok() => DeviceChoice::Auto,
            None => DeviceChoice::Cpu,
        }
    }

    /// The choice for training, as [`DeviceName::set_up`] prints it.
    pub(crate) fn set_up_training(&self, verbosity: Verbosity) -> Result<DeviceChoice> {
        let choice = self.choice();
        choice.for_training()?;
        self.print_default_gpu(verbosity);
        Ok(choice)
    }

    /// Prints a GPU that was selected by default.
    fn print_default_gpu(&self, verbosity: Verbosity) {
        if let (None, Verbosity::Normal, Ok(gpu)) = (self.device, verbosity, cuda::gpu()) {
            eprintln!("heedful: uses the GPU, {}; --device cpu for the CPU", gpu.name());
        }
    }

    /// For work that is done on the CPU: an error if a GPU is asked for, a line on standard error if it is
    /// left open. To be called before anything is read or written.
    pub(crate) fn require_cpu(&self, work: &str, verbosity: Verbosity) -> Result<()> {
        let why = format!("{work} runs on the CPU");
        match self.device {
            Some(Name::Cuda) => bail!("{why}: use --device cpu or auto"),
            Some(Name::Auto) if verbosity == Verbosity::Normal => eprintln!("heedful: {why}"),
            Some(Name::Auto | Name::Cpu) | None => {}
        }
        Ok(())
    }

    /// The device; to be called before anything is read or written. Returns an error if `--device cuda` finds
    /// no GPU. Prints a GPU that was selected by default, and the reason if `--device auto` selects the CPU.
    pub(crate) fn set_up(&self, verbosity: Verbosity) -> Result<Device> {
        let ChosenDevice { device, why_not_gpu } = self.chosen()?;
        if let (Some(why), Verbosity::Normal) = (why_not_gpu, verbosity) {
            eprintln!("heedful: uses the CPU: {why}");
        }
        self.print_default_gpu(verbosity);
        Ok(device)
    }

    fn chosen(&self) -> Result<ChosenDevice> {
        self.choice().choose().map_err(|why| anyhow!("{why}: use --device cpu or auto"))
    }
}

impl Machine {
    /// Sets the machine up for work that is done on the CPU only, before anything is read or written.
    pub(crate) fn set_up_cpu(&self, work: &str, verbosity: Verbosity) -> Result<()> {
        self.device.require_cpu(work, verbosity)?;
        self.threads.set_up();
        Ok(())
    }

    /// Sets the machine up, as [`DeviceName::set_up`].
    pub(crate) fn set_up(&self, verbosity: Verbosity) -> Result<()> {
        match self.device.device {
            // Without --device, int8 is computed where it can be.
            None if self.compute == Some(Compute::Int8) => {}
            Some(Name::Cuda | Name::Auto) if self.compute == Some(Compute::Int8) && self.is_gpu() => {
                bail!("int8 is computed on the CPU: use --compute bf16, or --device cpu")
            }
            _ => drop(self.device.set_up(verbosity)?),
        }
        self.threads.set_up();
        Ok(())
    }

    /// Options to open the model with.
    pub(crate) fn opening(&self) -> OpenOptions {
        OpenOptions::new().device(self.choice()).compute(self.precision())
    }

    fn is_gpu(&self) -> bool {
        match self.device.choice() {
            DeviceChoice::Cpu => false,
            DeviceChoice::Cuda => true,
            DeviceChoice::Auto => cuda::gpu().is_ok(),
        }
    }

    /// The choice of the device.
    pub(crate) fn choice(&self) -> DeviceChoice {
        match (self.device.device, self.compute) {
            (None, Some(Compute::Int8)) => DeviceChoice::Cpu,
            _ => self.device.choice(),
        }
    }

    /// Whether a number type was named.
    pub(crate) fn has_compute(&self) -> bool {
        self.compute.is_some()
    }

    /// Number type of the matrix products, if one was named; else the model and the device decide.
    pub(crate) fn precision(&self) -> Option<Precision> {
        self.compute.map(|compute| match compute {
            Compute::Bf16 => Precision::Bf16,
            Compute::F32 => Precision::F32,
            Compute::Int8 => Precision::Int8,
        })
    }
}

impl Threads {
    /// Whether a number was named, here or in the environment.
    pub(crate) fn is_chosen(&self) -> bool {
        matches!(self.threads, Some(ThreadCount::Exactly(_)))
            || (self.threads.is_none() && std::env::var_os("HEEDFUL_THREADS").is_some())
    }

    /// Sets the number of threads, before anything is computed.
    pub(crate) fn set_up(&self) {
        match self.threads {
            Some(ThreadCount::Exactly(count)) => threads::set_thread_count(count),
            Some(ThreadCount::Auto) => threads::set_thread_count(threads::available_cores()),
            None => {}
        }
    }
}
