//! Dynamic beam allocation: the slots of a beam are divided among expansions by how many phrase tokens they
//! still lack.

/// An expansion that competes for a beam slot.
pub(in super::super) trait Constrained {
    /// Phrase tokens that it still lacks.
    fn missing(&self) -> usize;
}

/// Keeps `slots` of the expansions, which are sorted from best to worst and stay sorted. Expansions that lack
/// the same number of tokens form a bank. Slots are filled round-robin over the banks, the bank that lacks
/// least first, each time with the best remaining expansion of the bank. A bank with few expansions leaves
/// its slots to the others.
pub(in super::super) fn allocate<E: Constrained + Copy>(expansions: &mut Vec<E>, slots: usize) {
    if expansions.len() <= slots {
        return;
    }
    let mut ranks: Vec<usize> = Vec::new();
    let mut order: Vec<(usize, usize, usize)> = Vec::with_capacity(expansions.len());
    for (index, expansion) in expansions.iter().enumerate() {
        let bank = expansion.missing();
        if ranks.len() <= bank {
            ranks.resize(bank + 1, 0);
        }
        order.push((ranks[bank], bank, index));
        ranks[bank] += 1;
    }
    order.sort_unstable();
    order.truncate(slots);
    order.sort_unstable_by_key(|&(_, _, index)| index);
    for (slot, &(_, _, index)) in order.iter().enumerate() {
        expansions[slot] = expansions[index];
    }
    expansions.truncate(order.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Constrained for (usize, char) {
        fn missing(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn slots_are_filled_round_robin_over_the_banks() {
        let all = [(2, 'a'), (2, 'b'), (2, 'c'), (1, 'd'), (0, 'e'), (2, 'f')];
        let kept = |slots| {
            let mut expansions = all.to_vec();
            allocate(&mut expansions, slots);
            expansions.iter().map(|&(_, name)| name).collect::<String>()
        };
        assert_eq!([1, 2, 3, 4, 5, 6, 9].map(kept), ["e", "de", "ade", "abde", "abcde", "abcdef", "abcdef"]);
    }
}
