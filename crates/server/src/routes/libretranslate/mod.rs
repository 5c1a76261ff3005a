//! The API of LibreTranslate, so that its clients work with only the base URL changed.

pub(crate) mod translation;

pub(crate) mod files;

pub(crate) mod languages;
