//! `heedful serve`: models over HTTP, with a page that shows what they look at.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use heedful::text::{BOS, EOS};
use heedful_server::{AccessLog, Limits, ModelSpec, Server, ServerOptions};

use super::translate::compute;

/// Serve models over HTTP: LibreTranslate's interface, an own one with everything, and a web page
///
/// Translators, classifiers and language models are served side by side. A translator's languages come from its name
/// (en-de), from --source and --target, or from the recipe of its training run (train.en, train.de).
///
/// Ctrl-C or SIGTERM ends the server when it has answered what it accepted; SIGHUP loads all models again.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a model or of a training run; or use --model
    folder: Option<PathBuf>,
    /// Serve a folder under a name, such as en-de=runs/multi30k; may be given several times
    #[arg(long, value_name = "NAME=FOLDER", value_parser = ModelSpec::parse)]
    model: Vec<ModelSpec>,
    /// The language that FOLDER translates from, such as en
    #[arg(long, value_name = "CODE", requires = "folder")]
    source: Option<String>,
    /// The language that FOLDER translates into
    #[arg(long, value_name = "CODE", requires = "folder")]
    target: Option<String>,
    /// Show the training runs below this folder in the page
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,

    /// The address to listen on; 0.0.0.0 lets other machines in
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), help_heading = "Network")]
    host: IpAddr,
    /// The port to listen on; 0 takes any that is free
    #[arg(long, default_value_t = 5000, help_heading = "Network")]
    port: u16,
    /// A JSON file of API keys with their rates: [{"key", "name", "requests_per_minute", "characters_per_minute", "admin"}]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    keys: Option<PathBuf>,
    /// Let web pages of this origin use the server: * or https://example.org
    #[arg(long, value_name = "ORIGIN", help_heading = "Network")]
    allow_origin: Option<String>,
    /// Write a line for each answer to standard error; never any text
    #[arg(long, help_heading = "Network")]
    log: bool,
    /// Load a model again when its weights on disk change
    #[arg(long, help_heading = "Network")]
    watch: bool,

    /// Hypotheses that are followed at a time, unless a request says otherwise; 1 is greedy
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// α of the length penalty ((5 + length) / 6)^α: 0 favours short translations
    #[arg(long, default_value_t = 0.6, value_name = "X", help_heading = "Search")]
    length_penalty: f64,
    /// No sequence of N tokens occurs twice in a translation
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,

    /// The most bytes of a request
    #[arg(long, default_value_t = Limits::default().body_bytes, value_name = "N", help_heading = "Limits")]
    max_bytes: usize,
    /// The most characters of a request
    #[arg(long, default_value_t = Limits::default().characters, value_name = "N", help_heading = "Limits")]
    max_characters: usize,
    /// The most sentences of a request
    #[arg(long, default_value_t = Limits::default().sentences, value_name = "N", help_heading = "Limits")]
    max_sentences: usize,
    /// The most hypotheses, or outputs, that a request may ask for
    #[arg(long, default_value_t = Limits::default().beam, value_name = "N", help_heading = "Limits")]
    max_beam: usize,
    /// The most tokens that a request may let a language model add
    #[arg(long, default_value_t = Limits::default().tokens, value_name = "N", help_heading = "Limits")]
    max_tokens: usize,
    /// The most sentences that wait for a model; above that, requests are answered with 503
    #[arg(long, default_value_t = Limits::default().queue, value_name = "N", help_heading = "Limits")]
    queue: usize,
    /// The most connections at a time; further ones wait
    #[arg(long, default_value_t = Limits::default().connections, value_name = "N", help_heading = "Limits")]
    connections: usize,
    /// The most seconds that a request may take; then it is answered with 504
    #[arg(long, default_value_t = Limits::default().timeout.as_secs(), value_name = "S", help_heading = "Limits")]
    timeout: u64,
    /// The most seconds that a client may take to send its request, or to take in its answer
    #[arg(long, default_value_t = Limits::default().client_timeout.as_secs(), value_name = "S", help_heading = "Limits")]
    client_timeout: u64,

    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute, help_heading = "Machine")]
    compute: DType,
    /// How many tokens are worked on side by side; changes speed and memory, never a translation
    #[arg(long, default_value_t = 8192, value_name = "N", help_heading = "Machine")]
    batch_tokens: usize,
    /// How many milliseconds an idle model waits, at most, for as many requests as it had side by side before; a client
    /// that is alone never waits, and later requests join at any time
    #[arg(long, default_value_t = 2, value_name = "MS", help_heading = "Machine")]
    batch_wait: u64,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Machine")]
    threads: Option<u16>,
}

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let server = Server::start(arguments.options()?).context("the server cannot start")?;
    server.run_until_signal(|server| {
        eprintln!(
            "heedful: http://{} serves {}; Ctrl-C ends it",
            server.address(),
            server.models().join(", ")
        );
    })?;
    eprintln!("heedful: all that was accepted is answered");
    Ok(())
}

impl Arguments {
    fn options(&self) -> Result<ServerOptions> {
        let mut models = Vec::new();
        if let Some(folder) = &self.folder {
            let mut spec = ModelSpec::folder(folder);
            spec.source = self.source.clone().unwrap_or(spec.source);
            spec.target = self.target.clone().unwrap_or(spec.target);
            models.push(spec);
        }
        models.extend(self.model.iter().cloned());
        if models.is_empty() && self.runs.is_none() {
            bail!("what shall be served? Give the folder of a model, or --model NAME=FOLDER");
        }
        Ok(ServerOptions {
            address: SocketAddr::new(self.host, self.port),
            models,
            runs: self.runs.clone(),
            search: SearchOptions {
                bos: BOS,
                eos: EOS,
                beam: self.beam,
                length_penalty: self.length_penalty,
                no_repeat_ngram: self.no_repeat_ngram,
                compute: self.compute,
                batch_tokens: self.batch_tokens,
                ..SearchOptions::default()
            },
            batch_wait: Duration::from_millis(self.batch_wait),
            limits: Limits {
                body_bytes: self.max_bytes,
                characters: self.max_characters,
                sentences: self.max_sentences,
                queue: self.queue,
                beam: self.max_beam,
                tokens: self.max_tokens,
                timeout: Duration::from_secs(self.timeout),
                client_timeout: Duration::from_secs(self.client_timeout),
                connections: self.connections,
                ..Limits::default()
            },
            keys: self.keys.clone(),
            watch: self.watch.then_some(WATCH),
            allow_origin: self.allow_origin.clone(),
            log: if self.log { AccessLog::Lines } else { AccessLog::Off },
            ..ServerOptions::default()
        })
    }
}
