//! Evaluation on the test set: phrases that the model was not trained on.

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::metrics::{Bleu, BleuOptions, corpus_bleu};
use heedful::tasks::translate::Translator;
use heedful_grammar::{LengthClass, Phrase};

use super::direction::Direction;

/// The translations of the test set and their BLEU.
pub(super) struct TestResult {
    pub(super) translations: Vec<TestTranslation>,
    pub(super) bleu: Bleu,
}

/// A phrase of the test set, with its translation.
pub(super) struct TestTranslation {
    pub(super) source: String,
    pub(super) reference: String,
    pub(super) output: String,
    pub(super) length: LengthClass,
}

/// Number of translations that are identical to their reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExactMatch {
    pub(super) correct: usize,
    pub(super) total: usize,
}

impl TestResult {
    /// Translates the test set.
    pub(super) fn evaluate(
        translator: &Translator,
        direction: Direction,
        phrases: &[Phrase],
        options: &SearchOptions,
    ) -> Result<TestResult> {
        let pairs: Vec<[&str; 2]> = phrases.iter().map(|phrase| direction.pair(phrase)).collect();
        let sources: Vec<&str> = pairs.iter().map(|[source, _]| *source).collect();
        let references: Vec<String> = pairs.iter().map(|[_, target]| (*target).to_owned()).collect();
        let outputs = translator.translate(&sources, options)?;
        let outputs: Vec<String> = outputs.iter().map(|found| found.best().to_owned()).collect();
        let scoring = BleuOptions { tokenize: direction.tokenize(), ..BleuOptions::default() };
        let bleu = corpus_bleu(&outputs, std::slice::from_ref(&references), &scoring);
        let joined = |(((phrase, source), reference), output): (((&Phrase, &str), String), String)| {
            TestTranslation { source: source.to_owned(), reference, output, length: phrase.length_class() }
        };
        let translations = phrases.iter().zip(sources).zip(references).zip(outputs).map(joined).collect();
        Ok(TestResult { translations, bleu })
    }

    /// Exact match over all phrases.
    pub(super) fn exact_match(&self) -> ExactMatch {
        ExactMatch::count(self.translations.iter())
    }

    /// Exact match for each length class that occurs, from short to long.
    pub(super) fn by_length(&self) -> Vec<(LengthClass, ExactMatch)> {
        let of = |length| {
            ExactMatch::count(self.translations.iter().filter(|translation| translation.length == length))
        };
        let all = LengthClass::ALL.into_iter().map(|length| (length, of(length)));
        all.filter(|(_, found)| found.total > 0).collect()
    }

    /// A few correct translations of every length, then a few mistakes.
    pub(super) fn samples(&self, correct: usize, wrong: usize) -> Vec<&TestTranslation> {
        let lengths = self.by_length();
        let each = correct.div_ceil(lengths.len().max(1));
        let some = lengths.iter().flat_map(|(length, _)| {
            self.translations
                .iter()
                .filter(|translation| translation.is_correct() && translation.length == *length)
                .take(each)
        });
        let mistakes = self.translations.iter().filter(|translation| !translation.is_correct()).take(wrong);
        some.chain(mistakes).collect()
    }
}

impl TestTranslation {
    pub(super) fn is_correct(&self) -> bool {
        self.output == self.reference
    }
}

impl ExactMatch {
    fn count<'a>(translations: impl Iterator<Item = &'a TestTranslation> + Clone) -> ExactMatch {
        ExactMatch {
            correct: translations.clone().filter(|translation| translation.is_correct()).count(),
            total: translations.count(),
        }
    }

    pub(super) fn share(self) -> f64 {
        self.correct as f64 / self.total.max(1) as f64
    }

    /// Rounded down: 999 of 1000 is not 100 %.
    pub(super) fn percent(self) -> String {
        format!("{:.1} %", (1000 * self.correct / self.total.max(1)) as f64 / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(ExactMatch { correct: 9999, total: 10_000 }.percent(), "99.9 %");
        assert_eq!(ExactMatch { correct: 3, total: 3 }.percent(), "100.0 %");
        assert_eq!(ExactMatch { correct: 0, total: 0 }.percent(), "0.0 %");
    }
}
