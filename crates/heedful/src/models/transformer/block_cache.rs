//! The KV cache of a block in a decoding step.

use std::ops::Range;

use heedful_tensor::ops::{KeyLists, KeyValueRows, KeyValueStore, Part, Seen};
use heedful_tensor::{Device, Tensor};

use super::pasts::Pasts;

/// What all blocks of a step know of its rows.
pub(crate) struct StepPasts<'a> {
    pasts: &'a Pasts,
    /// The slot of each row's newest token.
    newest: &'a [u32],
    seen: SeenPasts,
    filled: usize,
}

/// What each row sees.
enum SeenPasts {
    /// Its slots, and where those of all rows end: in the host's memory.
    OnHost { slots: Vec<u32>, ends: Vec<usize>, longest: usize },
    /// Given to the card once for all blocks.
    OnCard(KeyLists),
}

/// The KV cache of one block.
pub(crate) struct BlockCache<'a> {
    /// The block's keys and values of the target so far; the block adds the newest.
    store: &'a mut KeyValueStore,
    rows: &'a StepPasts<'a>,
    /// On a card, what is new until it is attended to.
    newest: Option<Part>,
}

impl<'a> StepPasts<'a> {
    /// Rows with these pasts, of which the newest tokens are the last. If there is a window, a row sees only tokens at this distance or
    /// nearer.
    pub(crate) fn new(
        device: Device,
        pasts: &'a Pasts,
        newest: &'a [u32],
        window: Option<usize>,
    ) -> StepPasts<'a> {
        let filled = device.rows_of_step(newest.len());
        let seen = match device {
            Device::Cuda => SeenPasts::OnCard(pasts.key_lists(window, filled)),
            _ => {
                let (mut slots, mut ends) = (Vec::new(), Vec::with_capacity(newest.len()));
                for row in 0..newest.len() {
                    slots.extend(pasts.of(row).map(|listed| listed.row()));
                    ends.push(slots.len());
                }
                let longest = window.map_or(usize::MAX, |distance| distance.saturating_add(1));
                SeenPasts::OnHost { slots, ends, longest }
            }
        };
        StepPasts { pasts, newest, seen, filled }
    }

    /// The position of each row's newest token, and one for each row that fills the step up.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let mut positions: Vec<usize> = self.pasts.lengths().map(|length| length - 1).collect();
        positions.resize(self.filled, 0);
        positions
    }

    /// One token for each row that is computed.
    pub(crate) fn fill_up(&self, mut ids: Vec<u32>) -> Vec<u32> {
        ids.resize(self.filled, 0);
        ids
    }
}

impl<'a> BlockCache<'a> {
    pub(crate) fn new(store: &'a mut KeyValueStore, rows: &'a StepPasts<'a>) -> BlockCache<'a> {
        BlockCache { store, rows, newest: None }
    }

    /// Adds the keys and values of each row's newest token. On a card they are stored on the way, when they are attended to.
    pub(crate) fn add(&mut self, from: &Tensor, columns: Range<usize>) {
        match &self.rows.seen {
            SeenPasts::OnHost { .. } => self.store.write(from, columns, self.rows.newest),
            SeenPasts::OnCard(_) => self.newest = Some(Part { tensor: from.clone(), columns }),
        }
    }

    /// What each row sees: its own token and those before it.
    pub(crate) fn seen(&self) -> Seen<'_> {
        let stored = self.store.array();
        match (&self.rows.seen, &self.newest) {
            (SeenPasts::OnHost { slots, ends, longest }, _) => {
                let starts = [0].iter().chain(ends);
                let listed = starts.zip(ends).map(|(&start, &end)| {
                    KeyValueRows::Listed(stored, &slots[start.max(end.saturating_sub(*longest))..end])
                });
                Seen::Each(listed.collect())
            }
            (SeenPasts::OnCard(lists), None) => Seen::Listed(stored, lists),
            (SeenPasts::OnCard(lists), Some(newest)) => Seen::WithNewest(self.store, lists, newest),
        }
    }
}
