//! A text as sentences and the gaps between them: `gap 0, sentence 0, gap 1, …, sentence n − 1, gap n`.
//!
//! Gaps are white space, or tags and white space, and are kept unchanged.

use heedful::data::sentences::{Gap, split};
use serde::Deserialize;
use utoipa::ToSchema;

use super::html::{self, InlineTags};
use super::words::WordLinks;

/// The format of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Plain text.
    #[default]
    Text,
    /// An HTML page or fragment: tags, comments, scripts, styles and elements with translate="no" stay
    /// unchanged.
    Html,
}

/// The sentences of a text and the gaps between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) sentences: Vec<String>,
    /// The inline tags of each sentence; empty for plain text.
    tags: Vec<InlineTags>,
    /// One more than sentences.
    gaps: Vec<Gap>,
    format: Format,
}

impl Layout {
    pub(crate) fn new(text: &str, format: Format) -> Layout {
        match format {
            Format::Text => Layout::of_text(text),
            Format::Html => Layout::of_html(text),
        }
    }

    fn of_text(text: &str) -> Layout {
        let (sentences, gaps) = split(text);
        let tags = vec![InlineTags::default(); sentences.len()];
        Layout { sentences, tags, gaps, format: Format::Text }
    }

    fn of_html(text: &str) -> Layout {
        let (found, gaps) = html::paragraphs(text);
        let (sentences, tags) = found.into_iter().map(|sentence| (sentence.text, sentence.tags)).unzip();
        Layout { sentences, tags, gaps, format: Format::Html }
    }

    /// For each sentence, whether it has inline tags, which are placed by its alignment.
    pub(crate) fn has_tags(&self) -> impl Iterator<Item = bool> {
        self.tags.iter().map(|tags| !tags.is_empty())
    }

    /// The gap before the sentence at `at` of a plain text when all sentences are replaced by `outputs`. A
    /// space where only the outputs need one, as from Chinese to English.
    pub(crate) fn before(&self, at: usize, outputs: &[&str]) -> &str {
        if self.space_at(at, outputs) == Some(0) { " " } else { &self.gaps[at].text }
    }

    /// The position in a gap of a space that only the outputs need.
    fn space_at(&self, at: usize, outputs: &[&str]) -> Option<usize> {
        let before = at.checked_sub(1).map(|at| outputs[at]);
        self.gaps[at].space(before, outputs[at])
    }

    /// The gap after the last sentence; the whole text if it has no sentence.
    pub(crate) fn after(&self) -> &str {
        self.gaps.last().map_or("", |gap| &gap.text)
    }

    /// The text with its sentences replaced by `outputs`, and its inline tags placed around the linked words
    /// by `links`, one for each output. Without links, tags are placed by word order.
    pub(crate) fn join(&self, outputs: &[&str], links: &[Option<WordLinks>]) -> String {
        let mut text = String::new();
        for (at, output) in outputs.iter().enumerate() {
            let gap = &self.gaps[at].text;
            let (left, right) = gap.split_at(self.space_at(at, outputs).unwrap_or(gap.len()));
            text.push_str(left);
            if self.space_at(at, outputs).is_some() {
                text.push(' ');
            }
            text.push_str(right);
            match self.format {
                Format::Text => text.push_str(output),
                Format::Html => {
                    let (source, tags) = (&self.sentences[at], &self.tags[at]);
                    let given = links.get(at).cloned().flatten();
                    let links = given.unwrap_or_else(|| WordLinks::in_order(source, output));
                    text.push_str(&html::render(source, tags, output, &links));
                }
            }
        }
        text + self.after()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(layout: &Layout) -> String {
        layout.join(&layout.sentences.iter().map(String::as_str).collect::<Vec<_>>(), &[])
    }

    #[test]
    fn unchanged_sentences_reproduce_the_text_byte_for_byte() {
        for text in [
            "",
            "  ",
            "One.  Two.\r\n\r\n\tThree\n",
            "你好。再见。",
            " \u{a0}x.\u{2003}y. ",
            "\n\na\n\n\nb\n",
        ] {
            assert_eq!(same(&Layout::new(text, Format::Text)), text);
        }
        let page = "<p>One. <b>Two</b> &amp; three.</p>\n<script>var a = '<p>x</p>';</script>\n";
        assert_eq!(same(&Layout::new(page, Format::Html)), page);
    }

    #[test]
    fn a_space_is_added_where_only_the_target_needs_it() {
        let layout = Layout::new("你好。再见。\n好。", Format::Text);
        assert_eq!(layout.join(&["Hello.", "Bye.", "Good."], &[]), "Hello. Bye.\nGood.");
        assert_eq!(layout.join(&["你好。", "再见。", "好。"], &[]), "你好。再见。\n好。");
    }

    #[test]
    fn no_space_is_added_where_the_script_of_the_source_has_spaces() {
        let word = "x".repeat(700);
        for text in ["dog!s run!", "Wait!No.", word.as_str()] {
            for format in [Format::Text, Format::Html] {
                let layout = Layout::new(text, format);
                assert_eq!(layout.sentences.len(), 2, "{text}");
                assert_eq!(same(&layout), text);
            }
        }
    }

    #[test]
    fn generated_text_never_becomes_markup() {
        let layout = Layout::new("<p title=\"a\">Hi &lt;you&gt;</p>", Format::Html);
        assert_eq!(layout.sentences, ["Hi <you>"]);
        assert_eq!(
            layout.join(&["<script>x</script>"], &[]),
            "<p title=\"a\">&lt;script&gt;x&lt;/script&gt;</p>"
        );
    }
}
