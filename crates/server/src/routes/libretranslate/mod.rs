//! The interface of LibreTranslate, so that its clients work with another base address.

mod work;

pub(crate) mod translation;

pub(crate) mod files;
pub(crate) mod suggestion;

pub(crate) mod detection;
pub(crate) mod languages;
pub(crate) mod settings;
