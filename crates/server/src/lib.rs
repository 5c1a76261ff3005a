//! The heedful server: translation, classification and generation over HTTP, one batch for all clients, every
//! attention weight on request. The only crate that uses HTTP.
//!
//! Read it in this order:
//!
//! 1. [`ServerOptions`] and [`Server`]: start, reload, shutdown.
//! 2. `models`: the models, which can be replaced while the server runs.
//! 3. `inference`: a queue and a worker thread for each model, one batch for the sentences of all clients.
//! 4. `wire`: how requests become types, and types become responses and `/openapi.json`.
//! 5. `routes`: one file for each group of routes, the LibreTranslate API and `/v1`.
//! 6. `text`: texts are split into sentences and joined again, byte for byte.
//! 7. `connections`: limits for slow, disconnected or too many clients.
//!
//! ```no_run
//! # fn main() -> Result<(), heedful_server::Error> {
//! use heedful_server::{ModelSpec, Server, ServerOptions};
//!
//! let models = vec![ModelSpec::named("en-de", "runs/multi30k")];
//! let server = Server::start(ServerOptions { models, ..ServerOptions::default() })?;
//! server.run_until_signal(|server| println!("http://{}", server.address()))
//! # }
//! ```

#![forbid(unsafe_code)]

mod options;
mod server;

mod models;

mod inference;

mod app;
mod error;
mod openapi;
mod wire;

mod routes;

mod detect;
mod keys;
mod languages;
mod metrics;
mod text;

mod assets;
mod connections;
mod downloads;
mod host_policy;
mod proxies;

#[doc(hidden)]
pub mod fuzzing;

pub use error::Error;
pub use models::{Engine, ModelSpec, Origin};
pub use options::{AccessLog, Limits, ServerOptions, Shortlists};
pub use proxies::Network;
pub use server::{Server, StartingServer};
