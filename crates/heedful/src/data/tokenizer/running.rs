//! Running text: many lines as one list of tokens, line ends included.
//!
//! Every line is encoded as it would be alone, so that its first word is the same piece as in the middle of a line; the
//! space that this takes is taken away again behind every line end.

use super::{Encoder, Tokenizer};

const LINE_END: &str = "\n";

impl Tokenizer {
    /// The ids of a text that may have several lines.
    pub fn encode_running(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        for (index, line) in text.split(LINE_END).enumerate() {
            if index > 0 {
                self.encode_word(LINE_END, &mut ids);
            }
            ids.extend(self.encode(line));
        }
        ids
    }

    /// The text of what [`Tokenizer::encode_running`] made, or of what a model says in its manner.
    pub fn decode_running(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.pieces.bytes(id)).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split(LINE_END).map(|line| self.rules.without_first_space(line.to_owned()));
        lines.collect::<Vec<_>>().join(LINE_END)
    }

    /// The ids of a text that stands behind other text: no space is put before it.
    pub fn encode_inside(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let normalized = self.rules.normalize(text);
        for word in self.rules.words(&normalized) {
            self.encode_word(word, &mut ids);
        }
        ids
    }

    /// What one token adds to a text, as far as it is text by itself.
    pub fn text_of(&self, id: u32) -> String {
        String::from_utf8_lossy(self.pieces.bytes(id)).into_owned()
    }
}

impl Encoder<'_> {
    /// A line of running text with its end.
    pub(crate) fn encode_line(&mut self, line: &str) -> Vec<u32> {
        let mut ids = self.encode(line);
        self.tokenizer().encode_word(LINE_END, &mut ids);
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::super::WordCounts;
    use super::super::train::{Kind, VocabularyOptions};
    use super::*;

    fn tokenizer(kind: Kind) -> Tokenizer {
        let options = VocabularyOptions { kind, size: 400, ..VocabularyOptions::default() };
        let mut counts = WordCounts::new(&options);
        for line in ["First Citizen:", "Before we proceed, hear me.", "我们 走", "before before first"] {
            counts.add(line);
        }
        counts.train().expect("enough text")
    }

    #[test]
    fn lines_come_back_with_their_spaces_and_ends() {
        for kind in [Kind::Bpe, Kind::Unigram, Kind::Word, Kind::Character] {
            let tokenizer = tokenizer(kind);
            for text in
                ["", "\n", "First Citizen:\nBefore we\n\n  proceed \n我们\n 走\n", "x\r\ny", "🙂\n<mask>"]
            {
                let ids = tokenizer.encode_running(text);
                assert_eq!(tokenizer.decode_running(&ids), text, "{kind:?}");
            }
            let mut encoder = Encoder::new(&tokenizer);
            let lines = [encoder.encode_line("First Citizen:"), encoder.encode_line("Before")].concat();
            assert_eq!(lines, tokenizer.encode_running("First Citizen:\nBefore\n"));
        }
    }

    #[test]
    fn text_inside_gets_no_space() {
        let tokenizer = tokenizer(Kind::Bpe);
        let ids = [tokenizer.encode("First"), tokenizer.encode_inside(" Citizen: me")].concat();
        assert_eq!(ids, tokenizer.encode("First Citizen: me"));
        assert_eq!(tokenizer.decode(&ids), "First Citizen: me");
    }
}
