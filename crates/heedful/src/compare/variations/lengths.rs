//! Accuracy of a classifier by text length: a single vector may represent a short text well and a long text
//! badly.

use heedful_tensor::Precision;
use serde::{Deserialize, Serialize};

use super::Variation;
use crate::Result;
use crate::data::Input;
use crate::data::corpus::CorpusFiles;
use crate::recipe::Task;
use crate::tasks::OpenOptions;
use crate::tasks::classify::{Classified, Classifier};

/// The number of groups of equal size that texts are divided into by length.
const GROUPS: usize = 4;
/// The number of texts per batch.
const BATCH: usize = 32;

/// The accuracy on one group of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthAccuracy {
    /// The length of the shortest text in tokens.
    pub shortest: usize,
    /// The length of the longest text in tokens.
    pub longest: usize,
    /// The number of texts.
    pub texts: usize,
    /// The number of texts that were classified correctly.
    pub correct: usize,
}

/// Classifies the validation set with the trained model of a run; empty for other tasks, or if there is no
/// model.
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
        for batch in texts.chunks(BATCH) {
            let tokens: Vec<Vec<u32>> = batch.iter().map(|(tokens, _)| tokens.clone()).collect();
            // A model with non-finite scores has no accuracy; its run reports the divergence.
            let found = classifier.classify_tokens(&tokens);
            let Ok(found) = found else { return Ok(Vec::new()) };
            let is_correct =
                |(found, (_, truth)): &(&Classified, &(_, Option<u32>))| Some(found.label()) == *truth;
            correct += found.iter().zip(batch).filter(is_correct).count();
        }
        let [shortest, longest] = [0, texts.len() - 1].map(|i| texts[i].0.len());
        groups.push(LengthAccuracy { shortest, longest, texts: texts.len(), correct });
    }
    Ok(groups)
}
