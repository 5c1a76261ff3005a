//! Conversion of models from and to the formats of other projects.
//!
//! The file formats themselves (names, shapes and values of tensors) are read and written in
//! [`store::formats`](crate::store::formats). This module maps their tensors to heedful's parameters
//! (`names`) and their settings to an equivalent configuration.

mod feature_order;
mod names;
pub mod origin;

mod embedded_settings;

pub mod export;
pub mod import;
pub mod zoo;
