//! Top-k over a subset of the columns of `x Wᵀ + b`, with a different list of columns for each group of rows:
//! vocabulary shortlists.
//!
//! ```text
//! log p_j = x_j − log Σ_{k chosen} e^{x_k}        −∞ for columns that are not chosen
//! ```
//!
//! The chosen rows of `W` are copied into strips of 32 columns, packed as `W` itself is: int8 values and their
//! scales are copied, not quantized again. A score therefore has the same bits as in the full product. A strip
//! is multiplied once, with the rows of all lists that use it, and each list ignores the columns that it does
//! not have. A list shares a strip only if it has at least [`MIN_SHARED`] of its columns; it may instead have
//! its own copy of a column, so that different lists cost no more than if each had a matrix of its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{Projection, TopK, cpu};
use crate::{Compute, Device, Precision, Rounding, Tensor};

/// Columns of a strip.
pub(super) const STRIP: usize = 32;
/// Minimum columns of a strip that a new list must have to share it.
const MIN_SHARED: usize = 8;
/// The rank of a column that is not in a list, or that has its place.
const NO_RANK: u32 = u32::MAX;

/// Lists of columns of `x Wᵀ + b`, by number.
pub struct ChosenColumns<'w> {
    projection: Projection<'w>,
    precision: Precision,
    lists: BTreeMap<usize, List>,
    /// Those that no list uses are replaced by new ones.
    strips: Vec<Strip>,
    /// The columns of the strips.
    weight: cpu::ChosenWeight,
    /// How many lists have each column.
    uses: Vec<u32>,
    /// The index of each column in the list that is being added.
    ranks: Vec<u32>,
}

/// Some columns, and where their scores are.
pub(super) struct List {
    /// Sorted.
    pub(super) columns: Vec<u32>,
    /// The strips that have them.
    pub(super) strips: Vec<usize>,
    /// For each column [`STRIP`] times the index of its strip among these, plus its index in the strip.
    pub(super) places: Vec<u32>,
}

#[derive(Default)]
struct Strip {
    columns: Vec<u32>,
    /// How many lists use it.
    lists: usize,
}

/// A group of consecutive rows of `x`, and the list of columns that they have scores for.
pub struct ChosenGroup {
    /// The rows. The groups cover all rows in order, without gaps.
    pub rows: Range<usize>,
    /// The number of the list.
    pub list: usize,
}

