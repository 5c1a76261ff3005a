//! Tests of a real server on a free port, with small real models and many kinds of clients.

mod client;
mod control;
mod faults;
mod files;
mod health;
mod imported;
mod libretranslate;
mod limits;
mod models;
mod openapi;
mod proxies;
mod python;
mod reload;
mod schema;
mod security;
mod stuck;
mod v1;
