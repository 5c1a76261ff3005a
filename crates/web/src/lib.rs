//! heedful in a browser, as a WebAssembly module for a Web Worker (`worker.js`).
//!
//! A [`Session`] holds the opened models and answers the requests of the server's API with the same JSON:
//!
//! ```text
//! GET  /v1/models              the models
//! PUT  /v1/models/NAME         opens a packed model; the body is its bytes
//! DELETE /v1/models/NAME       closes it
//! POST /v1/translate           as the server
//! POST /v1/classify, /v1/generate, /v1/fill
//! POST /v1/tokenize            the tokens of a text
//! POST /v1/attend              the calculator: an exercise in, as `heedful attend --json` out
//! ```
//!
//! It computes on one thread and reports when it is done: `stream` has no effect, and `timings` has zeros,
//! which the worker replaces: a module has no clock.
//!
//! [`exports`] is the interface to JavaScript: bytes in, bytes out. A generator of bindings (wasm-bindgen)
//! would need a program of its own version at every build, for five functions.

#![deny(unsafe_code)]

mod error;
mod model;
mod routes;
mod session;

#[allow(unsafe_code, reason = "JavaScript calls functions by name")]
mod exports;

pub use session::{Response, Session};
