//! `heedful serve`: serves models over HTTP, with a web page that shows their attention.

use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful_server::{AccessLog, Limits, ModelSpec, Network, Server, ServerOptions, Shortlists};

use crate::machine::Machine;
use crate::progress::{Bar, Verbosity};

/// Serve models over HTTP: a web page, LibreTranslate's API and heedful's own API (/v1)
///
/// Serves translators, classifiers and language models together; requests of all clients are batched. A
/// translator's languages come from --source and --target, from its name (en-de), from the files that it was
/// imported from, or from the recipe of its training run (train.en, train.de).
///
/// It listens before the models are loaded; /health/ready returns 503 until they are. Ctrl-C or SIGTERM stops
/// the server after in-flight requests are answered; SIGHUP reloads all models.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folders of models or of training runs, or packages (`heedful pack`); or use --model
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Serve a folder under a name, for example en-de=runs/multi30k; repeatable
    #[arg(long, value_name = "NAME=FOLDER", value_parser = ModelSpec::parse)]
    model: Vec<ModelSpec>,
    /// Source language of FOLDER, for example en
    #[arg(long, value_name = "CODE", requires = "folders")]
    source: Option<String>,
    /// Target language of FOLDER, for example de
    #[arg(long, value_name = "CODE", requires = "folders")]
    target: Option<String>,
    /// Show the training runs below this folder on the web page
    #[arg(long, value_name = "FOLDER")]
    runs: Option<PathBuf>,

    /// Address to listen on; 0.0.0.0 accepts other machines
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS", help_heading = "Network")]
    host: IpAddr,
    /// Port to listen on; 0 takes any free port
    #[arg(long, default_value_t = 5000, value_name = "PORT", help_heading = "Network")]
    port: u16,
    /// JSON file of API keys with their rate limits: [{"key", "name", "requests_per_minute",
    /// "characters_per_minute", "admin"}]
    #[arg(long, value_name = "FILE", help_heading = "Network")]
    keys: Option<PathBuf>,
    /// Accept requests to this host name too, for example translate.example.org; repeatable, * for any. By
    /// default only localhost and IP addresses are accepted, as a protection against DNS rebinding
    #[arg(long, value_name = "NAME", help_heading = "Network")]
    allow_host: Vec<String>,
    /// Trust the forwarding headers (X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Forwarded) of this
    /// reverse proxy or network, for example 10.0.0.7 or 10.0.0.0/8; repeatable
    #[arg(long, value_name = "ADDRESS", help_heading = "Network")]
    trusted_proxy: Vec<Network>,
    /// Public URL of this server, for example https://translate.example.org: URLs of translated files begin
    /// with it, and its host name is accepted
    #[arg(long, value_name = "URL", help_heading = "Network")]
    public_url: Option<String>,
    /// Serve /metrics at this address too, without a key
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Network")]
    metrics_listen: Option<SocketAddr>,
    /// Allow web pages of this origin to use the server (CORS): * or https://example.org
    #[arg(long, value_name = "ORIGIN", help_heading = "Network")]
    allow_origin: Option<String>,
    /// After SIGTERM, keep serving for this many seconds while /health/ready already returns 503, so that a
    /// load balancer can redirect new requests
    #[arg(long, default_value_t = 0, value_name = "S", help_heading = "Network")]
    drain: u64,
    /// Log a line for each response to standard error; it never contains users' text
    #[arg(long, help_heading = "Network")]
    log: bool,
    /// Reload a model when its weights on disk change
    #[arg(long, help_heading = "Network")]
    watch: bool,

    /// Beam size, unless a request sets its own; 1 is greedy
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// α of the length penalty: scores are log p / ((5 + length) / 6)^α; 0 favours short translations
    #[arg(long, default_value_t = 0.6, value_name = "X", help_heading = "Search")]
    length_penalty: f64,
    /// Never generate the same n-gram of N tokens twice in a translation
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,
    /// Restrict translators to the target tokens of their shortlists (`heedful shortlist`)
    #[arg(long, help_heading = "Search")]
    shortlist: bool,

    /// Maximum size of a request in bytes
    #[arg(long, default_value_t = Limits::default().body_bytes, value_name = "N", help_heading = "Limits")]
    max_bytes: usize,
    /// Maximum number of characters in a request
    #[arg(long, default_value_t = Limits::default().characters, value_name = "N", help_heading = "Limits")]
    max_characters: usize,
    /// Maximum number of sentences in a request
    #[arg(long, default_value_t = Limits::default().sentences, value_name = "N", help_heading = "Limits")]
    max_sentences: usize,
    /// Maximum number of tokens in a sentence to translate, a text to classify or a prompt [default: the
    /// number of learned positions; without learned positions, 1024 or the longest training text if that is
    /// longer]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_text_tokens: Option<usize>,
    /// Maximum beam size, and number of outputs, of a request
    #[arg(long, default_value_t = Limits::default().beam, value_name = "N", help_heading = "Limits")]
    max_beam: usize,
    /// Maximum number of tokens that a request may generate with a language model
    #[arg(long, default_value_t = Limits::default().tokens, value_name = "N", help_heading = "Limits")]
    max_tokens: usize,
    /// Maximum number of sentences in the queue of a model; further requests get status 503
    #[arg(long, default_value_t = Limits::default().queue, value_name = "N", help_heading = "Limits")]
    queue: usize,
    /// Maximum number of open connections; further ones wait
    #[arg(long, default_value_t = Limits::default().connections, value_name = "N", help_heading = "Limits")]
    connections: usize,
    /// Maximum number of open connections from one address; further ones get status 429
    #[arg(long, default_value_t = Limits::default().connections_per_address, value_name = "N", help_heading = "Limits")]
    connections_per_address: usize,
    /// Maximum time for a request in seconds; then it gets status 504
    #[arg(long, default_value_t = Limits::default().timeout.as_secs(), value_name = "S", help_heading = "Limits")]
    timeout: u64,
    /// Maximum time in seconds for one step of a model's worker. A worker that takes longer is stuck: its
    /// clients get status 503, and so does /health/live
    #[arg(long, default_value_t = Limits::default().worker_timeout.as_secs(), value_name = "S", help_heading = "Limits")]
    worker_timeout: u64,
    /// Maximum time in seconds for a client to send its request or to receive the response
    #[arg(long, default_value_t = Limits::default().client_timeout.as_secs(), value_name = "S", help_heading = "Limits")]
    client_timeout: u64,

    #[command(flatten)]
    machine: Machine,
    /// Source tokens (times hypotheses) decoded in one batch; affects speed and memory, never a translation
    /// [default: 1024 to 4096 for each thread, by the size of the model; on a GPU up to 262144, limited by its memory]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    batch_tokens: Option<usize>,
    /// Maximum time in milliseconds that an idle model waits to fill a batch; a single client never waits,
    /// and later requests join a running batch
    #[arg(long, default_value_t = 2, value_name = "MS", help_heading = "Machine")]
    batch_wait: u64,
}

