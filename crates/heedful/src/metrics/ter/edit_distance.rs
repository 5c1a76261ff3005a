//! Levenshtein distance from a hypothesis to a reference, computed row by row within a beam around the
//! diagonal.

/// The half width of the beam around the diagonal, in words of the reference.
const BEAM: usize = 25;
/// The cost of cells outside the beam.
const UNREACHED: u32 = u32::MAX / 2;

/// The edit that leads to a cell of the table. If costs are equal, the first edit in this order is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Keep,
    Replace,
    /// Deletes a word of the hypothesis.
    Delete,
    /// Inserts a word of the reference.
    Insert,
}

/// The table of distances: cell (i, j) is the cost from the first i words of a hypothesis to the first j
/// words of the reference.
///
/// All hypotheses have the same number of words, so their rows cover the same cells. A row depends only on a
/// prefix of the hypothesis, so the rows of a prefix shared with the previous hypothesis are reused.
pub(super) struct Table<'r> {
    reference: &'r [u32],
    rows: usize,
    /// The slope of the diagonal: words of the reference per word of the hypothesis.
    slope: f64,
    beam: usize,
    costs: Vec<u32>,
}

impl<'r> Table<'r> {
    /// A table for hypotheses of `length` words.
    pub(super) fn new(reference: &'r [u32], length: usize) -> Table<'r> {
        let slope = if length == 0 { 1.0 } else { reference.len() as f64 / length as f64 };
        // If the diagonal is steep, beams of the usual width would not overlap.
        let beam =
            if (BEAM as f64) < slope / 2.0 { (slope / 2.0 + BEAM as f64).ceil() as usize } else { BEAM };
        let columns = reference.len() + 1;
        let mut costs = vec![UNREACHED; (length + 1) * columns];
        for (j, cost) in costs[..columns].iter_mut().enumerate() {
            *cost = j as u32;
        }
        Table { reference, rows: length + 1, slope, beam, costs }
    }

    /// The distance of `hypothesis`, whose first `same` words are those of the previous hypothesis.
    pub(super) fn distance(&mut self, hypothesis: &[u32], same: usize) -> u32 {
        let columns = self.columns();
        for i in same + 1..self.rows {
            let (first, end) = self.beam_columns(i);
            let (before, rest) = self.costs.split_at_mut(i * columns);
            let (above, row) = (&before[(i - 1) * columns..], &mut rest[..columns]);
            let word = hypothesis[i - 1];
            let mut left = UNREACHED;
            for j in first..end {
                let substitution = match j.checked_sub(1) {
                    Some(j) => above[j] + u32::from(word != self.reference[j]),
                    None => UNREACHED,
                };
                left = substitution.min(above[j] + 1).min(left + 1).min(UNREACHED);
                row[j] = left;
            }
        }
        self.costs[self.costs.len() - 1]
    }

    /// The edits from `hypothesis`, which must be the last one measured, to the reference, from the last word
    /// to the first.
    pub(super) fn edits_backwards(&self, hypothesis: &[u32]) -> Vec<Edit> {
        let (mut i, mut j) = (self.rows - 1, self.columns() - 1);
        let mut edits = Vec::with_capacity(i + j);
        while i > 0 || j > 0 {
            let edit = self.edit_at(hypothesis, i, j);
            edits.push(edit);
            i -= usize::from(edit != Edit::Insert);
            j -= usize::from(edit != Edit::Delete);
        }
        edits
    }

    /// The first edit, in the order of [`Edit`], that explains the cell's cost.
    fn edit_at(&self, hypothesis: &[u32], i: usize, j: usize) -> Edit {
        if i == 0 {
            return Edit::Insert;
        }
        let cost = self.cost(i, j);
        if j > 0 {
            let same = hypothesis[i - 1] == self.reference[j - 1];
            if cost == self.cost(i - 1, j - 1) + u32::from(!same) {
                return if same { Edit::Keep } else { Edit::Replace };
            }
        }
        if cost == self.cost(i - 1, j) + 1 { Edit::Delete } else { Edit::Insert }
    }

    fn cost(&self, i: usize, j: usize) -> u32 {
        self.costs[i * self.columns() + j]
    }

    fn columns(&self) -> usize {
        self.reference.len() + 1
    }

    /// The columns of row `i` within the beam. The last row extends to the last column, which holds the
    /// distance.
    fn beam_columns(&self, i: usize) -> (usize, usize) {
        let diagonal = (i as f64 * self.slope).floor() as usize;
        let end = if i == self.rows - 1 { self.columns() } else { self.columns().min(diagonal + self.beam) };
        (diagonal.saturating_sub(self.beam), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_rows_give_the_distance_of_a_new_table() {
        let reference: Vec<u32> = (0..60).collect();
        let mut hypothesis: Vec<u32> = (3..50).chain(0..3).collect();
        let mut table = Table::new(&reference, hypothesis.len());
        table.distance(&hypothesis, 0);
        hypothesis[20..].reverse();
        let distance = table.distance(&hypothesis, 20);
        assert_eq!(distance, Table::new(&reference, hypothesis.len()).distance(&hypothesis, 0));
    }

    #[test]
    fn replacing_is_preferred_if_costs_are_equal() {
        let mut table = Table::new(&[1, 2, 3], 2);
        assert_eq!(table.distance(&[1, 4], 0), 2);
        assert_eq!(table.edits_backwards(&[1, 4]), [Edit::Replace, Edit::Insert, Edit::Keep]);
    }

    #[test]
    fn lengths_that_differ_a_lot_stay_within_the_beam() {
        let reference: Vec<u32> = (0..1000).collect();
        // With few but more than one word, the beam of the second to last row ends before the match.
        for (length, expected) in [(0, 1000), (1, 999), (2, 1000), (20, 1000), (21, 1000), (3000, 2999)] {
            let hypothesis = vec![999; length];
            let mut table = Table::new(&reference, length);
            assert_eq!(table.distance(&hypothesis, 0), expected, "{length} words");
            assert!(table.edits_backwards(&hypothesis).len() >= 1000);
        }
    }
}
