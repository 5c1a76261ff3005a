//! The sequences of a batch in the kernels' format: rows of states, the longest sequence first.

use std::cell::RefCell;
use std::rc::Rc;

use crate::Ragged;
use crate::cuda::{Buffer, Pointer, current_step, upload, upload_bucketed};

/// The rows of a batch in GPU memory.
pub(crate) struct Rows {
    /// The step they belong to, if any.
    step: Option<u64>,
    sequences: Ragged,
    /// For each row: first token, length, index of the sequence, 0.
    list: Buffer,
    count: Buffer,
}

impl Rows {
    /// The rows of a batch. The layers of a model use the same ones: a step's rows are cached until the next
    /// step.
    pub(crate) fn of(sequences: &Ragged) -> Rc<Rows> {
        thread_local! {
            static LATEST: RefCell<Vec<Rc<Rows>>> = const { RefCell::new(Vec::new()) };
        }
        let step = current_step();
        LATEST.with_borrow_mut(|latest| {
            latest.retain(|rows| step.is_some() && rows.step == step);
            if let Some(rows) = latest.iter().find(|rows| rows.sequences.is_same(sequences)) {
                return rows.clone();
            }
            let rows = Rc::new(Rows::new(sequences, step));
            latest.push(rows.clone());
            rows
        })
    }

    fn new(sequences: &Ragged, step: Option<u64>) -> Rows {
        let row = |(number, range): (usize, std::ops::Range<usize>)| {
            [range.start as u32, range.len() as u32, number as u32, 0]
        };
        let mut rows: Vec<[u32; 4]> = sequences.ranges().enumerate().map(row).collect();
        // As in `schedule`: sequences of equal length stay in their order.
        rows.sort_by_key(|row| std::cmp::Reverse(row[1]));
        let count = upload(&[rows.len() as u32]);
        Rows { step, sequences: sequences.clone(), list: upload_bucketed(&rows), count }
    }

    pub(crate) fn list(&self) -> Pointer {
        self.list.pointer()
    }

    pub(crate) fn count(&self) -> Pointer {
        self.count.pointer()
    }
}
