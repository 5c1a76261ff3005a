//! A text as sentences and the gaps between them: `gap 0, sentence 0, gap 1, …, sentence n − 1, gap n`.
//!
//! Gaps are white space, or tags and white space, and come out as they went in.

use serde::Deserialize;
use utoipa::ToSchema;

use super::html::{self, Piece};
use super::sentences::sentences;

/// The format of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Plain text.
    #[default]
    Text,
    /// A page or a fragment of one: tags, comments, scripts and styles stay as they are.
    Html,
}

/// The sentences of a text and the gaps between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) sentences: Vec<String>,
    /// One more than sentences.
    gaps: Vec<String>,
    format: Format,
}

impl Layout {
    pub(crate) fn new(text: &str, format: Format) -> Layout {
        let mut layout = Layout { sentences: Vec::new(), gaps: vec![String::new()], format };
        let pieces = match format {
            Format::Text => vec![Piece::Text(text)],
            Format::Html => html::pieces(text),
        };
        for piece in pieces {
            match piece {
                Piece::Markup(markup) => layout.keep(markup),
                Piece::Text(text) => layout.add(text),
            }
        }
        layout
    }

    fn add(&mut self, text: &str) {
        let mut from = 0;
        for range in sentences(text) {
            self.keep(&text[from..range.start]);
            let sentence = &text[range.clone()];
            self.sentences.push(match self.format {
                Format::Text => sentence.to_owned(),
                Format::Html => html::decode(sentence),
            });
            self.gaps.push(String::new());
            from = range.end;
        }
        self.keep(&text[from..]);
    }

    fn keep(&mut self, gap: &str) {
        if let Some(last) = self.gaps.last_mut() {
            last.push_str(gap);
        }
    }

    /// The gap before the sentence at `at` when all are replaced by `outputs`. Where the source needs no space and the
    /// outputs do, as from Chinese to English, it is one.
    pub(crate) fn before(&self, at: usize, outputs: &[&str]) -> &str {
        let gap = &self.gaps[at];
        if !gap.is_empty() || at == 0 {
            return gap;
        }
        let (before, after) = (outputs[at - 1].chars().next_back(), outputs[at].chars().next());
        match (before, after) {
            (Some(before), Some(after))
                if !is_unspaced(before)
                    && !is_unspaced(after)
                    && !before.is_whitespace()
                    && !after.is_whitespace() =>
            {
                " "
            }
            _ => "",
        }
    }

    /// The gap after the last sentence; all of the text if there is no sentence.
    pub(crate) fn after(&self) -> &str {
        self.gaps.last().map_or("", String::as_str)
    }

    /// The text with `outputs` in place of its sentences.
    pub(crate) fn join(&self, outputs: &[&str]) -> String {
        let mut text = String::new();
        for (at, output) in outputs.iter().enumerate() {
            text.push_str(self.before(at, outputs));
            match self.format {
                Format::Text => text.push_str(output),
                Format::Html => text.push_str(&html::encode(output)),
            }
        }
        text + self.after()
    }
}

/// Whether a character belongs to a script, or is punctuation of one, that puts no spaces between sentences.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(layout: &Layout) -> String {
        layout.join(&layout.sentences.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn unchanged_sentences_give_the_text_back_byte_for_byte() {
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
        assert_eq!(layout.join(&["Hello.", "Bye.", "Good."]), "Hello. Bye.\nGood.");
        assert_eq!(layout.join(&["你好。", "再见。", "好。"]), "你好。再见。\n好。");
    }

    #[test]
    fn generated_text_never_becomes_markup() {
        let layout = Layout::new("<p title=\"a\">Hi &lt;you&gt;</p>", Format::Html);
        assert_eq!(layout.sentences, ["Hi <you>"]);
        assert_eq!(layout.join(&["<script>x</script>"]), "<p title=\"a\">&lt;script&gt;x&lt;/script&gt;</p>");
    }
}
