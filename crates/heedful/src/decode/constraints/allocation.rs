//! Dynamic beam allocation: the places of a beam are shared out among expansions by what they still lack.

/// An expansion that competes for a place.
pub(in super::super) trait Placed {
    /// How many tokens of phrases it lacks.
    fn missing(&self) -> usize;
}

/// Keeps `places` of the expansions, which are sorted from the best to the worst and stay so. Those that lack equally much
/// form a bank; banks take turns, the one that lacks least first, and each gives its best that has no place yet. So a bank
/// with few expansions leaves its places to the others.
pub(in super::super) fn allocate<E: Placed + Copy>(expansions: &mut Vec<E>, places: usize) {
    if expansions.len() <= places {
        return;
    }
    let mut ranks: Vec<usize> = Vec::new();
    let mut turns: Vec<(usize, usize, usize)> = Vec::with_capacity(expansions.len());
    for (index, expansion) in expansions.iter().enumerate() {
        let bank = expansion.missing();
        if ranks.len() <= bank {
            ranks.resize(bank + 1, 0);
        }
        turns.push((ranks[bank], bank, index));
        ranks[bank] += 1;
    }
    turns.sort_unstable();
    turns.truncate(places);
    turns.sort_unstable_by_key(|&(_, _, index)| index);
    for (place, &(_, _, index)) in turns.iter().enumerate() {
        expansions[place] = expansions[index];
    }
    expansions.truncate(turns.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Placed for (usize, char) {
        fn missing(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn banks_take_turns_and_leave_what_they_cannot_use() {
        let all = [(2, 'a'), (2, 'b'), (2, 'c'), (1, 'd'), (0, 'e'), (2, 'f')];
        let kept = |places| {
            let mut expansions = all.to_vec();
            allocate(&mut expansions, places);
            expansions.iter().map(|&(_, name)| name).collect::<String>()
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 9].map(kept), ["e", "de", "ade", "abde", "abcde", "abcdef", "abcdef"]);
    }
}
