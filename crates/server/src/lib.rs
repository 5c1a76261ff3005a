//! The heedful server: translation, labels and text over HTTP, one batch for all clients, every attention weight on
//! request. The only crate that knows HTTP.
//!
//! Read it in this order:
//!
//! 1. [`ServerOptions`] says what can be chosen; [`Server`] starts, reloads and stops.
//! 2. `work` brings the sentences of all clients into one search for each model.
//! 3. `models` holds the models and replaces them while they serve.
//! 4. `routes` has one file for each door: LibreTranslate's interface, and `/v1`, which shows everything.
//! 5. `text` splits texts into sentences and joins them again, byte for byte.
//! 6. `connections` is careful with clients that are slow, gone or many.
//!
//! ```no_run
//! # fn main() -> Result<(), heedful_server::ServerError> {
//! use std::path::Path;
//! use heedful_server::{ModelSpec, Server, ServerOptions};
//!
//! let models = vec![ModelSpec::named("en-de", Path::new("runs/multi30k"))];
//! let server = Server::start(ServerOptions { models, ..ServerOptions::default() })?;
//! server.run_until_signal(|server| println!("http://{}", server.address()))
//! # }
//! ```

#![forbid(unsafe_code)]

mod error;
mod options;
mod server;

mod metrics;
mod models;
mod work;

mod detect;
mod keys;
mod languages;
mod text;

mod app;
mod assets;
mod connections;
mod fields;
mod patience;
mod routes;

pub use error::ServerError;
pub use models::{Engine, ModelSpec, Origin};
pub use options::{AccessLog, Limits, ServerOptions};
pub use server::Server;
