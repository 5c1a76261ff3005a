//! Learns a vocabulary shortlist from sentence pairs, using the model's own attention.
//!
//! ```text
//! A_ts     attention weight on source token s in the step that predicts target token t: the mean over the heads of one layer
//! link     s and t are linked if A_ts is at least a tenth of the largest weight in its row: attention is often spread over
//!          the pieces of a word, or over neighbours
//! ```
//!
//! Links are counted for all pairs of a source token and a target token. Counts do not depend on the order
//! of the sentences.

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::align::{AlignmentLayer, weights_of};
use super::options::SearchOptions;
use crate::data::batch::Batch;
use crate::data::shortlist::Shortlist;
use crate::layers::{AttentionRole, Pass};
use crate::models::Generate;

/// Minimum weight of a link, relative to the largest weight of its row.
const MIN_SHARE: f32 = 0.1;

/// Maximum number of tokens per side in one batch.
const BATCH_TOKENS: usize = 2048;
/// Maximum number of attention weights per head in one batch.
const BATCH_WEIGHTS: usize = 1 << 18;

/// How often source tokens are linked to target tokens.
#[derive(Clone, Debug, Default)]
pub struct Links {
    counts: FxHashMap<(u32, u32), u32>,
    /// How often each target token occurs.
    targets: FxHashMap<u32, u64>,
}

/// How a [`Shortlist`] is made from [`Links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortlistOptions {
    /// How many target tokens are in the list of a source token: those that are linked to it most often.
    pub per_token: usize,
    /// How many of the most frequent target tokens are in every list.
    pub frequent: usize,
    /// Whether a source token is in its own list, for names and numbers. This needs a joint vocabulary.
    pub copies: Copies,
}

/// Whether source tokens may be copied to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Yes: source and target share a vocabulary.
    SameToken,
    /// No: the same id is another token on the target side.
    None,
}

impl Links {
    /// Counts the links of some sentence pairs. Pairs with an empty side have none.
    pub fn learn(
        &mut self,
        model: &dyn Generate,
        pairs: &[(Vec<u32>, Vec<u32>)],
        options: &SearchOptions,
    ) -> Result<(), DecodeError> {
        let is_nonempty = |(source, target): &&(Vec<u32>, Vec<u32>)| !source.is_empty() && !target.is_empty();
        let mut pairs: Vec<&(Vec<u32>, Vec<u32>)> = pairs.iter().filter(is_nonempty).collect();
        pairs.sort_by_key(|(source, target)| source.len().max(target.len()));
        let mut rest = pairs.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_size(rest));
            self.learn_batch(model, batch, options)?;
            rest = later;
        }
        Ok(())
    }

    fn learn_batch(
        &mut self,
        model: &dyn Generate,
        pairs: &[&(Vec<u32>, Vec<u32>)],
        options: &SearchOptions,
    ) -> Result<(), DecodeError> {
        let special = model.special_tokens();
        let owned: Vec<(Vec<u32>, Vec<u32>)> = pairs.iter().map(|&pair| pair.clone()).collect();
        let batch = Batch::new(&owned, special.bos, special.eos)?;
        model.check(&batch)?;
        let compute = options.precision([model.params()]);
        let mut pass = Pass::inference(compute).recording_role(AttentionRole::Cross);
        model.params().device().catch_oom(|| model.loss(&batch, &mut pass))?;
        let maps = pass.take_attention()?;
        for (sequence, (source, target)) in owned.iter().enumerate() {
            if let Some(weights) = weights_of(&maps, AlignmentLayer::Sharpest, sequence) {
                self.add(source, target, &weights);
            }
        }
        Ok(())
    }

    /// Counts the links of a pair, given target steps × source tokens.
    fn add(&mut self, source: &[u32], target: &[u32], weights: &[f32]) {
        for (&token, row) in target.iter().zip(weights.chunks_exact(source.len().max(1))) {
            *self.targets.entry(token).or_default() += 1;
            let largest = row.iter().copied().fold(0.0, f32::max);
            let linked = source.iter().zip(row).filter(|(_, weight)| **weight >= MIN_SHARE * largest);
            for (&source, _) in linked.filter(|_| largest > 0.0) {
                *self.counts.entry((source, token)).or_default() += 1;
            }
        }
    }

    /// The shortlist for vocabularies of these sizes, source and target.
    pub fn shortlist(&self, [source, target]: [usize; 2], options: ShortlistOptions) -> Shortlist {
        let mut frequent: Vec<(u64, u32)> =
            self.targets.iter().map(|(&token, &count)| (count, token)).collect();
        // Most frequent first, ties by token id, whatever the order of the hash map.
        frequent.sort_unstable_by_key(|&(count, token)| (std::cmp::Reverse(count), token));
        let frequent = frequent.iter().take(options.frequent).map(|&(_, token)| token).collect();

        let mut counted: Vec<Vec<(u32, u32)>> = vec![Vec::new(); source];
        for (&(source, token), &count) in &self.counts {
            counted[source as usize].push((count, token));
        }
        let list = |(source, mut counted): (usize, Vec<(u32, u32)>)| {
            counted.sort_unstable_by_key(|&(count, token)| (std::cmp::Reverse(count), token));
            let linked = counted.iter().take(options.per_token).map(|&(_, token)| token);
            let copy = (options.copies == Copies::SameToken && source < target).then_some(source as u32);
            linked.chain(copy).collect()
        };
        Shortlist::new(target, frequent, counted.into_iter().enumerate().map(list).collect())
    }
}

