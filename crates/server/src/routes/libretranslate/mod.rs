//! The interface of LibreTranslate, so that its clients work with another base address.

pub(crate) mod translation;

pub(crate) mod files;

pub(crate) mod languages;
