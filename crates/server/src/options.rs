//! The options and limits of a server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use heedful::decode::SearchOptions;
use heedful::models::DeviceChoice;

use crate::models::ModelSpec;
use crate::proxies::Network;

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen on; port 0 selects any free port.
    pub address: SocketAddr,
    /// The models to serve.
    pub models: Vec<ModelSpec>,
    /// The device that computes.
    pub device: DeviceChoice,
    /// The folder whose subfolders are training runs, which the web page shows.
    pub runs: Option<PathBuf>,
    /// One more run by name and folder, for instance the one that is being trained.
    pub run: Option<(String, PathBuf)>,
    /// The default search; `compute` and `batch_tokens` hold for all requests.
    pub search: SearchOptions,
    /// Whether translators use the shortlists of their folders.
    pub shortlists: Shortlists,
    /// How long an idle worker waits, after the first sentence, for the batch to become as large as the last
    /// one. A single client never waits.
    pub batch_wait: Duration,
    /// Limits of requests and connections.
    pub limits: Limits,
    /// A file of API keys; without it, translation needs no key and reloading over HTTP is forbidden.
    pub keys: Option<PathBuf>,
    /// The interval of checks whether the weights of a model on disk have changed; changed weights are
    /// loaded.
    pub watch: Option<Duration>,
    /// How long requests are still answered after SIGTERM, while `/health/ready` reports that none should be
    /// sent: the time that a load balancer needs to notice.
    pub drain: Duration,
    /// The origin whose pages may use this server (CORS): `*` or `https://example.org`.
    pub allow_origin: Option<String>,
    /// Host names that the server answers to besides localhost and addresses; `*` for any. Requests for other
    /// names may come from foreign pages and are refused.
    pub allow_hosts: Vec<String>,
    /// Reverse proxies whose `X-Forwarded-*` and `Forwarded` headers are trusted; see [`Network`].
    pub trusted_proxies: Vec<Network>,
    /// The address by which clients reach this server behind a proxy, such as
    /// `https://translate.example.org`.
    pub public_url: Option<String>,
    /// A second address, where `/metrics` needs no key.
    pub metrics_address: Option<SocketAddr>,
    /// The access log on standard error.
    pub log: AccessLog,
}

/// Whether translators use the shortlists of their folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortlists {
    /// All target tokens are scored.
    #[default]
    Unused,
    /// Only the tokens of a sentence's shortlist are scored. A translator without a shortlist is refused.
    Used,
}

/// The access log on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// No log.
    #[default]
    Off,
    /// One line for each response: client, route, status, time. Never any text.
    Lines,
}

/// Limits of requests and connections; a request beyond one gets an error that names the limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request's body (413).
    pub body_bytes: usize,
    /// Characters of all texts of a request (413).
    pub characters: usize,
    /// Sentences of a request (413).
    pub sentences: usize,
    /// Tokens of a sentence to translate, a text to classify or a prompt (413); `None` leaves it to the model
    /// ([`heedful::data::TextLimit`]).
    pub text_tokens: Option<usize>,
    /// Sentences that may wait for each model; more are refused with 503.
    pub queue: usize,
    /// The beam, and the number of outputs, of a request (400).
    pub beam: usize,
    /// Tokens that a language model may generate for a request (400).
    pub tokens: usize,
    /// How long a request may take after it was read (504).
    pub timeout: Duration,
    /// How long a worker may take for one step of a search, or one text. A worker that takes longer is stuck:
    /// its clients get 503, and so does `/health/live`.
    pub worker_timeout: Duration,
    /// How long a client may take to send a request (408 for the body), or to read a piece of the response.
    pub client_timeout: Duration,
    /// Open connections; further ones wait until one ends.
    pub connections: usize,
    /// Open connections from one address, or one /64 network of IPv6; further ones are refused with 429.
    /// Trusted proxies are exempt.
    pub connections_per_address: usize,
    /// How long a shutdown waits for accepted requests, and how long they may continue with a replaced model.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 2 << 20,
            characters: 200_000,
            sentences: 2_000,
            text_tokens: None,
            queue: 8_000,
            beam: 16,
            tokens: 1_000,
            timeout: Duration::from_secs(300),
            worker_timeout: Duration::from_secs(120),
            client_timeout: Duration::from_secs(30),
            connections: 4_096,
            connections_per_address: 1_024,
            grace: Duration::from_secs(60),
        }
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5000),
            models: Vec::new(),
            device: DeviceChoice::Cpu,
            runs: None,
            run: None,
            search: SearchOptions::default(),
            shortlists: Shortlists::Unused,
            batch_wait: Duration::from_millis(2),
            limits: Limits::default(),
            keys: None,
            watch: None,
            drain: Duration::ZERO,
            allow_origin: None,
            allow_hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            public_url: None,
            metrics_address: None,
            log: AccessLog::Off,
        }
    }
}
