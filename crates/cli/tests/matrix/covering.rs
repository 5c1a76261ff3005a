//! Covering arrays: few rows in which every pair of values of two factors occurs.
//!
//! ```text
//! rows = []
//! for every pair of values that no row has:
//!     row = the pair, and the values it requires
//!     for every other factor: the value that adds most pairs, if the row stays allowed
//! ```
//!
//! Most recipe keys apply only to some tasks and families, so a row may leave a factor open. Pairs that no
//! allowed row can contain are omitted.

use std::collections::{HashMap, HashSet};

/// A factor and its values.
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

/// The index of the value of every factor; `None` leaves it open.
pub(crate) type Row = Vec<Option<usize>>;

/// A value of a factor.
type Choice = (usize, usize);

/// Rows in which all allowed pairs occur, and the number of pairs. The first two factors decide most of the
/// other allowed values.
pub(crate) fn pairwise(factors: &[Factor], is_allowed: impl Fn(&Row) -> bool) -> (Vec<Row>, usize) {
    let choices: Vec<Choice> = factors
        .iter()
        .enumerate()
        .flat_map(|(factor, Factor { values, .. })| (0..values.len()).map(move |value| (factor, value)))
        .collect();
    let mut search =
        Search { covered: HashSet::new(), is_allowed: &is_allowed, factors: factors.len(), choices };
    let beginnings = search.beginnings();
    let mut rows = Vec::new();
    for (i, &one) in search.choices.clone().iter().enumerate() {
        for &other in &search.choices.clone()[i + 1..] {
            if one.0 == other.0 || search.covered.contains(&(one, other)) {
                continue;
            }
            let Some(mut row) = search.completed(&beginnings, [one, other]) else { continue };
            search.extend(&mut row);
            search.cover(&row);
            rows.push(row);
        }
    }
    (rows, search.covered.len())
}

struct Search<'a> {
    choices: Vec<Choice>,
    covered: HashSet<(Choice, Choice)>,
    is_allowed: &'a dyn Fn(&Row) -> bool,
    factors: usize,
}

/// Values of the first two factors, and the choices allowed with them, each with the other choice that it
/// requires, if any.
struct Beginning {
    row: Row,
    allowed: HashMap<Choice, Option<Choice>>,
}

impl Search<'_> {
    fn beginnings(&self) -> Vec<Beginning> {
        let of = |factor: usize| self.choices.iter().copied().filter(move |choice| choice.0 == factor);
        let rows = of(0).flat_map(|first| of(1).map(move |second| [first, second]));
        rows.map(|pair| with(&vec![None; self.factors], &pair))
            .filter(|row| (self.is_allowed)(row))
            .map(|row| {
                let needs = |&choice: &Choice| Some((choice, self.need(&row, choice)?));
                let allowed = self.choices.iter().filter(|choice| choice.0 > 1).filter_map(needs).collect();
                Beginning { allowed, row }
            })
            .collect()
    }

    /// The other choice that this one requires in a row, if any; `None` if this choice is not possible.
    fn need(&self, row: &Row, choice: Choice) -> Option<Option<Choice>> {
        if (self.is_allowed)(&with(row, &[choice])) {
            return Some(None);
        }
        let others = self.choices.iter().filter(|other| other.0 > 1 && other.0 != choice.0);
        others.copied().find(|&other| (self.is_allowed)(&with(row, &[choice, other]))).map(Some)
    }

    /// An allowed row with these choices and those they require.
    fn completed(&self, beginnings: &[Beginning], pair: [Choice; 2]) -> Option<Row> {
        beginnings.iter().find_map(|Beginning { row, allowed }| {
            let mut needed = Vec::new();
            for choice in pair {
                if choice.0 <= 1 {
                    (row[choice.0] == Some(choice.1)).then_some(())?;
                } else {
                    needed.extend(allowed.get(&choice)?.iter().copied());
                }
            }
            // The pair itself overrides a requirement of one on the other.
            needed.extend(pair);
            Some(with(row, &needed)).filter(|row| (self.is_allowed)(row))
        })
    }

    /// Gives open factors the values that add most new pairs.
    fn extend(&self, row: &mut Row) {
        for factor in 0..self.factors {
            if row[factor].is_some() {
                continue;
            }
            let mut values: Vec<(usize, usize)> = self
                .choices
                .iter()
                .filter(|choice| choice.0 == factor)
                .map(|&choice| (self.new_pairs(row, choice), choice.1))
                .collect();
            values.sort_by_key(|&(new, value)| (std::cmp::Reverse(new), value));
            for (new, value) in values {
                row[factor] = Some(value);
                if new > 0 && (self.is_allowed)(row) {
                    break;
                }
                row[factor] = None;
            }
        }
    }

    fn new_pairs(&self, row: &Row, choice: Choice) -> usize {
        let others = row.iter().enumerate().filter_map(|(factor, value)| Some((factor, (*value)?)));
        others.filter(|&other| !self.covered.contains(&ordered(other, choice))).count()
    }

    fn cover(&mut self, row: &Row) {
        let chosen: Vec<Choice> =
            row.iter().enumerate().filter_map(|(factor, value)| Some((factor, (*value)?))).collect();
        for (i, &one) in chosen.iter().enumerate() {
            self.covered.extend(chosen[i + 1..].iter().map(|&other| (one, other)));
        }
    }
}

/// A row with some more choices.
fn with(row: &Row, choices: &[Choice]) -> Row {
    let mut row = row.clone();
    choices.iter().for_each(|&(factor, value)| row[factor] = Some(value));
    row
}

fn ordered(one: Choice, other: Choice) -> (Choice, Choice) {
    if one <= other { (one, other) } else { (other, one) }
}

#[test]
fn every_allowed_pair_occurs_and_no_other() {
    let factor = |name: &str, values: usize| Factor {
        name: name.to_owned(),
        values: (0..values).map(|value| value.to_string()).collect(),
    };
    let factors = [factor("task", 3), factor("family", 2), factor("a", 2), factor("b", 3), factor("c", 2)];
    // `c` applies only to task 1, and `b` = 2 requires `a` = 1.
    let is_allowed =
        |row: &Row| (row[4].is_none() || row[0] == Some(1)) && (row[3] != Some(2) || row[2] == Some(1));
    let (rows, pairs) = pairwise(&factors, is_allowed);
    let has = |one: Choice, other: Choice| {
        rows.iter().any(|row| row[one.0] == Some(one.1) && row[other.0] == Some(other.1))
    };
    assert!(rows.iter().all(is_allowed) && rows.len() <= 14, "{}", rows.len());
    assert!(has((0, 2), (1, 1)) && has((2, 0), (3, 1)) && has((4, 1), (3, 2)) && has((1, 0), (4, 0)));
    assert!(!has((0, 0), (4, 1)) && !has((2, 0), (3, 2)));
    assert_eq!(pairs, 52);
}
