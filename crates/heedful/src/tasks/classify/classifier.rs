//! A classifier with its vocabulary and the names of its labels: text in, label out.
//!
//! ```no_run
//! # fn main() -> heedful::Result<()> {
//! use heedful::Classifier;
//!
//! let classifier = Classifier::open("run")?;
//! for result in classifier.classify(["Stocks fell sharply on Monday."])? {
//!     println!("{} ({:.0} %)", classifier.labels().name(result.label()), 100.0 * result.probability());
//! }
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use heedful_tensor::{Precision, Ragged, ops};

use super::{ClassifierConfig, EncoderClassifier};
use crate::Result;
use crate::data::batch::concatenate;
use crate::data::labels::Labels;
use crate::data::tokenizer::{Tokenizer, Tokenizers};
use crate::data::{SpecialTokens, TextLimit};
use crate::decode::DecodeError;
use crate::layers::{AttentionMap, AttentionRole, MaskFault, Pass};
use crate::models::{BrokenModel, Label, Model, default_precision};
use crate::tasks::folder::ModelFolder;
use crate::tasks::open::{OpenedModel, open};
use crate::tasks::{OpenOptions, Task};

/// A classifier that takes text.
pub struct Classifier {
    model: EncoderClassifier,
    tokenizers: Tokenizers,
    labels: Labels,
    limit: TextLimit,
    compute: Option<Precision>,
}

/// The result for a non-blank text.
#[derive(Clone, Debug, PartialEq)]
pub struct Classified {
    /// The probability of every label, in the order of [`Classifier::labels`].
    pub probabilities: Vec<f32>,
    /// The words of the text in order, each with its attention weight. The weights sum to 1.
    pub words: Vec<Word>,
}

/// A word of a text with its attention weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word, as in the text.
    pub text: String,
    /// The sum of the attention weights of its tokens.
    pub attention: f32,
}

impl Classifier {
    /// Opens the folder of a classifier or of its training run.
    pub fn open(folder: impl AsRef<Path>) -> Result<Classifier> {
        Classifier::open_with(folder, &OpenOptions::new())
    }

    /// As [`Classifier::open`], with options.
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Classifier> {
        Classifier::open_folder(ModelFolder::open(folder.as_ref())?, options)
    }

    /// As [`Classifier::open_with`], for an opened folder.
    #[doc(hidden)]
    pub fn open_folder(folder: ModelFolder, options: &OpenOptions) -> Result<Classifier> {
        let opened = open::<ClassifierConfig>(folder, Task::Classify, options)?;
        let OpenedModel { config, model, tokenizers, folder, trained } = opened;
        let labels = folder.labels()?;
        labels.check_count(config.labels, &folder.path)?;
        let limit = options.limit(TextLimit::new(&tokenizers.source, model.longest_text(), trained))?;
        let compute = options.requested_precision();
        Ok(Classifier { model, tokenizers, labels, limit, compute })
    }

    /// Sets the maximum number of tokens of a text.
    #[doc(hidden)]
    pub fn set_max_tokens(&mut self, tokens: usize) -> Result<()> {
        self.limit = self.limit.with_tokens(tokens)?;
        Ok(())
    }

    /// The type of its matrix products.
    pub fn compute(&self) -> Precision {
        self.compute.unwrap_or_else(|| default_precision([self.model.params()]))
    }

    /// The maximum number of tokens of a text.
    #[doc(hidden)]
    pub fn limit(&self) -> TextLimit {
        self.limit
    }

    /// The model.
    #[doc(hidden)]
    pub fn model(&self) -> &EncoderClassifier {
        &self.model
    }

