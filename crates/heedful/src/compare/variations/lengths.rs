//! How often a classifier is right, by the length of the text: one vector may hold a short text and not a long one.

use heedful_tensor::Precision;
use serde::{Deserialize, Serialize};

use super::Variation;
use crate::Result;
use crate::data::Input;
use crate::data::corpus::CorpusFiles;
use crate::recipe::Task;
use crate::tasks::OpenOptions;
use crate::tasks::classify::{Classified, Classifier};

/// Texts are compared in so many groups of equal size, from the shortest to the longest.
const GROUPS: usize = 4;
/// Texts that are classified at a time.
const BATCH: usize = 32;

/// The texts of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthAccuracy {
    /// Tokens of the shortest.
    pub shortest: usize,
    /// Tokens of the longest.
    pub longest: usize,
    /// How many there are.
    pub texts: usize,
    /// How many of them got their label.
    pub correct: usize,
}

/// Classifies the validation set with the model that a run has left; empty for other tasks, and where there is no model.
pub(super) fn by_length(variation: &Variation) -> Result<Vec<LengthAccuracy>> {
    let (recipe, folder) = (&variation.recipe, &variation.recipe.output.out);
    let (Task::Classify, Some(folder)) = (recipe.data.task, folder) else { return Ok(Vec::new()) };
    let options = OpenOptions::new().compute(Precision::from(recipe.training.compute));
    let Ok(classifier) = Classifier::open_with(folder, &options) else { return Ok(Vec::new()) };
    let mut texts: Vec<(Vec<u32>, Option<u32>)> = Vec::new();
    for pair in CorpusFiles::labelled(&Input::list(&recipe.data.valid_label_text))?.pairs() {
        let pair = pair?;
        let tokens = classifier.encode(&pair.source);
        if !tokens.is_empty() && tokens.len() <= classifier.limit().tokens() {
            texts.push((tokens, classifier.labels().index(&pair.target)));
        }
    }
    texts.sort_by_key(|(tokens, _)| tokens.len());
    let mut groups = Vec::new();
    for texts in texts.chunks(texts.len().div_ceil(GROUPS).max(1)) {
        let mut correct = 0;
        for part in texts.chunks(BATCH) {
            let tokens: Vec<Vec<u32>> = part.iter().map(|(tokens, _)| tokens.clone()).collect();
            // A model without finite scores has nothing to compare; its run says so.
            let found = classifier.classify_tokens(&tokens);
            let Ok(found) = found else { return Ok(Vec::new()) };
            let is_right =
                |(found, (_, truth)): &(&Classified, &(_, Option<u32>))| Some(found.label()) == *truth;
            correct += found.iter().zip(part).filter(is_right).count();
        }
        let [shortest, longest] = [0, texts.len() - 1].map(|i| texts[i].0.len());
        groups.push(LengthAccuracy { shortest, longest, texts: texts.len(), correct });
    }
    Ok(groups)
}
