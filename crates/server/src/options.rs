//! What a server can be told.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use heedful::decode::SearchOptions;

use crate::models::ModelSpec;

/// All that can be chosen about a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens; port 0 takes any that is free.
    pub address: SocketAddr,
    /// What it serves.
    pub models: Vec<ModelSpec>,
    /// Folders of training runs, to be watched in the page: those below this folder.
    pub runs: Option<PathBuf>,
    /// One more run by name and folder, for instance the one that is under way.
    pub run: Option<(String, PathBuf)>,
    /// How models search unless a request says otherwise; the type of the products and `batch_tokens` hold for all.
    pub search: SearchOptions,
    /// How long an idle worker waits, after the first sentence, for as many as it had together before. Nobody who is
    /// alone waits.
    pub batch_wait: Duration,
    /// What requests may ask for.
    pub limits: Limits,
    /// A file of API keys; without one everybody may translate, and nobody may reload over HTTP.
    pub keys: Option<PathBuf>,
    /// Look so often whether the weights of a model have changed, and load them if so.
    pub watch: Option<Duration>,
    /// Pages of which origin browsers may let use this server: `*` or `https://example.org`.
    pub allow_origin: Option<String>,
    /// Whether answers are noted on standard error.
    pub log: AccessLog,
}

/// Whether answers are noted on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nothing is written.
    #[default]
    Off,
    /// One line for each answer: who, what, status, time. Never any text.
    Lines,
}

/// What requests may ask for; more is refused with a sentence that names the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request's body (413).
    pub body_bytes: usize,
    /// Characters of all texts of a request (413).
    pub characters: usize,
    /// Sentences of a request (413).
    pub sentences: usize,
    /// Sentences that may wait for each model; more are refused with 503.
    pub queue: usize,
    /// Hypotheses, and outputs, that a request may ask for (400).
    pub beam: usize,
    /// Tokens that a request may let a language model add (400).
    pub tokens: usize,
    /// How long a request may take once it was read (504).
    pub time: Duration,
    /// How long a client may take to send a request (408 for the body), or to take in a piece of the answer.
    pub client_time: Duration,
    /// Connections at a time; further ones wait until one ends.
    pub connections: usize,
    /// How long a shutdown waits for what was accepted.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 2 << 20,
            characters: 200_000,
            sentences: 2_000,
            queue: 8_000,
            beam: 16,
            tokens: 1_000,
            time: Duration::from_secs(300),
            client_time: Duration::from_secs(30),
            connections: 4_096,
            grace: Duration::from_secs(60),
        }
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5000),
            models: Vec::new(),
            runs: None,
            run: None,
            search: SearchOptions::default(),
            batch_wait: Duration::from_millis(2),
            limits: Limits::default(),
            keys: None,
            watch: None,
            allow_origin: None,
            log: AccessLog::Off,
        }
    }
}
