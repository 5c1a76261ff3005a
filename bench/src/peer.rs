//! A peer: a long-lived child process that does the same work in another library and answers one line of JSON
//! per request.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// How the peer's C library allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// The default of an installation.
    AsInstalled,
    /// Configured to keep freed memory instead of returning it to the system, which avoids most page faults.
    Tuned,
}

/// A running peer.
pub struct Peer {
    name: String,
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `bench/peers/NAME.py` with the interpreter that `HEEDFUL_BENCH_PYTHON` names.
    pub fn start(name: &str, allocator: Allocator) -> Result<Self> {
        let [program, arguments @ ..] = Self::script(name)?;
        let mut command = Command::new(program);
        command.args(arguments);
        if allocator == Allocator::Tuned {
            for (variable, bytes) in [
                ("MALLOC_MMAP_THRESHOLD_", 1_u64 << 32),
                ("MALLOC_TRIM_THRESHOLD_", 1 << 33),
                ("MALLOC_TOP_PAD_", 1 << 26),
            ] {
                command.env(variable, bytes.to_string());
            }
        }
        Self::spawn(name, &mut command)
    }

    /// The command line that [`Peer::start`] runs.
    pub fn script(name: &str) -> Result<[OsString; 3]> {
        let python = std::env::var_os("HEEDFUL_BENCH_PYTHON")
            .context("HEEDFUL_BENCH_PYTHON is not set; run the bench as `cargo xtask bench NAME`")?;
        // -B: no __pycache__ folders in the source tree.
        Ok([python, "-B".into(), Self::folder().join(format!("{name}.py")).into()])
    }

    /// The folder of the scripts: `HEEDFUL_BENCH_PEERS`, or `peers` next to the program (on a machine without
    /// the sources), or the one in the sources.
    pub fn folder() -> PathBuf {
        let next_to_program =
            || Some(std::env::current_exe().ok()?.with_file_name("peers")).filter(|peers| peers.is_dir());
        std::env::var_os("HEEDFUL_BENCH_PEERS")
            .map(PathBuf::from)
            .or_else(next_to_program)
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("peers"))
    }

    /// Starts any program that speaks the peers' protocol.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("could not start the peer {name}"))?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("the peer has no stdout")?);
        Ok(Self { name: name.to_owned(), child, requests, answers })
    }

    /// Sends one request and waits for its answer.
    pub fn ask(&mut self, request: &Value) -> Result<Value> {
        let name = &self.name;
        let requests = self.requests.as_mut().context("the peer was already closed")?;
        writeln!(requests, "{request}").with_context(|| format!("the peer {name} is gone"))?;
        requests.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the peer {name} ended without an answer to {}", shortened(&request.to_string()));
        }
        let answer: Value = serde_json::from_str(&line)
            .with_context(|| format!("the answer of the peer {name} is not JSON: {}", line.trim_end()))?;
        if let Some(error) = answer["error"].as_str() {
            bail!("the peer {name} failed at {}: {error}", shortened(&request.to_string()));
        }
        Ok(answer)
    }

    /// Sends a request and reads one number out of the answer.
    pub fn ask_number(&mut self, request: &Value, field: &str) -> Result<f64> {
        let answer = self.ask(request)?;
        answer[field].as_f64().with_context(|| format!("no number `{field}` in the answer {answer}"))
    }

    /// Sends a request and reads a list of numbers out of the answer.
    pub fn ask_numbers(&mut self, request: &Value, field: &str) -> Result<Vec<f64>> {
        let answer = self.ask(request)?;
        let list = answer[field].as_array().and_then(|list| list.iter().map(Value::as_f64).collect());
        list.with_context(|| format!("no list of numbers `{field}` in the answer {answer}"))
    }
}

/// A request, shortened for an error message.
fn shortened(request: &str) -> String {
    const MAX_CHARS: usize = 300;
    if request.chars().count() <= MAX_CHARS {
        return request.to_owned();
    }
    request.chars().take(MAX_CHARS).chain(['…']).collect()
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The peer exits at the end of its input; waiting keeps it from overlapping the next measurement.
        drop(self.requests.take());
        let _ = self.child.wait();
    }
}
