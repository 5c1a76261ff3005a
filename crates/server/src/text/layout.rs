//! A text as sentences and what stands between them: `gap 0, sentence 0, gap 1, …, sentence n − 1, gap n`.
//!
//! Gaps are white space, or tags and white space, and come out as they went in.

use super::html::{self, Piece};
use super::sentences::sentences;

/// The sentences of a text and what stands between them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) sentences: Vec<String>,
    /// One more than sentences.
    gaps: Vec<String>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Html,
}

impl Layout {
    /// Of plain text.
    pub(crate) fn plain(text: &str) -> Layout {
        let mut layout = Layout { sentences: Vec::new(), gaps: vec![String::new()], form: Form::Plain };
        layout.add(text);
        layout
    }

    /// Of a page or a piece of one.
    pub(crate) fn html(text: &str) -> Layout {
        let mut layout = Layout { sentences: Vec::new(), gaps: vec![String::new()], form: Form::Html };
        for piece in html::pieces(text) {
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
            self.sentences.push(match self.form {
                Form::Plain => sentence.to_owned(),
                Form::Html => html::decode(sentence),
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

    /// What stands before the sentence at `at` when all have become `outputs`. Where the source needed no space and
    /// the outputs do, as from Chinese to English, there is one.
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

    /// What stands after the last sentence; all of the text if there is none.
    pub(crate) fn after(&self) -> &str {
        self.gaps.last().map_or("", String::as_str)
    }

    /// The text with these in place of its sentences.
    pub(crate) fn join(&self, outputs: &[&str]) -> String {
        let mut text = String::new();
        for (at, output) in outputs.iter().enumerate() {
            text.push_str(self.before(at, outputs));
            match self.form {
                Form::Plain => text.push_str(output),
                Form::Html => text.push_str(&html::encode(output)),
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
            assert_eq!(same(&Layout::plain(text)), text);
        }
        let page = "<p>One. <b>Two</b> &amp; three.</p>\n<script>var a = '<p>x</p>';</script>\n";
        assert_eq!(same(&Layout::html(page)), page);
    }

    #[test]
    fn a_space_is_added_where_only_the_target_needs_it() {
        let layout = Layout::plain("你好。再见。\n好。");
        assert_eq!(layout.join(&["Hello.", "Bye.", "Good."]), "Hello. Bye.\nGood.");
        assert_eq!(layout.join(&["你好。", "再见。", "好。"]), "你好。再见。\n好。");
    }

    #[test]
    fn what_a_model_says_never_becomes_markup() {
        let layout = Layout::html("<p title=\"a\">Hi &lt;you&gt;</p>");
        assert_eq!(layout.sentences, ["Hi <you>"]);
        assert_eq!(layout.join(&["<script>x</script>"]), "<p title=\"a\">&lt;script&gt;x&lt;/script&gt;</p>");
    }
}
