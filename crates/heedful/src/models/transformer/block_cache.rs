//! The KV cache of one block in a decoding step.

use std::ops::Range;

use heedful_tensor::ops::{ColumnView, KeyValueRows, KeyValueStore, KvIndices, KvView};
use heedful_tensor::{Device, Tensor};

use super::slots::SlotTable;

/// The KV cache slots of a step's rows, shared by all blocks.
pub struct StepSlots<'a> {
    table: &'a SlotTable,
    /// The slot of each row's newest token.
    newest: &'a [u32],
    /// A row attends only to tokens at this distance or nearer.
    window: Option<usize>,
    /// On a GPU, the slots that each row attends to, uploaded once for all blocks.
    lists: Option<KvIndices>,
    /// Number of rows with padding.
    padded_rows: usize,
}

/// The KV cache of one block.
pub struct BlockCache<'a> {
    /// The block's cached keys and values.
    store: &'a mut KeyValueStore,
    rows: &'a StepSlots<'a>,
    /// On a GPU, the newest tokens' keys and values, until the attention kernel stores them.
    newest: Option<ColumnView>,
}

impl<'a> StepSlots<'a> {
    /// The rows of `table`; `newest` are the slots of their last tokens.
    pub fn new(
        device: Device,
        table: &'a SlotTable,
        newest: &'a [u32],
        window: Option<usize>,
    ) -> StepSlots<'a> {
        let padded_rows = device.padded_rows(newest.len());
        let mut rows = StepSlots { table, newest, window, lists: None, padded_rows };
        if device.has_own_memory() {
            let padding = std::iter::repeat_n(0..0, padded_rows - newest.len());
            let visible = (0..newest.len()).map(|row| rows.visible_to(row)).chain(padding);
            rows.lists = Some(KvIndices::from_slots(table.all(), visible));
        }
        rows
    }

    /// The position of each row's newest token; 0 for padding rows.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let mut positions: Vec<usize> =
            (0..self.newest.len()).map(|row| self.table.of(row).len() - 1).collect();
        positions.resize(self.padded_rows, 0);
        positions
    }

    /// Pads the tokens of the rows with token 0.
    pub(crate) fn pad_ids(&self, mut ids: Vec<u32>) -> Vec<u32> {
        ids.resize(self.padded_rows, 0);
        ids
    }

    /// The range of a row's visible slots among [`SlotTable::all`].
    fn visible_to(&self, row: usize) -> Range<usize> {
        let slots = self.table.range(row);
        let first = self.window.map_or(0, |distance| slots.len().saturating_sub(distance.saturating_add(1)));
        slots.start + first..slots.end
    }
}

impl<'a> BlockCache<'a> {
    pub fn new(store: &'a mut KeyValueStore, rows: &'a StepSlots<'a>) -> BlockCache<'a> {
        BlockCache { store, rows, newest: None }
    }

    /// Adds the keys and values of each row's newest token. On a GPU the attention kernel itself stores them.
    pub fn add(&mut self, from: &Tensor, columns: Range<usize>) {
        match &self.rows.lists {
            None => self.store.write(from, columns, self.rows.newest),
            Some(_) => self.newest = Some(ColumnView { tensor: from.clone(), columns }),
        }
    }

    /// The keys and values that each row attends to: those of its newest token and of the tokens before it.
    pub(crate) fn view(&self) -> KvView<'_> {
        let (stored, rows) = (self.store.array(), self.rows);
        match &rows.lists {
            None => {
                let listed = |row| KeyValueRows::Listed(stored, &rows.table.all()[rows.visible_to(row)]);
                KvView::PerQuery((0..rows.newest.len()).map(listed).collect())
            }
            Some(lists) => match &self.newest {
                None => KvView::Indexed(stored, lists),
                Some(newest) => KvView::IndexedWithNewest(self.store, lists, newest),
            },
        }
    }
}