impl<'w> ChosenColumns<'w> {
    /// No lists of columns of a weight (`[columns, k]`) and its biases.
    pub fn new(projection: impl Into<Projection<'w>>, compute: Compute) -> ChosenColumns<'w> {
        let precision = compute.precision;
        ChosenColumns {
            projection: projection.into(),
            precision,
            lists: BTreeMap::new(),
            strips: Vec::new(),
            weight: cpu::ChosenWeight::new(precision),
            uses: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Adds lists with new numbers. Lists that are added together find more strips to share.
    ///
    /// # Panics
    /// If the columns of a list are not strictly increasing, or not within the weight.
    pub fn add(&mut self, lists: Vec<(usize, Vec<u32>)>) {
        let width = self.width();
        self.uses.resize(width, 0);
        self.ranks.resize(width, NO_RANK);
        for (_, columns) in &lists {
            let is_sorted = columns.is_sorted_by(|a, b| a < b);
            assert!(
                is_sorted && columns.last().is_none_or(|&last| (last as usize) < width),
                "ChosenColumns: {} columns of a weight of {width}×{} must be strictly increasing and within it",
                columns.len(),
                self.k()
            );
            columns.iter().for_each(|&column| self.uses[column as usize] += 1);
        }
        for (number, columns) in lists {
            let list = self.placed(columns);
            assert!(
                self.lists.insert(number, list).is_none(),
                "ChosenColumns: two lists have number {number}"
            );
        }
    }

    /// Keeps only the lists with some numbers.
    pub fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let ChosenColumns { lists, strips, weight, uses, precision, .. } = self;
        lists.retain(|&number, list| {
            let is_kept = is_kept(number);
            if !is_kept {
                list.columns.iter().for_each(|&column| uses[column as usize] -= 1);
                list.strips.iter().for_each(|&strip| strips[strip].lists -= 1);
            }
            is_kept
        });
        if lists.is_empty() {
            strips.clear();
            *weight = cpu::ChosenWeight::new(*precision);
        }
    }

    /// Finds or makes strips with all columns of a list.
    fn placed(&mut self, columns: Vec<u32>) -> List {
        let ChosenColumns { projection, precision, strips, weight, uses, ranks, .. } = self;
        for (rank, &column) in columns.iter().enumerate() {
            ranks[column as usize] = rank as u32;
        }
        let mut list = List { places: vec![0; columns.len()], strips: Vec::new(), columns };
        for (number, strip) in strips.iter_mut().enumerate().filter(|(_, strip)| strip.lists > 0) {
            let shared = strip.columns.iter().filter(|&&column| ranks[column as usize] != NO_RANK).count();
            if shared >= MIN_SHARED {
                strip.lists += 1;
                list.place(number, &strip.columns, ranks);
            }
        }
        let mut others: Vec<u32> = list.columns.clone();
        others.retain(|&column| ranks[column as usize] != NO_RANK);
        // Columns of many lists together: later lists will share their strips.
        others.sort_by_key(|&column| Reverse(uses[column as usize]));
        for columns in others.chunks(STRIP) {
            let number = strips.iter().position(|strip| strip.lists == 0).unwrap_or(strips.len());
            if number == strips.len() {
                strips.push(Strip::default());
            }
            strips[number] = Strip { columns: columns.to_vec(), lists: 1 };
            weight.set(number, *projection, columns, *precision);
            list.place(number, columns, ranks);
        }
        list
    }

    pub(super) fn list(&self, number: usize) -> &List {
        self.lists.get(&number).unwrap_or_else(|| panic!("chosen columns: there is no list {number}"))
    }

    /// Number of strips, including those that no list uses.
    pub(super) fn strips(&self) -> usize {
        self.strips.len()
    }

    pub(super) fn weight(&self) -> &cpu::ChosenWeight {
        &self.weight
    }

    pub(super) fn precision(&self) -> Precision {
        self.precision
    }

    /// The number of all columns.
    fn width(&self) -> usize {
        self.projection.weight.shape()[0]
    }

    fn k(&self) -> usize {
        self.projection.weight.shape()[1]
    }
}

impl List {
    /// Uses a strip for those of its columns that have a rank.
    fn place(&mut self, number: usize, columns: &[u32], ranks: &mut [u32]) {
        let first = self.strips.len() * STRIP;
        self.strips.push(number);
        for (index, &column) in columns.iter().enumerate() {
            let rank = std::mem::replace(&mut ranks[column as usize], NO_RANK);
            if rank != NO_RANK {
                self.places[rank as usize] = (first + index) as u32;
            }
        }
    }

    /// The score of a column, given the scores of this list's columns.
    pub(super) fn score(&self, scores: &[f32], column: u32) -> f32 {
        self.columns.binary_search(&column).map_or(f32::NEG_INFINITY, |index| scores[index])
    }
}

impl TopK {
    /// As [`TopK::find`] for the scores `x Wᵀ + b` of chosen columns. Also keeps the scores of the `extra`
    /// rows and columns, for [`TopK::extra`]: −∞ for columns that are not chosen.
    pub fn find_in_chosen(
        &mut self,
        x: &Tensor,
        chosen: &ChosenColumns<'_>,
        groups: &[ChosenGroup],
        count: usize,
        extra: &[(usize, u32)],
        rounding: Rounding,
    ) {
        check(x, chosen, groups);
        self.clear(x.rows(), count);
        self.extra.extend(extra.iter().map(|&(row, column)| (row, column, f32::NEG_INFINITY)));
        self.extra.sort_unstable_by_key(|&(row, column, _)| (row, column));
        cpu::find_in_chosen(x, chosen, groups, rounding, self);
    }
}

/// The scores `x Wᵀ + b` of all columns, −∞ for those that are not chosen.
pub fn project_chosen(x: &Tensor, chosen: &ChosenColumns<'_>, groups: &[ChosenGroup]) -> Tensor {
    check(x, chosen, groups);
    Tensor::new(cpu::project_chosen(x, chosen, groups, chosen.width()))
}

fn check(x: &Tensor, chosen: &ChosenColumns<'_>, groups: &[ChosenGroup]) {
    assert_eq!(x.device(), Device::Cpu, "chosen columns: only the CPU computes their scores");
    let (k, width) = (chosen.k(), chosen.width());
    assert_eq!(x.width(), k, "chosen columns: x is {:?}, W is {width}×{k}", x.shape());
    let mut end = 0;
    for ChosenGroup { rows, .. } in groups {
        assert_eq!(rows.start, end, "chosen columns: groups must be consecutive");
        end = rows.end;
    }
    assert_eq!(x.rows(), end, "chosen columns: groups of {end} rows, x is {:?}", x.shape());
}
