//! Work lists for the blocks of a launch, in GPU memory. For the generic kernels an item is (sequence, first
//! row); for the fast ones it holds everything a block needs, so that no block has to look it up in another
//! list.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use crate::Ragged;
use crate::cuda::{Buffer, Pointer, current_step, upload, upload_bucketed};

/// Rows of one item of the generic kernels.
const GENERIC_ROWS: usize = 32;
/// Rows of one item of a long sequence in the fast kernels.
const FAST_ROWS: usize = 64;
/// Sequences longer than this are long: several blocks share each of their heads.
const LONG: usize = 128;

/// A list of items.
pub(super) struct WorkList {
    items: Buffer,
    counts: Buffer,
    /// The number of items of each kind.
    pub(super) kinds: Vec<usize>,
}

impl WorkList {
    fn new<const N: usize>(kinds: &[Vec<[u32; N]>]) -> WorkList
    where
        [u32; N]: bytemuck::NoUninit,
    {
        let sizes: Vec<u32> = kinds.iter().map(|kind| kind.len() as u32).collect();
        WorkList {
            items: upload_bucketed(&kinds.concat()),
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
pub(super) struct WorkLists {
    /// The step it belongs to, if any.
    step: Option<u64>,
    queries: Ragged,
    keys: Ragged,
    pub(super) query_offsets: Buffer,
    pub(super) key_offsets: Buffer,
    generic: [OnceCell<WorkList>; 2],
    /// All sequences by their queries, forward.
    pub(super) fast: WorkList,
    /// Backward: long sequences by their queries; whole ones of up to 128, 64 and 32 tokens.
    pub(super) fast_queries: WorkList,
    /// Backward: long sequences by their keys.
    pub(super) fast_keys: WorkList,
    /// Number of query rows and the longest key sequence, which define the index of a dropout draw.
    pub(super) sizes: Buffer,
}

impl WorkLists {
    /// The lists of a batch. The layers of a model use the same ones: a step's lists are cached until the
    /// next step.
    pub(super) fn of(queries: &Ragged, keys: &Ragged) -> Rc<WorkLists> {
        thread_local! {
            static LATEST: RefCell<Vec<Rc<WorkLists>>> = const { RefCell::new(Vec::new()) };
        }
        let step = current_step();
        LATEST.with_borrow_mut(|latest| {
            latest.retain(|work| step.is_some() && work.step == step);
            let is_same = |work: &&Rc<WorkLists>| work.queries.is_same(queries) && work.keys.is_same(keys);
            if let Some(work) = latest.iter().find(is_same) {
                return work.clone();
            }
            let work = Rc::new(WorkLists::new(queries, keys, step));
            latest.push(work.clone());
            work
        })
    }

    /// The generic kernels' list by rows of the queries (0) or of the keys (1).
    pub(super) fn generic(&self, side: usize) -> &WorkList {
        self.generic[side].get_or_init(|| {
            let lengths = [&self.queries, &self.keys][side].lengths().enumerate();
            let rows = lengths.flat_map(|(sequence, length)| parts(sequence, length, GENERIC_ROWS));
            WorkList::new(&[rows.collect()])
        })
    }

    fn new(queries: &Ragged, keys: &Ragged, step: Option<u64>) -> WorkLists {
        let sizes: Vec<[usize; 2]> = queries.lengths().zip(keys.lengths()).map(|(m, n)| [m, n]).collect();
        let mut first_rows = Vec::with_capacity(sizes.len());
        let mut next = [0, 0];
        for size in &sizes {
            first_rows.push(next);
            next = [next[0] + size[0], next[1] + size[1]];
        }
        // As in fast/tiles.cu.
        let item = |sequence: usize, first: u32| -> [u32; 8] {
            let ([m, n], [query, key]) = (sizes[sequence], first_rows[sequence]);
            [query as u32, m as u32, key as u32, n as u32, first, 0, 0, 0]
        };
        let within = |least: usize, most: usize| {
            let inside = move |size: &[usize; 2]| (least..=most).contains(&size[0].max(size[1]));
            sizes.iter().enumerate().filter(move |(_, size)| inside(size))
        };
        let in_parts = |least: usize, side: usize| -> Vec<[u32; 8]> {
            let parts =
                within(least, usize::MAX).flat_map(|(sequence, size)| parts(sequence, size[side], FAST_ROWS));
            parts.map(|[sequence, first]| item(sequence as usize, first)).collect()
        };
        let long = |side: usize| in_parts(LONG + 1, side);
        let whole = |least: usize, most: usize| -> Vec<[u32; 8]> {
            within(least, most).map(|(sequence, _)| item(sequence, 0)).collect()
        };
        WorkLists {
            step,
            query_offsets: queries.on_gpu(),
            key_offsets: keys.on_gpu(),
            generic: [const { OnceCell::new() }; 2],
            fast: WorkList::new(&[in_parts(1, 0)]),
            fast_queries: WorkList::new(&[long(0), whole(65, LONG), whole(33, 64), whole(1, 32)]),
            fast_keys: WorkList::new(&[long(1)]),
            sizes: upload(&[queries.real_sizes()[0] as u32, keys.real_sizes()[1] as u32]),
            queries: queries.clone(),
            keys: keys.clone(),
        }
    }
}

/// A sequence split into parts of `rows` rows.
fn parts(sequence: usize, length: usize, rows: usize) -> impl Iterator<Item = [u32; 2]> {
    (0..length).step_by(rows).map(move |first| [sequence as u32, first as u32])
}
