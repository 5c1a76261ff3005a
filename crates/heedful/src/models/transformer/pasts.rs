//! Which slots of the KV cache belong to each row.
//!
//! The rows of a sentence, its hypotheses, are a family, and their pasts a tree: every slot is listed once, with who has it in theirs.
//!
//! ```text
//! pasts     7 4 9 1        7 4 9 2        7 4 5 3
//! listed    7 abc   4 abc   5 c   9 ab   1 a   2 b   3 c
//! ```
//!
//! A step copies what is still in somebody's past and adds a slot for each row, its own, to the end.

use std::ops::Range;

use heedful_tensor::ops::{KeyFamily, KeyLists, Listed};

const MOST_MEMBERS: usize = KeyLists::MOST_MEMBERS;

/// In the place of a slot that is not known yet.
const UNKNOWN: u32 = Listed::MOST;

/// For every row of the latest step the slots of its tokens, first to last.
#[derive(Default)]
pub(crate) struct Pasts {
    now: Families,
    /// Those of the previous step, whose memory is reused.
    before: Families,
}

#[derive(Default)]
struct Families {
    listed: Vec<Listed>,
    families: Vec<Family>,
    /// The family of each row.
    of_rows: Vec<u32>,
}

#[derive(Clone)]
struct Family {
    rows: Range<usize>,
    listed: Range<usize>,
    /// How many of the first are in all of their pasts, as far as is known.
    common: usize,
    /// Slots of each row.
    length: usize,
}

/// What a row continues.
#[derive(Clone, Copy)]
pub(crate) enum Parent<'a> {
    /// A row of the previous step.
    Row(usize),
    /// A list of slots that were filled elsewhere, such as a prompt's.
    Slots(&'a [Listed]),
}

impl Parent<'_> {
    /// No past: the row is a first token.
    pub(crate) const NONE: Parent<'static> = Parent::Slots(&[]);
}

