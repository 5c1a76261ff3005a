//! The translation of a text; the translations of the parts of a long text are joined.

use super::{Output, Translation, Translator};
use crate::data::text_limit::TextPart;
use crate::decode::{Constraints, DecodeError, SearchOptions};

/// A translated text, in one or more parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranslatedText {
    /// One part unless the text was split; empty for blank text.
    pub parts: Vec<TranslatedPart>,
}

/// A part of a text, with its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct TranslatedPart {
    /// The source part with its tokens.
    pub part: TextPart,
    /// The constraints on its outputs.
    pub constraints: Constraints,
    /// The outputs, best first.
    pub outputs: Vec<Output>,
}

/// One output for a text, joined from its parts.
pub struct JoinedOutput<'a> {
    /// The joined texts, separated by spaces unless the script has no spaces.
    pub text: String,
    /// The log-probability divided by the length penalty for the total number of tokens.
    pub score: f64,
    /// The sum of the parts' log-probabilities.
    pub log_probability: f64,
    /// The parts and their outputs.
    pub parts: Vec<(&'a TextPart, &'a Output)>,
}

impl TranslatedText {
    /// The translation, if the text was not split; `None` for blank text.
    pub fn whole(&self) -> Option<Translation> {
        let [TranslatedPart { part, outputs, .. }] = self.parts.as_slice() else { return None };
        Some(Translation { source: part.tokens.clone(), outputs: outputs.clone() })
    }

    /// The outputs, best first. Output n joins output n of every part, or the last output of parts with
    /// fewer.
    #[doc(hidden)]
    pub fn outputs(&self, options: &SearchOptions) -> Vec<JoinedOutput<'_>> {
        let count = self.parts.iter().map(|part| part.outputs.len()).max().unwrap_or(0);
        (0..count).map(|rank| self.output(rank, options)).collect()
    }

    /// The text of the best output; the empty text for blank text.
    pub fn best(&self) -> String {
        let best = self.parts.iter().filter_map(|part| part.outputs.first());
        best.fold(String::new(), |text, output| join(text, &output.text))
    }

    fn output(&self, rank: usize, options: &SearchOptions) -> JoinedOutput<'_> {
        let parts: Vec<(&TextPart, &Output)> = self
            .parts
            .iter()
            .filter_map(|part| Some((&part.part, part.outputs.get(rank).or(part.outputs.last())?)))
            .collect();
        let text = parts.iter().fold(String::new(), |text, (_, output)| join(text, &output.text));
        let log_probability = parts.iter().map(|(_, output)| output.hypothesis.log_probability).sum();
        let score = match parts.as_slice() {
            [(_, only)] => only.hypothesis.score,
            // As if all tokens belonged to one hypothesis.
            _ => {
                let tokens = parts.iter().map(|(_, output)| output.hypothesis.tokens.len() + 1).sum();
                log_probability / options.penalty(tokens)
            }
        };
        JoinedOutput { text, score, log_probability, parts }
    }
}

impl JoinedOutput<'_> {
    /// The word alignment; words are numbered over the whole text.
    #[doc(hidden)]
    pub fn align(
        &self,
        translator: &Translator,
        options: &SearchOptions,
    ) -> Result<Vec<(usize, usize)>, DecodeError> {
        let (mut links, mut words, mut text) = (Vec::new(), 0, String::new());
        for (part, output) in &self.parts {
            let (source, target) = (&part.tokens, &output.hypothesis.tokens);
            let maps = translator.attend_to_source(source, target, options)?;
            // A word continued from the part before was already counted.
            let first = if part.begins_word { words } else { words - usize::from(words > 0) };
            let joined = join(text.clone(), &output.text);
            let is_continued = !text.is_empty() && joined.len() == text.len() + output.text.len();
            let target_first = text.split_whitespace().count() - usize::from(is_continued);
            links.extend(
                translator
                    .align(&maps, source, target)
                    .into_iter()
                    .map(|(source, target)| (first + source, target_first + target)),
            );
            let in_part = translator.tokenizers().source.words(source).into_iter().flatten().max();
            words = first + in_part.map_or(0, |last| last + 1);
            text = joined;
        }
        Ok(links)
    }
}

/// Joins two texts with a space, unless their script has no spaces.
fn join(text: String, more: &str) -> String {
    let is_unspaced = |c: Option<char>| {
        c.is_some_and(|c| {
            matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
        })
    };
    let needs_space = !text.is_empty()
        && !more.is_empty()
        && !is_unspaced(text.chars().next_back())
        && !is_unspaced(more.chars().next());
    text + if needs_space { " " } else { "" } + more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Hypothesis;

    fn output(text: &str, log_probability: f64) -> Output {
        let hypothesis = Hypothesis { tokens: vec![9; 3], score: log_probability / 2.0, log_probability };
        Output { text: text.to_owned(), hypothesis }
    }

    #[test]
    fn parts_are_joined_rank_by_rank() {
        let part = |outputs: Vec<Output>| TranslatedPart {
            part: TextPart { tokens: vec![7], begins_word: true },
            constraints: Constraints::default(),
            outputs,
        };
        let (first, second) =
            (vec![output("A dog", -4.0)], [output("sleeps.", -1.0), output("rests.", -2.0)]);
        let text = TranslatedText { parts: vec![part(first.clone()), part(second.to_vec())] };
        assert!(text.whole().is_none());
        let options = SearchOptions { length_penalty: 0.0, ..SearchOptions::default() };
        let found: Vec<(String, f64, f64)> = text
            .outputs(&options)
            .into_iter()
            .map(|output| (output.text, output.score, output.log_probability))
            .collect();
        assert_eq!(
            found,
            [("A dog sleeps.".to_owned(), -5.0, -5.0), ("A dog rests.".to_owned(), -6.0, -6.0)]
        );
        let text = TranslatedText { parts: vec![part(first)] };
        assert_eq!(text.outputs(&options)[0].score, -2.0);
        assert!(text.whole().is_some() && TranslatedText::default().outputs(&options).is_empty());
    }

    #[test]
    fn parts_are_joined_by_spaces_except_in_scripts_without_spaces() {
        assert_eq!(join("one".to_owned(), "two"), "one two");
        assert_eq!(join("你好。".to_owned(), "再见"), "你好。再见");
        assert_eq!(
            (join(String::new(), "two"), join("one".to_owned(), "")),
            ("two".to_owned(), "one".to_owned())
        );
    }
}
