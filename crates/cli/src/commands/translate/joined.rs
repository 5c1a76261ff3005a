//! The translations of a line: of a long one, those of its parts joined.

use anyhow::Result;
use heedful::data::text_limit::Part;
use heedful::decode::SearchOptions;
use heedful::tasks::translate::{Output, Translation, Translator};

/// A line whose parts are being translated.
pub(super) struct OpenLine {
    parts: Vec<Part>,
    found: Vec<Option<Vec<Output>>>,
}

/// A line that is translated.
#[derive(Default)]
pub(super) struct TranslatedLine {
    /// Its parts with their outputs, one unless it was split; none if it is blank.
    parts: Vec<(Part, Vec<Output>)>,
}

/// One output for a line.
pub(super) struct LineOutput<'a> {
    pub(super) text: String,
    pub(super) score: f64,
    pub(super) log_probability: f64,
    parts: Vec<(&'a Part, &'a Output)>,
}

impl OpenLine {
    pub(super) fn new(parts: Vec<Part>) -> OpenLine {
        let found = vec![None; parts.len()];
        OpenLine { parts, found }
    }

    /// Adds the outputs of a part; the line when it was the last one that was missing.
    pub(super) fn add(&mut self, part: usize, outputs: Vec<Output>) -> Option<TranslatedLine> {
        self.found[part] = Some(outputs);
        if self.found.iter().any(Option::is_none) {
            return None;
        }
        let found = self.found.drain(..).flatten();
        Some(TranslatedLine { parts: self.parts.drain(..).zip(found).collect() })
    }
}

impl TranslatedLine {
    /// The line as one translation, if it was not split; none if it is blank.
    pub(super) fn whole(&self) -> Option<Translation> {
        let [(part, outputs)] = self.parts.as_slice() else { return None };
        Some(Translation { source: part.tokens.clone(), outputs: outputs.clone() })
    }

    /// The outputs, best first: number n is made of number n of every part, or of its last if it has fewer.
    pub(super) fn outputs(&self, options: &SearchOptions) -> Vec<LineOutput<'_>> {
        let count = self.parts.iter().map(|(_, outputs)| outputs.len()).max().unwrap_or(0);
        (0..count).map(|rank| self.output(rank, options)).collect()
    }

    fn output(&self, rank: usize, options: &SearchOptions) -> LineOutput<'_> {
        let parts: Vec<(&Part, &Output)> = self
            .parts
            .iter()
            .filter_map(|(part, outputs)| Some((part, outputs.get(rank).or(outputs.last())?)))
            .collect();
        let text = parts.iter().fold(String::new(), |text, (_, output)| join(text, &output.text));
        let log_probability = parts.iter().map(|(_, output)| output.hypothesis.log_probability).sum();
        let score = match parts.as_slice() {
            [(_, only)] => only.hypothesis.score,
            // As if all tokens were those of one hypothesis.
            _ => {
                let tokens = parts.iter().map(|(_, output)| output.hypothesis.tokens.len() + 1).sum();
                log_probability / options.penalty(tokens)
            }
        };
        LineOutput { text, score, log_probability, parts }
    }
}

impl LineOutput<'_> {
    /// The word alignment; words count over the whole line.
    pub(super) fn align(
        &self,
        translator: &Translator,
        options: &SearchOptions,
    ) -> Result<Vec<(usize, usize)>> {
        let (mut links, mut words, mut text) = (Vec::new(), 0, String::new());
        for (part, output) in &self.parts {
            let (source, target) = (&part.tokens, &output.hypothesis.tokens);
            let maps = translator.attend_to_source(source, target, options)?;
            // Where a part continues a word, that word was counted before.
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

/// Two texts as one, with a space between them unless their script has none.
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
    use heedful::decode::Hypothesis;

    fn output(text: &str, log_probability: f64) -> Output {
        let hypothesis = Hypothesis { tokens: vec![9; 3], score: log_probability / 2.0, log_probability };
        Output { text: text.to_owned(), hypothesis }
    }

    #[test]
    fn parts_are_joined_rank_by_rank_and_in_any_order_of_arrival() {
        let part = |begins_word| Part { tokens: vec![7], begins_word };
        let mut line = OpenLine::new(vec![part(true), part(true)]);
        assert!(line.add(1, vec![output("sleeps.", -1.0), output("rests.", -2.0)]).is_none());
        let line = line.add(0, vec![output("A dog", -4.0)]).expect("all parts");
        assert!(line.whole().is_none());
        let options = SearchOptions { length_penalty: 0.0, ..SearchOptions::default() };
        let found: Vec<(String, f64, f64)> = line
            .outputs(&options)
            .into_iter()
            .map(|output| (output.text, output.score, output.log_probability))
            .collect();
        assert_eq!(
            found,
            [("A dog sleeps.".to_owned(), -5.0, -5.0), ("A dog rests.".to_owned(), -6.0, -6.0)]
        );
        let line =
            OpenLine::new(vec![part(true)]).add(0, vec![output("A dog", -4.0)]).expect("its only part");
        assert_eq!(line.outputs(&options)[0].score, -2.0);
        assert!(line.whole().is_some() && TranslatedLine::default().outputs(&options).is_empty());
    }

    #[test]
    fn a_space_comes_between_parts_of_scripts_that_have_spaces() {
        assert_eq!(join("one".to_owned(), "two"), "one two");
        assert_eq!(join("你好。".to_owned(), "再见"), "你好。再见");
        assert_eq!(
            (join(String::new(), "two"), join("one".to_owned(), "")),
            ("two".to_owned(), "one".to_owned())
        );
    }
}
