//! One module per command, grouped: setup, training, model files, inference, evaluation, explanation,
//! serving.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;

pub(crate) mod train;
pub(crate) mod vocab;

pub(crate) mod average;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod models;
pub(crate) mod pack;
pub(crate) mod quantize;
pub(crate) mod seal;
pub(crate) mod shortlist;

pub(crate) mod classify;
pub(crate) mod fill;
pub(crate) mod generate;
pub(crate) mod translate;

pub(crate) mod evaluate;
pub(crate) mod score;

pub(crate) mod attend;
pub(crate) mod compare;
pub(crate) mod explain;

pub(crate) mod serve;