const EXAMPLES: &str = "\
Examples:
  heedful serve runs/multi30k
      a web page and the API at http://127.0.0.1:5000

  heedful serve --model en-de=runs/multi30k --model zh-en=heedful-demo --keys keys.json --watch
      two translators, with API keys; a model is reloaded when its weights change

  heedful serve runs/en-de runs/de-en
      two models, each under the name of its folder

  curl http://127.0.0.1:5000/translate -d 'q=A dog runs.' -d source=en -d target=de
      a request";

/// How often `--watch` checks the weights.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up(Verbosity::Normal)?;
    let options = arguments.options()?;
    // Programs that start a server wait for its first line, which contains the address.
    let verbosity = if io::stderr().is_terminal() { Verbosity::Normal } else { Verbosity::Quiet };
    let bar = Bar::with_time_left(verbosity, 0);
    bar.show(0, 0.0, || "loading the models".to_owned());
    let server = Server::start(options).context("the server cannot start")?;
    bar.finish();
    server.run_until_signal(|server| {
        eprintln!(
            "heedful: http://{} serves {}; Ctrl-C stops it",
            server.address(),
            server.models().join(", ")
        );
    })?;
    eprintln!("heedful: stopped; all accepted requests are answered");
    Ok(())
}

impl Arguments {
    fn options(&self) -> Result<ServerOptions> {
        let mut models = Vec::new();
        if let [_, another, ..] = self.folders.as_slice()
            && (self.source.is_some() || self.target.is_some())
        {
            bail!(
                "--source and --target apply to a single FOLDER, but {} is a second one: use --model SOURCE-TARGET=FOLDER for each",
                another.display()
            );
        }
        for folder in &self.folders {
            let mut spec = ModelSpec::folder(folder);
            spec.source = self.source.clone().unwrap_or(spec.source);
            spec.target = self.target.clone().unwrap_or(spec.target);
            models.push(spec);
        }
        models.extend(self.model.iter().cloned());
        if models.is_empty() && self.runs.is_none() {
            bail!(
                "there is nothing to serve: give the folder of a model, --model NAME=FOLDER or --runs FOLDER"
            );
        }
        Ok(ServerOptions {
            address: SocketAddr::new(self.host, self.port),
            models,
            device: self.machine.choice(),
            runs: self.runs.clone(),
            search: SearchOptions {
                beam: self.beam,
                length_penalty: self.length_penalty,
                no_repeat_ngram: self.no_repeat_ngram,
                compute: self.machine.precision(),
                batch_tokens: self.batch_tokens,
                ..SearchOptions::default()
            },
            shortlists: if self.shortlist { Shortlists::Used } else { Shortlists::Unused },
            batch_wait: Duration::from_millis(self.batch_wait),
            limits: Limits {
                body_bytes: self.max_bytes,
                characters: self.max_characters,
                sentences: self.max_sentences,
                text_tokens: self.max_text_tokens,
                queue: self.queue,
                beam: self.max_beam,
                tokens: self.max_tokens,
                timeout: Duration::from_secs(self.timeout),
                worker_timeout: Duration::from_secs(self.worker_timeout),
                client_timeout: Duration::from_secs(self.client_timeout),
                connections: self.connections,
                connections_per_address: self.connections_per_address,
                ..Limits::default()
            },
            keys: self.keys.clone(),
            watch: self.watch.then_some(WATCH_INTERVAL),
            drain: Duration::from_secs(self.drain),
            allow_origin: self.allow_origin.clone(),
            allow_hosts: self.allow_host.clone(),
            trusted_proxies: self.trusted_proxy.clone(),
            public_url: self.public_url.clone(),
            metrics_address: self.metrics_listen,
            log: if self.log { AccessLog::Lines } else { AccessLog::Off },
            ..ServerOptions::default()
        })
    }
}
