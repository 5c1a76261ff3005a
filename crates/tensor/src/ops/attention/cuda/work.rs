//! What the blocks of a launch do: lists of (sequence, first row), in the card's memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::Ragged;
use crate::cuda::{Buffer, Pointer, upload};

/// Rows of one item of the generic kernels.
const GENERIC_ROWS: usize = 32;
/// Rows of one item of a long sequence in the fast kernels.
const FAST_ROWS: usize = 64;
/// Longer sequences are long: their heads are shared by several blocks.
const LONG: usize = 128;

/// A list of items.
pub(super) struct List {
    items: Buffer,
    counts: Buffer,
    /// How many items of each kind there are.
    pub(super) kinds: Vec<usize>,
}

impl List {
    fn new(kinds: &[Vec<[u32; 2]>]) -> List {
        let sizes: Vec<u32> = kinds.iter().map(|kind| kind.len() as u32).collect();
        List {
            items: upload(&kinds.concat()),
            counts: upload(&sizes),
            kinds: kinds.iter().map(Vec::len).collect(),
        }
    }

    pub(super) fn items(&self) -> Pointer {
        self.items.pointer()
    }

    pub(super) fn counts(&self) -> Pointer {
        self.counts.pointer()
    }
}

/// The lists for queries and keys of these sequences.
pub(super) struct Work {
    queries: Ragged,
    keys: Ragged,
    pub(super) generic_queries: List,
    pub(super) generic_keys: List,
    /// Long sequences by their queries; whole ones of up to 128, 64 and 32 tokens.
    pub(super) fast: List,
    /// Long sequences by their keys.
    pub(super) fast_keys: List,
    /// Number of query rows and the longest key sequence, which the draws are counted by.
    pub(super) sizes: Buffer,
}

impl Work {
    /// The lists of a batch. The layers of a model ask for the same ones: the latest few are kept.
    pub(super) fn of(queries: &Ragged, keys: &Ragged) -> Arc<Work> {
        const KEPT: usize = 8;
        static LATEST: Mutex<VecDeque<Arc<Work>>> = Mutex::new(VecDeque::new());
        let mut latest = LATEST.lock().expect("work lock");
        let found = latest.iter().find(|work| work.queries.is_same(queries) && work.keys.is_same(keys));
        if let Some(work) = found {
            return work.clone();
        }
        let work = Arc::new(Work::new(queries, keys));
        latest.truncate(KEPT - 1);
        latest.push_front(work.clone());
        work
    }

    fn new(queries: &Ragged, keys: &Ragged) -> Work {
        let rows_of = |sequences: &Ragged| -> Vec<[u32; 2]> {
            let lengths = sequences.lengths().enumerate();
            lengths.flat_map(|(sequence, length)| parts(sequence, length, GENERIC_ROWS)).collect()
        };
        let sizes: Vec<[usize; 2]> = queries.lengths().zip(keys.lengths()).map(|(m, n)| [m, n]).collect();
        let long = |side: usize| -> Vec<[u32; 2]> {
            let long = sizes.iter().enumerate().filter(|(_, size)| size.iter().max() > Some(&LONG));
            long.flat_map(|(sequence, size)| parts(sequence, size[side], FAST_ROWS)).collect()
        };
        let whole = |least: usize, most: usize| -> Vec<[u32; 2]> {
            let inside = |size: &[usize; 2]| (least..=most).contains(&size[0].max(size[1]));
            let whole = sizes.iter().enumerate().filter(|(_, size)| inside(size));
            whole.map(|(sequence, _)| [sequence as u32, 0]).collect()
        };
        Work {
            generic_queries: List::new(&[rows_of(queries)]),
            generic_keys: List::new(&[rows_of(keys)]),
            fast: List::new(&[long(0), whole(65, LONG), whole(33, 64), whole(1, 32)]),
            fast_keys: List::new(&[long(1)]),
            sizes: upload(&[queries.tokens() as u32, keys.longest() as u32]),
            queries: queries.clone(),
            keys: keys.clone(),
        }
    }
}

/// A sequence in parts of so many rows.
fn parts(sequence: usize, length: usize, rows: usize) -> impl Iterator<Item = [u32; 2]> {
    (0..length).step_by(rows).map(move |first| [sequence as u32, first as u32])
}
