//! A real server on a free port, with real small models, and clients of every kind.

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