impl Pasts {
    /// New rows, each with its sentence, the past of its parent, and room for its newest token.
    pub(crate) fn follow<'p>(&mut self, rows: impl Iterator<Item = (usize, Parent<'p>)>) {
        std::mem::swap(&mut self.before, &mut self.now);
        self.now.clear();
        let mut rows = rows.peekable();
        while let Some((sentence, first)) = rows.next() {
            let (mut parents, mut members) = ([first; MOST_MEMBERS], 1);
            while members < MOST_MEMBERS
                && let Some((_, parent)) = rows.next_if(|(other, _)| *other == sentence)
            {
                parents[members] = parent;
                members += 1;
            }
            self.add_family(&parents[..members]);
        }
    }

    fn add_family(&mut self, parents: &[Parent<'_>]) {
        let Pasts { now, before } = self;
        let all = u8::MAX >> (MOST_MEMBERS - parents.len());
        let (first, mut common, mut length, mut waiting) = (now.listed.len(), 0, 0, all);
        while waiting > 0 {
            let followed = match parents[waiting.trailing_zeros() as usize] {
                Parent::Row(row) => {
                    let family = &before.families[before.of_rows[row] as usize];
                    let (heirs, followed) = heirs(family, parents);
                    let (shared, others) = before.listed[family.listed.clone()].split_at(family.common);
                    now.listed.extend(shared.iter().map(|listed| listed.for_others(followed)));
                    if followed == all {
                        common = family.common;
                    }
                    let place = now.listed.len();
                    now.listed.extend_from_slice(others);
                    let kept = keep_heirs(&mut now.listed[place..], &heirs);
                    now.listed.truncate(place + kept);
                    length = family.length;
                    followed
                }
                Parent::Slots(slots) => {
                    let is_same = |parent: &Parent<'_>| matches!(parent, Parent::Slots(other) if std::ptr::eq(*other, slots));
                    let followed = members_who(parents, is_same);
                    now.listed.extend(slots.iter().map(|listed| listed.for_others(followed)));
                    length = slots.len();
                    followed
                }
            };
            waiting &= !followed;
        }
        common += now.listed[first + common..].iter().take_while(|listed| listed.seen_by() == all).count();
        now.listed.extend((0..parents.len()).map(|member| Listed::new(UNKNOWN, 1 << member)));
        let row = now.of_rows.len();
        now.of_rows.extend(std::iter::repeat_n(now.families.len() as u32, parents.len()));
        now.families.push(Family {
            rows: row..row + parents.len(),
            listed: first..now.listed.len(),
            common,
            length: length + 1,
        });
    }

    /// The slots of the rows' newest tokens.
    pub(crate) fn append(&mut self, newest: &[u32]) {
        for Family { rows, listed, .. } in &self.now.families {
            let own = &mut self.now.listed[listed.end - rows.len()..listed.end];
            for (own, &slot) in own.iter_mut().zip(&newest[rows.clone()]) {
                assert!(slot < UNKNOWN, "more than {UNKNOWN} tokens are cached");
                *own = Listed::new(slot, own.seen_by());
            }
        }
    }

    /// Adds the rows of others to the latest step, with other slots: `slots[i]` instead of `i`.
    pub(crate) fn take_over(&mut self, other: Pasts, slots: &[u32]) {
        let (rows, first) = (self.rows(), self.now.listed.len());
        let renumbered = |listed: &Listed| Listed::new(slots[listed.row() as usize], listed.seen_by());
        self.now.listed.extend(other.now.listed.iter().map(renumbered));
        let families = self.now.families.len() as u32;
        self.now.of_rows.extend(other.now.of_rows.iter().map(|family| families + family));
        self.now.families.extend(other.now.families.iter().map(|family| Family {
            rows: rows + family.rows.start..rows + family.rows.end,
            listed: first + family.listed.start..first + family.listed.end,
            ..family.clone()
        }));
    }

    /// Gives all rows away: with the slots that they have, and numbers from 0 on in the place of slots.
    pub(crate) fn hand_over(&mut self) -> (Pasts, Vec<usize>) {
        let mut pasts = std::mem::take(self);
        let mut used: Vec<u32> = pasts.now.listed.iter().map(|listed| listed.row()).collect();
        used.sort_unstable();
        used.dedup();
        for listed in &mut pasts.now.listed {
            let place = used.binary_search(&listed.row()).expect("one of all");
            *listed = Listed::new(place as u32, listed.seen_by());
        }
        (pasts, used.into_iter().map(|slot| slot as usize).collect())
    }

    /// How many rows the latest step has.
    pub(crate) fn rows(&self) -> usize {
        self.now.of_rows.len()
    }

    /// The slots of all rows.
    pub(crate) fn all(&self) -> &[Listed] {
        &self.now.listed
    }

    /// How many slots each row has.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.now.families.iter().flat_map(|family| std::iter::repeat_n(family.length, family.rows.len()))
    }

    /// The slots of a row, first to last.
    pub(crate) fn of(&self, row: usize) -> impl Iterator<Item = Listed> + '_ {
        let family = &self.now.families[self.now.of_rows[row] as usize];
        let member = row - family.rows.start;
        let own = self.now.listed[family.listed.clone()].iter().filter(move |listed| is_seen(listed, member));
        own.map(|listed| listed.for_others(1))
    }

    /// What the rows see, on a card: all of their pasts, or the slots at this distance from the newest or nearer.
    pub(crate) fn key_lists(&self, window: Option<usize>, filled: usize) -> KeyLists {
        let mut left = filled - self.rows();
        let none = std::iter::from_fn(move || {
            let members = left.min(MOST_MEMBERS);
            left -= members;
            (members > 0).then_some(KeyFamily { members, seen: 0..0, length: 0 })
        });
        let Families { listed, families, .. } = &self.now;
        let Some(distance) = window else {
            let seen = families.iter().map(|family| KeyFamily {
                members: family.rows.len(),
                seen: family.listed.clone(),
                length: family.length,
            });
            return KeyLists::of_families(listed, seen.chain(none.fuse()));
        };
        let (mut near, mut seen) = (Vec::new(), Vec::new());
        for family in families {
            let first = near.len();
            add_near(&mut near, &listed[family.listed.clone()], distance.saturating_add(1));
            let length = family.length.min(distance.saturating_add(1));
            seen.push(KeyFamily { members: family.rows.len(), seen: first..near.len(), length });
        }
        KeyLists::of_families(&near, seen.into_iter().chain(none))
    }
}