    /// The names of the labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The tokens of a text without a length limit; empty if the text is blank.
    #[doc(hidden)]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        if text.trim().is_empty() { Vec::new() } else { self.tokenizers.source.encode(text) }
    }

    /// Classifies non-blank texts. The result for a text does not depend on the other texts.
    pub fn classify(&self, texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Vec<Classified>> {
        let tokens: Vec<Vec<u32>> = texts.into_iter().map(|text| self.encode(text.as_ref())).collect();
        self.classify_tokens(&tokens)
    }

    /// As [`Classifier::classify`], for texts from [`Classifier::encode`].
    #[doc(hidden)]
    pub fn classify_tokens(&self, tokens: &[Vec<u32>]) -> Result<Vec<Classified>> {
        let (ids, sequences) = concatenate(tokens.iter().map(Vec::as_slice))?;
        self.model.check_text(&ids, &sequences)?;
        let mut pass = Pass::inference(self.compute()).recording_first_queries();
        let scores = || ops::softmax(&self.model.label_scores(&ids, &sequences, &mut pass)).to_vec();
        let probabilities = self.model.params().device().catch_oom(scores).map_err(DecodeError::from)?;
        if probabilities.iter().any(|probability| !probability.is_finite()) {
            return Err(BrokenModel { sentence: 0 }.into());
        }
        let attention =
            attention_at_tokens(&pass.take_attention()?, &sequences, &self.model.special_tokens());
        let rows = probabilities.chunks_exact(self.labels.count());
        let found = tokens.iter().zip(attention).zip(rows);
        Ok(found
            .map(|((tokens, attention), row)| Classified {
                probabilities: row.to_vec(),
                words: self.words(tokens, &attention),
            })
            .collect())
    }

    /// The probability of every label for one text from [`Classifier::encode`], and the attention that the
    /// pass records.
    #[doc(hidden)]
    pub fn attend_in(&self, pass: &mut Pass, tokens: &[u32]) -> Result<(Vec<f32>, Vec<AttentionMap>)> {
        let sequences = Ragged::from_lengths([tokens.len()]);
        self.model.check_text(tokens, &sequences)?;
        let find = || {
            let scores = self.model.label_scores(tokens, &sequences, pass);
            pass.check_masks()?;
            Ok::<_, MaskFault>(ops::softmax(&scores).to_vec())
        };
        let probabilities = self.model.params().device().catch_oom(find).map_err(DecodeError::from)??;
        if probabilities.iter().any(|probability| !probability.is_finite()) {
            return Err(BrokenModel { sentence: 0 }.into());
        }
        Ok((probabilities, pass.take_attention()?))
    }

    /// The vocabulary of its texts.
    #[doc(hidden)]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizers.source
    }

    /// Groups tokens into words, each with the sum of the attention to its tokens; white space between words
    /// is ignored.
    fn words(&self, tokens: &[u32], attention: &[f32]) -> Vec<Word> {
        let tokenizer = &self.tokenizers.source;
        let pieces: Vec<String> = tokens.iter().map(|&token| tokenizer.token_text(token)).collect();
        let words = group_into_words(&tokenizer.words(tokens), &pieces);
        let weight = |word: &[usize]| word.iter().map(|&token| attention[token]).sum::<f32>();
        let total: f32 = words.iter().map(|word| weight(word)).sum();
        let word = |word: &Vec<usize>| Word {
            text: tokenizer.decode(&word.iter().map(|&i| tokens[i]).collect::<Vec<_>>()).trim().to_owned(),
            attention: if total > 0.0 { weight(word) / total } else { 0.0 },
        };
        words.iter().map(word).collect()
    }
}

/// The tokens of each word. `word_of_token` has the index of each token's white-space separated word,
/// `pieces` the text of each token. In Chinese and Japanese, which are written without spaces, every piece is
/// a word.
fn group_into_words(word_of_token: &[Option<usize>], pieces: &[String]) -> Vec<Vec<usize>> {
    let is_unspaced = |piece: &String| {
        piece
            .chars()
            .any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'))
    };
    let mut words: Vec<Vec<usize>> = Vec::new();
    let mut before: Option<usize> = None;
    for token in (0..pieces.len()).filter(|&token| word_of_token[token].is_some()) {
        let continues = before.is_some_and(|before| {
            word_of_token[before] == word_of_token[token]
                && !is_unspaced(&pieces[before])
                && !is_unspaced(&pieces[token])
        });
        match words.last_mut() {
            Some(word) if continues => word.push(token),
            _ => words.push(vec![token]),
        }
        before = Some(token);
    }
    words
}

impl Classified {
    /// The result for a text that was split: the mean of the parts' probabilities, weighted by their numbers
    /// of tokens, and all words; `None` if there are no parts.
    #[doc(hidden)]
    pub fn mean(parts: impl Iterator<Item = (Classified, usize)>) -> Option<Classified> {
        let parts: Vec<(Classified, usize)> = parts.collect();
        let total: usize = parts.iter().map(|(_, tokens)| tokens).sum();
        if let [_] = parts.as_slice() {
            return parts.into_iter().next().map(|(only, _)| only);
        }
        let share = |tokens: usize| tokens as f32 / total.max(1) as f32;
        let mut mean =
            Classified { probabilities: vec![0.0; parts.first()?.0.probabilities.len()], words: Vec::new() };
        for (part, tokens) in parts {
            for (mean, probability) in mean.probabilities.iter_mut().zip(part.probabilities) {
                *mean += share(tokens) * probability;
            }
            let word = |word: Word| Word { attention: share(tokens) * word.attention, ..word };
            mean.words.extend(part.words.into_iter().map(word));
        }
        Some(mean)
    }

