//! `heedful doctor`: lists the hardware and libraries found, and which of them heedful would use.

use std::io::{self, Write};

use anyhow::Result;
use heedful::tensor::collective::mpi;
use heedful::tensor::cpu::{isa, threads};
use heedful::tensor::cuda;

/// Show what this machine can compute with: instruction sets, threads, memory, NVIDIA GPU, MPI
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful doctor")]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments) -> Result<()> {
    let available: Vec<String> =
        isa::ALL.into_iter().filter(|isa| isa.is_available()).map(|isa| isa.to_string()).collect();
    let mut text = format!("heedful           {}\n", env!("CARGO_PKG_VERSION"));
    text += &format!("instruction sets  {}; {} is used\n", available.join(", "), isa::current());
    text += &format!("threads           {}\n", threads::thread_count());
    if let Some(bytes) = heedful::system::memory() {
        text += &format!("memory            {} GiB\n", bytes >> 30);
    }
    match cuda::gpu() {
        Ok(gpu) => {
            let (major, minor) = gpu.driver();
            text += &format!(
                "GPU               {}, {}, {} GiB\n",
                gpu.name(),
                gpu.architecture(),
                gpu.memory() >> 30
            );
            text += &format!("driver            CUDA {major}.{minor}\n");
            text += &format!("cuBLASLt          {}\n", gpu.cublaslt_version());
            text += "training          --device cuda or cpu\n";
            text += "inference         --device cuda or cpu; int8 on the CPU\n";
        }
        Err(reason) => {
            text += &format!("GPU               none: {reason}\n");
            text += "training          on the CPU\n";
            text += "inference         on the CPU\n";
        }
    }
    text += &match mpi::library() {
        Ok(library) => format!("MPI               {library}\n"),
        Err(_) => "MPI               none was found; train --distributed needs one\n".to_owned(),
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
