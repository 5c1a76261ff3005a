//! How the lines of a corpus become the examples of a task.
//!
//! ```text
//! Pairs    (source ids, target ids)
//! Labels   (text ids, [label])
//! Lines    ([], line ids)              one line, one example
//! Texts    (text ids, [])
//! Blocks   ([], ids) or (ids, [])      all lines concatenated, line ends included, cut into blocks of equal length
//! ```

use super::EncodedPair;
use crate::data::batch::BatchLayout;
use crate::data::corpus::{CorpusError, CorpusFiles, CorpusFilter, CorpusUnit, Filters, Pair, TextSides};
use crate::data::labels::Labels;
use crate::data::tokenizer::{CachingTokenizer, Tokenizers};

/// A corpus with everything that determines its token ids.
#[derive(Clone, Copy)]
pub struct Examples<'a> {
    /// Its files.
    pub files: &'a CorpusFiles,
    /// Its vocabularies.
    pub tokenizers: &'a Tokenizers,
    /// The kind of its examples.
    pub kind: ExampleKind<'a>,
}

/// The kind of examples that the lines of a corpus are.
#[derive(Clone, Copy)]
pub enum ExampleKind<'a> {
    /// Sentences and their translations.
    Pairs,
    /// Texts and their labels.
    Labels(&'a Labels),
    /// Texts, one per line, in batches of this layout.
    Lines(BatchLayout),
    /// Lines of continuous text, cut into blocks of this many tokens, in batches of this layout.
    Blocks(BatchLayout, usize),
}

impl ExampleKind<'_> {
    /// The layout of batches of these examples.
    pub fn layout(&self) -> BatchLayout {
        match self {
            ExampleKind::Pairs => BatchLayout::Pairs,
            ExampleKind::Labels(_) => BatchLayout::Labels,
            ExampleKind::Lines(layout) | ExampleKind::Blocks(layout, _) => *layout,
        }
    }

    /// Checks that a pair can be an example; `location` is where it was read.
    pub fn check(&self, pair: &Pair, location: impl FnOnce() -> String) -> Result<(), CorpusError> {
        match self {
            ExampleKind::Labels(labels) if !pair.source.is_empty() => {
                labels.require(&pair.target, location).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// The token ids of a pair; a text without a target is on the source side.
    pub fn encode(&self, pair: &Pair, [source, target]: &mut [CachingTokenizer<'_>; 2]) -> EncodedPair {
        match self {
            ExampleKind::Pairs => (source.encode(&pair.source), target.encode(&pair.target)),
            ExampleKind::Labels(labels) => {
                (source.encode(&pair.source), labels.index(&pair.target).into_iter().collect())
            }
            ExampleKind::Lines(_) => (source.encode(&pair.source), Vec::new()),
            ExampleKind::Blocks(..) => (source.encode_line(&pair.source), Vec::new()),
        }
    }

    /// The filter that checks and counts the examples.
    pub fn filter(&self, filters: &Filters) -> CorpusFilter {
        match self {
            ExampleKind::Pairs => CorpusFilter::new(filters),
            ExampleKind::Labels(_) | ExampleKind::Lines(_) => {
                CorpusFilter::with_sides(filters, TextSides::Source, CorpusUnit::Texts)
            }
            ExampleKind::Blocks(..) => {
                CorpusFilter::with_sides(filters, TextSides::Source, CorpusUnit::Blocks)
            }
        }
    }

    /// The examples that this pair completes; `rest` holds the tokens of continuous text that do not fill a
    /// block yet.
    pub fn add(
        &self,
        pair: &Pair,
        mut encoded: EncodedPair,
        rest: &mut Vec<u32>,
        filter: &mut CorpusFilter,
    ) -> Vec<EncodedPair> {
        let ExampleKind::Blocks(_, length) = *self else {
            let verdict = filter.check(pair, &mut encoded.0, &mut encoded.1);
            return verdict.map(|()| self.on_layout_side(encoded)).into_iter().collect();
        };
        filter.count_line();
        rest.append(&mut encoded.0);
        let mut blocks = Vec::new();
        while rest.len() >= length {
            let later = rest.split_off(length);
            blocks.extend(self.last(std::mem::replace(rest, later), filter));
        }
        blocks
    }

    /// The last, shorter block of continuous text, after all pairs were read.
    pub fn last(&self, rest: Vec<u32>, filter: &mut CorpusFilter) -> Option<EncodedPair> {
        if rest.is_empty() {
            return None;
        }
        filter.count_block(rest.len());
        Some(self.on_layout_side((rest, Vec::new())))
    }

    /// Everything that determines the examples in addition to text and vocabularies, for the fingerprint.
    pub(super) fn description(&self) -> String {
        match self {
            // Text and vocabularies alone determine pairs.
            ExampleKind::Pairs => String::new(),
            ExampleKind::Labels(labels) => format!("labels {:?}", labels.names()),
            ExampleKind::Lines(layout) => format!("lines {layout:?}"),
            ExampleKind::Blocks(layout, length) => format!("blocks {layout:?} {length}"),
        }
    }

    /// Moves a text to the side that its layout expects.
    fn on_layout_side(&self, (text, target): EncodedPair) -> EncodedPair {
        match self.layout() {
            BatchLayout::Lines | BatchLayout::Blocks => (target, text),
            BatchLayout::Pairs | BatchLayout::Labels | BatchLayout::Texts => (text, target),
        }
    }
}
