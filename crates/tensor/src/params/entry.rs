//! The registration of a parameter.

use std::ops::Range;
use std::sync::Arc;

use super::Init;
use crate::Channels;

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) offset: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
    pub(super) init: Init,
    pub(super) kind: Kind,
}

/// The kind of a parameter.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Learned,
    /// A weight of matrix products, which may be quantized.
    Weight(Channels),
    /// Stored with the others, but not learned (a PyTorch buffer).
    Statistic,
}

impl Entry {
    pub(super) fn channels(&self) -> Option<Channels> {
        match self.kind {
            Kind::Weight(channels) => Some(channels),
            Kind::Learned | Kind::Statistic => None,
        }
    }

    pub(super) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.width
    }
}
