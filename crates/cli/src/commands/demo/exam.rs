//! The exam: phrases that were never trained on, translated and counted.

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::metrics::{Bleu, BleuOptions, corpus_bleu};
use heedful::tasks::translate::Translator;
use heedful_grammar::{LengthClass, Phrase};

use super::direction::Direction;

/// What came out.
pub(super) struct Exam {
    pub(super) answers: Vec<Answer>,
    pub(super) bleu: Bleu,
}

/// One phrase of the exam.
pub(super) struct Answer {
    pub(super) source: String,
    pub(super) reference: String,
    pub(super) output: String,
    pub(super) length: LengthClass,
}

/// How many of how many are right, to the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExactMatch {
    pub(super) right: usize,
    pub(super) asked: usize,
}

impl Exam {
    /// Lets the translator sit it.
    pub(super) fn sit(
        translator: &Translator,
        direction: Direction,
        phrases: &[Phrase],
        options: &SearchOptions,
    ) -> Result<Exam> {
        let pairs: Vec<[&str; 2]> = phrases.iter().map(|phrase| direction.pair(phrase)).collect();
        let sources: Vec<&str> = pairs.iter().map(|[source, _]| *source).collect();
        let references: Vec<String> = pairs.iter().map(|[_, target]| (*target).to_owned()).collect();
        let outputs = translator.translate(&sources, options)?;
        let outputs: Vec<String> = outputs.iter().map(|found| found.best().to_owned()).collect();
        let scoring = BleuOptions { tokenize: direction.tokenize(), ..BleuOptions::default() };
        let bleu = corpus_bleu(&outputs, std::slice::from_ref(&references), &scoring);
        let answer = |(((phrase, source), reference), output): (((&Phrase, &str), String), String)| Answer {
            source: source.to_owned(),
            reference,
            output,
            length: phrase.length_class(),
        };
        let answers = phrases.iter().zip(sources).zip(references).zip(outputs).map(answer).collect();
        Ok(Exam { answers, bleu })
    }

    /// Over all phrases.
    pub(super) fn exact_match(&self) -> ExactMatch {
        ExactMatch::count(self.answers.iter())
    }

    /// For each length that occurs, from short to long.
    pub(super) fn by_length(&self) -> Vec<(LengthClass, ExactMatch)> {
        let of = |length| ExactMatch::count(self.answers.iter().filter(|answer| answer.length == length));
        let all = LengthClass::ALL.into_iter().map(|length| (length, of(length)));
        all.filter(|(_, found)| found.asked > 0).collect()
    }

    /// A few answers of every length, and then a few mistakes.
    pub(super) fn samples(&self, right: usize, wrong: usize) -> Vec<&Answer> {
        let lengths = self.by_length();
        let each = right.div_ceil(lengths.len().max(1));
        let some = lengths.iter().flat_map(|(length, _)| {
            self.answers.iter().filter(|answer| answer.is_right() && answer.length == *length).take(each)
        });
        let mistakes = self.answers.iter().filter(|answer| !answer.is_right()).take(wrong);
        some.chain(mistakes).collect()
    }
}

impl Answer {
    pub(super) fn is_right(&self) -> bool {
        self.output == self.reference
    }
}

impl ExactMatch {
    fn count<'a>(answers: impl Iterator<Item = &'a Answer> + Clone) -> ExactMatch {
        ExactMatch {
            right: answers.clone().filter(|answer| answer.is_right()).count(),
            asked: answers.count(),
        }
    }

    pub(super) fn share(self) -> f64 {
        self.right as f64 / self.asked.max(1) as f64
    }

    /// Rounded down: 999 of 1000 is not 100 %.
    pub(super) fn percent(self) -> String {
        format!("{:.1} %", (1000 * self.right / self.asked.max(1)) as f64 / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!(ExactMatch { right: 9999, asked: 10_000 }.percent(), "99.9 %");
        assert_eq!(ExactMatch { right: 3, asked: 3 }.percent(), "100.0 %");
        assert_eq!(ExactMatch { right: 0, asked: 0 }.percent(), "0.0 %");
    }
}