impl Families {
    fn clear(&mut self) {
        self.listed.clear();
        self.families.clear();
        self.of_rows.clear();
    }
}

fn is_seen(listed: &Listed, member: usize) -> bool {
    listed.seen_by() >> member & 1 == 1
}

/// The bits of those whose parent is so.
fn members_who(parents: &[Parent<'_>], is_so: impl Fn(&Parent<'_>) -> bool) -> u8 {
    parents
        .iter()
        .enumerate()
        .filter(|(_, parent)| is_so(parent))
        .fold(0, |who, (member, _)| who | 1 << member)
}

/// For all sets of a family who follows one of the set, and all who follow the family.
fn heirs(family: &Family, parents: &[Parent<'_>]) -> ([u8; 1 << MOST_MEMBERS], u8) {
    let mut children = [0; MOST_MEMBERS];
    for (member, parent) in parents.iter().enumerate() {
        if let Parent::Row(row) = parent
            && family.rows.contains(row)
        {
            children[row - family.rows.start] |= 1 << member;
        }
    }
    let mut heirs = [0; 1 << MOST_MEMBERS];
    let sets = 1_usize << family.rows.len();
    for set in 1..sets {
        heirs[set] = heirs[set & (set - 1)] | children[set.trailing_zeros() as usize];
    }
    (heirs, heirs[sets - 1])
}

/// Keeps what somebody's heirs see, in its order, at the beginning; returns how much that is.
fn keep_heirs(listed: &mut [Listed], heirs: &[u8; 1 << MOST_MEMBERS]) -> usize {
    let mut kept = 0;
    for place in 0..listed.len() {
        let seen_by = heirs[usize::from(listed[place].seen_by())];
        listed[kept] = listed[place].for_others(seen_by);
        kept += usize::from(seen_by > 0);
    }
    kept
}

/// Adds what is listed for a family, but of each member only the last `count`.
fn add_near(near: &mut Vec<Listed>, listed: &[Listed], count: usize) {
    let (first, mut counts) = (near.len(), [0; MOST_MEMBERS]);
    for listed in listed.iter().rev() {
        let mut seen_by = 0;
        for (member, seen) in counts.iter_mut().enumerate().filter(|(member, _)| is_seen(listed, *member)) {
            *seen += 1;
            seen_by |= u8::from(*seen <= count) << member;
        }
        if seen_by > 0 {
            near.push(listed.for_others(seen_by));
        }
    }
    near[first..].reverse();
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Device;

    use super::super::slots::Slots;
    use super::*;

    fn of(pasts: &Pasts, row: usize) -> Vec<u32> {
        pasts.of(row).map(Listed::row).collect()
    }

    #[test]
    fn rows_share_the_past_of_their_parent_and_unused_slots_are_reused() {
        let (mut slots, mut pasts) = (Slots::on(Device::Cpu), Pasts::default());
        let mut step = |parents: &[(usize, Option<usize>)]| {
            let parent = |parent: Option<usize>| parent.map_or(Parent::NONE, Parent::Row);
            pasts.follow(parents.iter().map(|&(sentence, row)| (sentence, parent(row))));
            let newest = slots.take(parents.len(), [pasts.all()]);
            pasts.append(&newest);
            (0..parents.len()).map(|row| of(&pasts, row)).collect::<Vec<_>>()
        };
        let first = step(&[(0, None), (1, None)]);
        let second = step(&[(1, Some(1)), (1, Some(1)), (2, None)]);
        assert_eq!(second[0][..1], first[1][..]);
        assert_eq!(second[1][..1], first[1][..]);
        assert_ne!(second[0][1], second[1][1]);
        assert_eq!(second[2].len(), 1);
        // One row grows long while another is dropped at each step: memory stays bounded, and no slot has two owners.
        for _ in 0..500 {
            let lists = step(&[(1, Some(0)), (1, Some(0))]);
            let mut used = lists[0].clone();
            used.push(*lists[1].last().expect("a token"));
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), lists[0].len() + 1);
        }
        assert!(slots.capacity() <= 2048, "{} slots for 504 tokens", slots.capacity());
    }

    /// Sentences of one to twenty rows, some of which end, begin and change places, beside lists of every row.
    #[test]
    fn families_have_what_each_row_would_have() {
        let (mut pasts, mut lists): (Pasts, Vec<(usize, Vec<u32>)>) = Default::default();
        let (mut seed, mut slot) = (7_usize, 0);
        let mut below = |end: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % end
        };
        for step in 0..60 {
            let mut rows = Vec::new();
            for sentence in 0..6 {
                let own: Vec<usize> = (0..lists.len()).filter(|&row| lists[row].0 == sentence).collect();
                let count = [1, 5, 8, 9, 20, 3][sentence];
                for _ in 0..if below(20) == 0 { 0 } else { 1 + below(count) } {
                    rows.push((sentence, (!own.is_empty()).then(|| own[below(own.len())])));
                }
            }
            let prompt = [Listed::new(100_000, 1), Listed::new(100_001, 1)];
            let parent = |row: Option<usize>| row.map_or(Parent::Slots(&prompt), Parent::Row);
            pasts.follow(rows.iter().map(|&(sentence, row)| (sentence, parent(row))));
            let newest: Vec<u32> = (slot..).take(rows.len()).collect();
            slot += rows.len() as u32;
            pasts.append(&newest);
            let follow = |(&(sentence, row), &newest): (&(usize, Option<usize>), &u32)| {
                let past = row.map_or_else(|| vec![100_000, 100_001], |row| lists[row].1.clone());
                (sentence, past.into_iter().chain([newest]).collect())
            };
            lists = rows.iter().zip(&newest).map(follow).collect();
            assert_eq!(pasts.rows(), lists.len());
            for (row, (length, (_, list))) in pasts.lengths().zip(&lists).enumerate() {
                assert_eq!((of(&pasts, row), length), (list.clone(), list.len()), "row {row} of step {step}");
            }
            for family in &pasts.now.families {
                let all = &pasts.now.listed[family.listed.clone()];
                let own = &all[all.len() - family.rows.len()..];
                assert!(own.iter().zip(family.rows.clone()).all(|(own, row)| own.row() == newest[row]));
                let mut near = Vec::new();
                add_near(&mut near, all, 3);
                for (member, row) in family.rows.clone().enumerate() {
                    let seen =
                        near.iter().filter(|listed| is_seen(listed, member)).map(|listed| listed.row());
                    let list = &lists[row].1;
                    assert_eq!(seen.collect::<Vec<_>>(), list[list.len().saturating_sub(3)..]);
                }
            }
        }
        // Others take them over with other slots.
        let (handed, used) = pasts.hand_over();
        assert_eq!(pasts.rows(), 0);
        pasts.follow([(3, Parent::NONE)].into_iter());
        pasts.append(&[500]);
        let slots: Vec<u32> = used.iter().map(|&slot| slot as u32 + 7).collect();
        pasts.take_over(handed, &slots);
        for (row, (_, list)) in lists.iter().enumerate() {
            assert_eq!(of(&pasts, 1 + row), list.iter().map(|slot| slot + 7).collect::<Vec<_>>());
        }
        pasts.follow([(9, Parent::Row(lists.len())); 2].into_iter());
        pasts.append(&[600, 601]);
        assert_eq!(pasts.of(1).count(), lists[lists.len() - 1].1.len() + 1);
    }
}
