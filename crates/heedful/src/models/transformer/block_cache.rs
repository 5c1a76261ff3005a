//! The KV cache of a block in a decoding step.

use std::ops::Range;

use heedful_tensor::ops::{KeyLists, KeyValueRows, KeyValueStore, Part, Seen};
use heedful_tensor::{Device, Tensor};

use super::slots::Pasts;

/// What all blocks of a step know of its rows.
pub struct StepPasts<'a> {
    pasts: &'a Pasts,
    /// The slot of each row's newest token.
    newest: &'a [u32],
    /// A row sees only tokens at this distance or nearer.
    window: Option<usize>,
    /// On a GPU, what each row sees: given to it once for all blocks.
    lists: Option<KeyLists>,
    filled: usize,
}

/// The KV cache of one block.
pub struct BlockCache<'a> {
    /// The block's keys and values of the target so far; the block adds the newest.
    store: &'a mut KeyValueStore,
    rows: &'a StepPasts<'a>,
    /// On a GPU, what is new until it is attended to.
    newest: Option<Part>,
}

impl<'a> StepPasts<'a> {
    /// Rows with these pasts, of which the newest tokens are the last.
    pub fn new(device: Device, pasts: &'a Pasts, newest: &'a [u32], window: Option<usize>) -> StepPasts<'a> {
        let filled = device.rows_of_step(newest.len());
        let mut rows = StepPasts { pasts, newest, window, lists: None, filled };
        if device.has_own_memory() {
            let none = std::iter::repeat_n(0..0, filled - newest.len());
            let seen = (0..newest.len()).map(|row| rows.seen_by(row)).chain(none);
            rows.lists = Some(KeyLists::of_slots(pasts.all(), seen));
        }
        rows
    }

    /// The position of each row's newest token, and one for each row that fills the step up.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let mut positions: Vec<usize> =
            (0..self.newest.len()).map(|row| self.pasts.of(row).len() - 1).collect();
        positions.resize(self.filled, 0);
        positions
    }

    /// One token for each row that is computed.
    pub(crate) fn fill_up(&self, mut ids: Vec<u32>) -> Vec<u32> {
        ids.resize(self.filled, 0);
        ids
    }

    /// What a row sees, among the slots of all pasts.
    fn seen_by(&self, row: usize) -> Range<usize> {
        let past = self.pasts.place(row);
        let first = self.window.map_or(0, |distance| past.len().saturating_sub(distance.saturating_add(1)));
        past.start + first..past.end
    }
}

impl<'a> BlockCache<'a> {
    pub fn new(store: &'a mut KeyValueStore, rows: &'a StepPasts<'a>) -> BlockCache<'a> {
        BlockCache { store, rows, newest: None }
    }

    /// Adds the keys and values of each row's newest token. On a GPU they are stored on the way, when they are attended to.
    pub fn add(&mut self, from: &Tensor, columns: Range<usize>) {
        match &self.rows.lists {
            None => self.store.write(from, columns, self.rows.newest),
            Some(_) => self.newest = Some(Part { tensor: from.clone(), columns }),
        }
    }

    /// What each row sees: its own token and those before it.
    pub(crate) fn seen(&self) -> Seen<'_> {
        let (stored, rows) = (self.store.array(), self.rows);
        match &rows.lists {
            None => {
                let listed = |row| KeyValueRows::Listed(stored, &rows.pasts.all()[rows.seen_by(row)]);
                Seen::Each((0..rows.newest.len()).map(listed).collect())
            }
            Some(lists) => match &self.newest {
                None => Seen::Listed(stored, lists),
                Some(newest) => Seen::WithNewest(self.store, lists, newest),
            },
        }
    }
}
