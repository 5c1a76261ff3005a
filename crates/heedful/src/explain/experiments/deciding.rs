//! Finds the heads that decide a word of the translations.
//!
//! Heads are redundant: often removing any single one changes nothing, while removing two always does. So the
//! search is greedy: each round removes one more head, the one whose removal changes the word most often.

use super::ablation::Ablation;

use crate::Result;
use crate::layers::HeadName;

/// A set of heads decides the word if its removal changes the word in at least this share of the
/// translations.
const MIN_CHANGED_SHARE: f64 = 0.5;

/// The maximum number of heads that are removed together.
pub const MAX_DECIDING_HEADS: usize = 4;

impl Ablation<'_> {
    /// Heads that together decide the word, in the order of the search; empty if [`MAX_DECIDING_HEADS`] heads
    /// are not enough. Measure them on other sources than these. `progress` is called with the heads of each
    /// trial.
    pub fn find_deciding_heads(
        &self,
        sources: &[&str],
        mut progress: impl FnMut(&[HeadName]),
    ) -> Result<Vec<HeadName>> {
        let original = self.translate_without(sources, &[])?;
        let mut found: Vec<HeadName> = Vec::new();
        while found.len() < MAX_DECIDING_HEADS {
            let mut best: Option<(usize, HeadName)> = None;
            for head in self.heads().into_iter().filter(|head| !found.contains(head)) {
                let removed: Vec<HeadName> = found.iter().copied().chain([head]).collect();
                progress(&removed);
                let changed = self.count_changes(&original, &self.translate_without(sources, &removed)?);
                if best.is_none_or(|(most, _)| changed.word > most) {
                    best = Some((changed.word, head));
                }
            }
            let Some((changed, head)) = best else { break };
            found.push(head);
            if changed as f64 >= MIN_CHANGED_SHARE * sources.len() as f64 {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }
}