/// The number of pairs in the next batch; pairs are sorted by length.
fn batch_size(pairs: &[&(Vec<u32>, Vec<u32>)]) -> usize {
    let (mut tokens, mut weights) = (0, 0);
    let fits = |(source, target): &&&(Vec<u32>, Vec<u32>)| {
        tokens += source.len().max(target.len() + 1);
        weights += source.len() * (target.len() + 1);
        tokens <= BATCH_TOKENS && weights <= BATCH_WEIGHTS
    };
    pairs.iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: ShortlistOptions = ShortlistOptions { per_token: 2, frequent: 1, copies: Copies::None };

    /// Two sentences: target tokens 5 6 and 6 7, source tokens 3 4 and 4; the last row is the step of
    /// `<eos>`.
    fn links() -> Links {
        let mut links = Links::default();
        links.add(&[3, 4], &[5, 6], &[0.95, 0.05, 0.1, 0.9, 0.5, 0.5]);
        links.add(&[4], &[6, 7], &[1.0, 1.0, 1.0]);
        links
    }

    #[test]
    fn links_are_counted_and_the_most_frequent_kept() {
        let links = links();
        let count = |source, target| links.counts.get(&(source, target)).copied().unwrap_or(0);
        // 0.05 is less than a tenth of 0.95, 0.1 is more than a tenth of 0.9.
        assert_eq!([count(3, 5), count(4, 5), count(3, 6), count(4, 6), count(4, 7)], [1, 0, 1, 2, 1]);
        let shortlist = links.shortlist([5, 8], OPTIONS);
        assert_eq!(shortlist.tokens(&[], []), [6], "the most frequent target token");
        assert_eq!(shortlist.tokens(&[3], []), [5, 6]);
        assert_eq!(shortlist.tokens(&[4], []), [6, 7]);
        let one = links.shortlist([5, 8], ShortlistOptions { per_token: 1, ..OPTIONS });
        assert_eq!(one.tokens(&[4], []), [6], "the most frequent link");
        assert_eq!(one.tokens(&[3], []), [5, 6], "ties by token id");
    }

    #[test]
    fn with_one_vocabulary_a_token_may_be_copied() {
        let shortlist = links().shortlist([8, 8], ShortlistOptions { copies: Copies::SameToken, ..OPTIONS });
        assert_eq!(shortlist.tokens(&[2], []), [2, 6]);
        assert_eq!(shortlist.tokens(&[3], []), [3, 5, 6]);
    }

    #[test]
    fn batches_have_at_least_one_pair_and_a_limited_number_of_weights() {
        let pair = |source, target| (vec![3; source], vec![4; target]);
        let pairs = [pair(1, 1), pair(900, 20), pair(900, 20), pair(900, 20), pair(2000, 2000)];
        let pairs: Vec<_> = pairs.iter().collect();
        assert_eq!(batch_size(&pairs), 3);
        assert_eq!(batch_size(&pairs[4..]), 1);
    }
}
