//! Which heads decide a word of the translations.
//!
//! Heads stand in for each other: often none changes a word alone, and two together always do. So heads are removed one after
//! the other, each time the one without which, beside those before it, the word changes most often.

use super::removal::Probe;

use crate::Result;
use crate::layers::HeadName;

/// The word is decided by heads without which it changes in this share of the translations.
const ENOUGH: f64 = 0.5;

/// The most heads that are removed together.
pub const MOST_DECIDING: usize = 4;

impl Probe<'_> {
    /// A few heads that together decide the word, in the order in which they were found; none if [`MOST_DECIDING`] do not. They
    /// should be measured with other sources than they are found with. `progress` hears which are removed now.
    pub fn deciding(&self, sources: &[&str], mut progress: impl FnMut(&[HeadName])) -> Result<Vec<HeadName>> {
        let whole = self.translated(sources, &[])?;
        let mut found: Vec<HeadName> = Vec::new();
        while found.len() < MOST_DECIDING {
            let mut best: Option<(usize, HeadName)> = None;
            for head in self.heads().into_iter().filter(|head| !found.contains(head)) {
                let removed: Vec<HeadName> = found.iter().copied().chain([head]).collect();
                progress(&removed);
                let changed = self.changed(&whole, &self.translated(sources, &removed)?);
                if best.is_none_or(|(most, _)| changed.word > most) {
                    best = Some((changed.word, head));
                }
            }
            let Some((changed, head)) = best else { break };
            found.push(head);
            if changed as f64 >= ENOUGH * sources.len() as f64 {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }
}