    /// The most probable label; the first in a tie.
    pub fn label(&self) -> u32 {
        let best = self
            .probabilities
            .iter()
            .enumerate()
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(0, |(label, _)| label as u32)
    }

    /// The probability of the most probable label.
    pub fn probability(&self) -> f32 {
        self.probabilities[self.label() as usize]
    }
}

/// The attention to each token of every text: that of the pooling, else that of the prepended token in the
/// last layer, averaged over its heads. Without attention all tokens have equal weights.
fn attention_at_tokens(maps: &[AttentionMap], sequences: &Ragged, special: &SpecialTokens) -> Vec<Vec<f32>> {
    let before = usize::from(special.text_first.is_some());
    let pooling = maps.iter().rfind(|map| map.site.role == AttentionRole::Pooling);
    let encoder_self = maps.iter().rfind(|map| map.site.role == AttentionRole::EncoderSelf);
    let of_text = |(text, length): (usize, usize)| match (pooling, encoder_self) {
        (Some(map), _) => map.mean_over_heads(text)[before..before + length].to_vec(),
        // The first row is that of the prepended token.
        (None, Some(map)) if before == 1 => map.mean_over_heads(text)[1..=length].to_vec(),
        _ => vec![1.0; length],
    };
    sequences.lengths().enumerate().map(of_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::AttentionSite;

    #[test]
    fn words_are_separated_by_spaces_and_scripts_without_spaces_have_one_word_per_piece() {
        let pieces = [" hel", "lo", " ", "你好", "世界", "!", " x"].map(str::to_owned);
        let word_of_token = [Some(0), Some(0), None, Some(1), Some(1), Some(1), Some(2)];
        assert_eq!(
            group_into_words(&word_of_token, &pieces),
            [vec![0, 1], vec![3], vec![4], vec![5], vec![6]]
        );
    }

    #[test]
    fn a_split_text_has_the_weighted_mean_of_the_probabilities_of_its_parts() {
        let part = |probability: f32, word: &str| Classified {
            probabilities: vec![probability, 1.0 - probability],
            words: vec![Word { text: word.to_owned(), attention: 1.0 }],
        };
        let mean =
            Classified::mean([(part(1.0, "a"), 30), (part(0.0, "b"), 10)].into_iter()).expect("two parts");
        assert_eq!(mean.probabilities, [0.75, 0.25]);
        let words: Vec<(&str, f32)> =
            mean.words.iter().map(|word| (word.text.as_str(), word.attention)).collect();
        assert_eq!(words, [("a", 0.75), ("b", 0.25)]);
        assert_eq!(Classified::mean([(part(0.3, "a"), 7)].into_iter()), Some(part(0.3, "a")));
        assert_eq!(Classified::mean([].into_iter()), None);
    }

    #[test]
    fn attention_is_taken_from_the_pooling_or_from_the_prepended_token() {
        let sequences = Ragged::from_lengths([2]);
        let map = |role, queries: usize, keys: usize, weights: Vec<f32>| AttentionMap {
            site: AttentionSite::new("somewhere", 0, role),
            queries: Ragged::from_lengths([queries]),
            keys: Ragged::from_lengths([keys]),
            weights: vec![vec![weights]],
            scores: None,
        };
        let encoder_self =
            map(AttentionRole::EncoderSelf, 3, 3, vec![0.2, 0.5, 0.3, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let first = SpecialTokens { text_first: Some(1), ..SpecialTokens::default() };
        assert_eq!(
            attention_at_tokens(std::slice::from_ref(&encoder_self), &sequences, &first),
            [[0.5, 0.3]]
        );
        let plain = SpecialTokens::default();
        let pooling = map(AttentionRole::Pooling, 1, 2, vec![0.9, 0.1]);
        assert_eq!(attention_at_tokens(&[encoder_self, pooling], &sequences, &plain), [[0.9, 0.1]]);
        assert_eq!(attention_at_tokens(&[], &sequences, &plain), [[1.0, 1.0]]);
    }
}
