//! The order in which the tokens of a batch are processed.
//!
//! Sequences are sorted by length, the longest first. Those that are active at step `t` are then the first
//! rows of every array of states: a step computes these, and a finished sequence keeps its state.

use crate::Ragged;

/// The direction in which a sequence is processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From its first token to its last.
    #[default]
    Forward,
    /// From its last token to its first.
    Backward,
}

/// The steps of a batch.
pub(crate) struct Schedule {
    /// The sequence of each row of states.
    order: Vec<usize>,
    /// The tokens of step 0, of step 1, …, each in the order of the rows.
    tokens: Vec<usize>,
    /// The first index of each step in `tokens`, and the end of the last one.
    starts: Vec<usize>,
}

impl Schedule {
    pub(crate) fn new(sequences: &Ragged, direction: Direction) -> Schedule {
        let mut order: Vec<usize> = (0..sequences.sequences()).collect();
        // A stable sort: sequences of equal length stay in their order.
        order.sort_by_key(|&sequence| std::cmp::Reverse(sequences.length(sequence)));
        let mut tokens = Vec::with_capacity(sequences.tokens());
        let mut starts = vec![0];
        for step in 0..sequences.longest() {
            let active = order.iter().map(|&sequence| sequences.range(sequence));
            tokens.extend(active.take_while(|range| step < range.len()).map(|range| match direction {
                Direction::Forward => range.start + step,
                Direction::Backward => range.end - 1 - step,
            }));
            starts.push(tokens.len());
        }
        Schedule { order, tokens, starts }
    }

    /// The number of steps: the longest length.
    pub(crate) fn steps(&self) -> usize {
        self.starts.len() - 1
    }

    /// The sequence of each row of states.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The tokens read at a step, one for each active row.
    pub(crate) fn tokens(&self, step: usize) -> &[usize] {
        &self.tokens[self.starts[step]..self.starts[step + 1]]
    }

    /// The location of the states before a step: those after the tokens of the previous step, or the initial
    /// ones.
    pub(crate) fn before(&self, step: usize) -> Before<'_> {
        if step == 0 { Before::Initial } else { Before::Tokens(self.tokens(step - 1)) }
    }
}

/// See [`Schedule::before`].
#[derive(Clone, Copy)]
pub(crate) enum Before<'a> {
    Initial,
    Tokens(&'a [usize]),
}

impl Before<'_> {
    /// The state of width `d` of row `row` before the step.
    #[inline(always)]
    pub(crate) fn state<'s>(self, row: usize, d: usize, initial: &'s [f32], after: &'s [f32]) -> &'s [f32] {
        match self {
            Before::Initial => &initial[row * d..(row + 1) * d],
            Before::Tokens(tokens) => &after[tokens[row] * d..(tokens[row] + 1) * d],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_sequences_come_first_and_every_token_is_processed_once() {
        let sequences = Ragged::from_lengths([1, 3, 0, 3]);
        let schedule = Schedule::new(&sequences, Direction::Forward);
        assert_eq!(schedule.order(), [1, 3, 0, 2]);
        let steps = |schedule: &Schedule| -> Vec<Vec<usize>> {
            (0..schedule.steps()).map(|step| schedule.tokens(step).to_vec()).collect()
        };
        assert_eq!(steps(&schedule), [vec![1, 4, 0], vec![2, 5], vec![3, 6]]);
        let schedule = Schedule::new(&sequences, Direction::Backward);
        assert_eq!(steps(&schedule), [vec![3, 6, 0], vec![2, 5], vec![1, 4]]);
    }
}
