//! Multi-line text: many lines as one list of tokens, line ends included.
//!
//! Every line is encoded separately, so that its first word is the same piece as in the middle of a line;
//! decoding removes the space that this adds after every line end. Foreign vocabularies encode the whole text
//! at once, as their models expect; most have no token for line ends.

use super::{CachingTokenizer, Origin, Tokenizer};

const LINE_END: &str = "\n";

impl Tokenizer {
    /// The ids of a text that may have several lines.
    pub(crate) fn encode_multiline(&self, text: &str) -> Vec<u32> {
        let native = match &self.origin {
            Origin::Native(native) => native,
            Origin::Foreign(foreign) => return foreign.encode(text),
        };
        let mut ids = Vec::new();
        for (index, line) in text.split(LINE_END).enumerate() {
            if index > 0 {
                native.encode_word(LINE_END, &mut ids);
            }
            ids.extend(native.encode(line));
        }
        ids
    }

    /// The text of ids from [`Tokenizer::encode_multiline`], or from a model that was trained on such ids.
    pub(crate) fn decode_multiline(&self, ids: &[u32]) -> String {
        match &self.origin {
            Origin::Native(native) => {
                let text = native.text(ids);
                let lines =
                    text.split(LINE_END).map(|line| native.rules.without_first_space(line.to_owned()));
                lines.collect::<Vec<_>>().join(LINE_END)
            }
            Origin::Foreign(foreign) => foreign.decode(ids),
        }
    }

    /// The ids of a text that continues other text: no space is inserted before it.
    pub fn encode_continuation(&self, text: &str) -> Vec<u32> {
        let native = match &self.origin {
            Origin::Native(native) => native,
            Origin::Foreign(foreign) => return foreign.encode_continuation(text),
        };
        let mut ids = Vec::new();
        let normalized = native.rules.normalize(text);
        native.encode_prepared(&normalized, &mut ids);
        ids
    }

    /// The text of one token; incomplete UTF-8 becomes U+FFFD.
    pub fn token_text(&self, id: u32) -> String {
        String::from_utf8_lossy(self.pieces().bytes(id)).into_owned()
    }
}

impl CachingTokenizer<'_> {
    /// The ids of a line of multi-line text, including its line end.
    pub(crate) fn encode_line(&mut self, line: &str) -> Vec<u32> {
        match &self.tokenizer().origin {
            Origin::Native(native) => {
                let mut ids = self.encode(line);
                native.encode_word(LINE_END, &mut ids);
                ids
            }
            Origin::Foreign(foreign) => foreign.encode_line(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::WordCounts;
    use super::super::train::{VocabularyKind, VocabularyOptions};
    use super::*;

    fn tokenizer(kind: VocabularyKind) -> Tokenizer {
        let options = VocabularyOptions { kind, size: 400, ..VocabularyOptions::default() };
        let mut counts = WordCounts::new(&options);
        for line in ["First Citizen:", "Before we proceed, hear me.", "我们 走", "before before first"] {
            counts.add(line);
        }
        counts.train().expect("enough text")
    }

    #[test]
    fn multiline_text_round_trips_with_spaces_and_line_ends() {
        for kind in
            [VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Word, VocabularyKind::Character]
        {
            let tokenizer = tokenizer(kind);
            for text in
                ["", "\n", "First Citizen:\nBefore we\n\n  proceed \n我们\n 走\n", "x\r\ny", "🙂\n<mask>"]
            {
                let ids = tokenizer.encode_multiline(text);
                assert_eq!(tokenizer.decode_multiline(&ids), text, "{kind:?}");
            }
            let mut encoder = CachingTokenizer::new(&tokenizer);
            let lines = [encoder.encode_line("First Citizen:"), encoder.encode_line("Before")].concat();
            assert_eq!(lines, tokenizer.encode_multiline("First Citizen:\nBefore\n"));
        }
    }

    #[test]
    fn a_continuation_gets_no_space() {
        let tokenizer = tokenizer(VocabularyKind::Bpe);
        let ids = [tokenizer.encode("First"), tokenizer.encode_continuation(" Citizen: me")].concat();
        assert_eq!(ids, tokenizer.encode("First Citizen: me"));
        assert_eq!(tokenizer.decode(&ids), "First Citizen: me");
    }
}
