//! A side is a process: ours is this program with `--worker`, the peer's is `peers/translate.py`. Both answer
//! the same requests; threads and instruction set are set when the process starts.

use std::collections::HashSet;
use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use heedful::tensor::cpu::isa::Isa;
use heedful_bench::Peer;
use serde_json::{Value, json};

use super::model::Model;
use super::work::{Outputs, Work};

/// The translation engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Ours,
    CTranslate2,
}

/// The settings of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) threads: usize,
    /// The instruction set, if not the best available.
    pub(super) isa: Option<Isa>,
}

/// A running side.
pub(super) struct Process {
    peer: Peer,
    /// The compute types for which the model is open.
    open: HashSet<String>,
}

/// The result of a translation.
pub(super) struct Translated {
    /// Seconds of each batch, of one pass or several.
    pub(super) times: Vec<f64>,
    /// Tokens of the outputs of one pass.
    pub(super) tokens: usize,
    /// The outputs of one pass, if requested.
    pub(super) outputs: Vec<Vec<u32>>,
}

impl Process {
    pub(super) fn start(engine: Engine, setting: Setting) -> Result<Process> {
        let words: Vec<OsString> = match engine {
            Engine::Ours => vec![std::env::current_exe()?.into(), "--worker".into()],
            Engine::CTranslate2 => Peer::script("translate")?.into(),
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        match engine {
            Engine::Ours => {
                command.env("HEEDFUL_THREADS", setting.threads.to_string());
                if let Some(isa) = setting.isa {
                    command.env("HEEDFUL_ISA", isa.to_string());
                }
            }
            Engine::CTranslate2 => {
                if let Some(isa) = setting.isa {
                    // CT2_FORCE_CPU_ISA applies to its own loops only; MKL and oneDNN detect the CPU
                    // themselves.
                    let [own, mkl, onednn] = match isa {
                        Isa::Avx2 => ["AVX2", "AVX2", "AVX2"],
                        Isa::AvxVnni => ["AVX2", "AVX2_E1", "AVX2_VNNI"],
                        _ => ["AVX512", "AVX512_E1", "AVX512_CORE_VNNI"],
                    };
                    command
                        .env("CT2_FORCE_CPU_ISA", own)
                        .env("MKL_ENABLE_INSTRUCTIONS", mkl)
                        .env("ONEDNN_MAX_CPU_ISA", onednn);
                }
            }
        }
        let name = match engine {
            Engine::Ours => "heedful",
            Engine::CTranslate2 => "CTranslate2",
        };
        Ok(Process { peer: Peer::spawn(name, &mut command)?, open: HashSet::new() })
    }

    /// A process of the peer that only converts models.
    pub(super) fn converter() -> Result<Peer> {
        Peer::start("translate", heedful_bench::Allocator::AsInstalled)
    }

    pub(super) fn ask(&mut self, request: &Value) -> Result<Value> {
        self.peer.ask(request)
    }

    /// Opens a model for a compute type, unless it is open already; returns the seconds.
    pub(super) fn open(
        &mut self,
        engine: Engine,
        model: &Model,
        compute: &str,
        threads: usize,
    ) -> Result<f64> {
        if !self.open.insert(compute.to_owned()) {
            return Ok(0.0);
        }
        let folder = match engine {
            Engine::Ours => model.ours(compute),
            Engine::CTranslate2 => &model.converted,
        };
        let request = json!({"op": "open", "folder": folder, "compute": compute, "threads": threads});
        self.peer.ask_number(&request, "seconds")
    }

    /// Closes a model of the peer.
    pub(super) fn close(&mut self, compute: &str) -> Result<()> {
        self.open.remove(compute);
        self.ask(&json!({"op": "close", "compute": compute})).map(drop)
    }

    /// Translates for about `seconds`, at least one pass over all batches.
    pub(super) fn translate(
        &mut self,
        work: &Work,
        compute: &str,
        seconds: f64,
        outputs: Outputs,
    ) -> Result<Translated> {
        let mut answer = self.ask(&work.request(compute, seconds, outputs))?;
        let times: Vec<f64> =
            serde_json::from_value(answer["times"].take()).context("the times of batches")?;
        if times.is_empty() || !times.len().is_multiple_of(work.batches.len()) {
            bail!("{} times for {} batches", times.len(), work.batches.len());
        }
        Ok(Translated {
            times,
            tokens: answer["tokens"].as_u64().context("the number of tokens")? as usize,
            outputs: serde_json::from_value(answer["outputs"].take()).context("the outputs")?,
        })
    }
}

impl Translated {
    /// The seconds of one pass over the work.
    pub(super) fn pass(&self, work: &Work) -> f64 {
        self.times.iter().sum::<f64>() / (self.times.len() / work.batches.len()) as f64
    }
}
