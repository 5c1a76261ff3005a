//! What the queries of a step see, given to the card once for all layers.
//!
//! Neighbouring queries are a family, such as the hypotheses of a sentence: what they see is listed once for all of them, and each of it
//! with who sees it.

use std::ops::Range;

use crate::cuda::{Buffer, upload_doubled, upload_list};

/// As in the kernels' source: bits of a stored row's number in a list, and of how many a family sees; what is above them says who sees it,
/// or which of the family a query is.
const SLOT_BITS: u32 = 24;
const SLOT: u32 = (1 << SLOT_BITS) - 1;
const MEMBERS_BIT: u32 = 28;

/// As many rows as a warp goes through in a few microseconds.
const FEW: usize = 256;

/// A stored row in the list of a family, and who of the family sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::NoUninit)]
#[repr(transparent)]
pub struct Listed(u32);

impl Listed {
    /// The largest number of a stored row.
    pub const MOST: u32 = SLOT;

    /// A stored row that the members with these bits see.
    ///
    /// # Panics
    /// If its number is larger than the [largest](Listed::MOST).
    #[inline]
    pub fn new(row: u32, seen_by: u8) -> Listed {
        assert!(row <= SLOT, "cached attention: row {row} of {SLOT} at most is stored");
        Listed(row | u32::from(seen_by) << SLOT_BITS)
    }

    /// The stored row.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 & SLOT
    }

    /// The bits of the members who see it.
    #[inline]
    pub fn seen_by(self) -> u8 {
        (self.0 >> SLOT_BITS) as u8
    }

    /// The same row for others.
    #[inline]
    pub fn for_others(self, seen_by: u8) -> Listed {
        Listed(self.0 & SLOT | u32::from(seen_by) << SLOT_BITS)
    }
}

/// Neighbouring queries that are given what they see together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFamily {
    /// How many they are.
    pub members: usize,
    /// What they see: a range of what is listed. It ends with the members' own rows in their order, or is empty.
    pub seen: Range<usize>,
    /// How many rows each of them sees.
    pub length: usize,
}

/// For each query of a step the stored rows that it sees, in the card's memory until the step ends.
pub struct KeyLists {
    pub(super) queries: usize,
    pub(super) spans: Buffer,
    pub(super) slots: Option<Buffer>,
    /// One past the largest row.
    pub(super) end: usize,
    pub(super) sees_nothing: bool,
    pub(super) largest_family: usize,
}

impl KeyLists {
    /// Members of a family, which share products.
    pub const MOST_MEMBERS: usize = 8;

    /// Rows anywhere, in an order of their own: the pasts of hypotheses.
    ///
    /// # Panics
    /// If a range is beyond what is listed, or a family has more than [`KeyLists::MOST_MEMBERS`].
    pub fn of_families(listed: &[Listed], families: impl Iterator<Item = KeyFamily> + Clone) -> KeyLists {
        if families.clone().all(|family| family.is_worth_sharing()) {
            return KeyLists::of_listed(listed, families);
        }
        let (mut apart, mut parts) = (Vec::new(), Vec::new());
        for family in families {
            let seen = &listed[family.seen.clone()];
            if family.is_worth_sharing() {
                parts.push(KeyFamily { seen: apart.len()..apart.len() + seen.len(), ..family });
                apart.extend_from_slice(seen);
                continue;
            }
            for member in 0..family.members {
                let first = apart.len();
                let own = seen.iter().filter(|listed| listed.seen_by() >> member & 1 == 1);
                apart.extend(own.map(|listed| listed.for_others(1)));
                parts.push(KeyFamily { members: 1, seen: first..apart.len(), ..family });
            }
        }
        KeyLists::of_listed(&apart, parts.into_iter())
    }

    fn of_listed(listed: &[Listed], families: impl Iterator<Item = KeyFamily>) -> KeyLists {
        let mut spans = Spans::default();
        families.for_each(|family| spans.add(family.members, family.seen));
        assert!(spans.end <= listed.len(), "cached attention: {} of {} listed rows", spans.end, listed.len());
        let last = listed.iter().map(|listed| listed.row()).fold(0, u32::max);
        // They grow with every step: twice the room, so that most steps find all else where it was.
        KeyLists { slots: Some(upload_doubled(listed)), end: last as usize + 1, ..spans.lists() }
    }

    /// One row for each query: its own.
    pub fn of_own(rows: &[u32]) -> KeyLists {
        let listed: Vec<Listed> = rows.iter().map(|&row| Listed::new(row, 1)).collect();
        let own = |query| KeyFamily { members: 1, seen: query..query + 1, length: 1 };
        KeyLists::of_listed(&listed, (0..rows.len()).map(own))
    }

    /// Consecutive rows: the memories of sentences. Neighbours that see the same are a family.
    pub fn of_ranges(ranges: impl IntoIterator<Item = Range<usize>>) -> KeyLists {
        let ranges: Vec<Range<usize>> = ranges.into_iter().collect();
        let mut spans = Spans::default();
        for alike in ranges.chunk_by(|one, next| one == next) {
            for family in alike.chunks(KeyLists::MOST_MEMBERS) {
                spans.add(family.len(), family[0].clone());
            }
        }
        spans.lists()
    }
}

impl KeyFamily {
    /// Whether its members should share what they see. One warp goes through it: where pasts have little in common, several are done
    /// sooner, each with one past.
    fn is_worth_sharing(&self) -> bool {
        self.seen.len() <= FEW + 2 * self.length
    }
}

/// As in the kernels' source, for every query.
#[derive(Default)]
struct Spans {
    packed: Vec<[u32; 2]>,
    end: usize,
    sees_something: bool,
    largest_family: usize,
}

impl Spans {
    /// A family that sees so much.
    fn add(&mut self, members: usize, seen: Range<usize>) {
        assert!(members <= KeyLists::MOST_MEMBERS, "cached attention: a family of {members}");
        assert!(seen.len() <= SLOT as usize, "cached attention: a family sees {} rows", seen.len());
        let count = seen.len() as u32 | (members as u32) << MEMBERS_BIT;
        self.packed
            .extend((0..members as u32).map(|member| [seen.start as u32, count | member << SLOT_BITS]));
        self.end = self.end.max(seen.end);
        if !seen.is_empty() {
            self.sees_something = true;
            self.largest_family = self.largest_family.max(members);
        }
    }

    fn lists(self) -> KeyLists {
        KeyLists {
            queries: self.packed.len(),
            spans: upload_list(&self.packed),
            slots: None,
            end: self.end,
            sees_nothing: !self.sees_something,
            largest_family: self.largest_family.max(1),
        }
    }
}
