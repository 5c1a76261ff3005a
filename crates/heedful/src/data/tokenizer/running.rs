//! Running text: many lines as one list of tokens, line ends included.
//!
//! Every line is encoded as if it were alone, so that its first word is the same piece as in the middle of a line;
//! decoding removes the space that this adds after every line end.

use super::{CachingTokenizer, Tokenizer};

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

    /// The text of ids from [`Tokenizer::encode_running`], or from a model that was trained on such ids.
    pub fn decode_running(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.pieces.bytes(id)).copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split(LINE_END).map(|line| self.rules.without_first_space(line.to_owned()));
        lines.collect::<Vec<_>>().join(LINE_END)
    }

    /// The ids of a text that continues other text: no space is put before it.
    pub fn encode_continuation(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let normalized = self.rules.normalize(text);
        for word in self.rules.words(&normalized) {
            self.encode_word(word, &mut ids);
        }
        ids
    }

    /// The text that one token adds; bytes that are not text by themselves become U+FFFD.
    pub fn text_of(&self, id: u32) -> String {
        String::from_utf8_lossy(self.pieces.bytes(id)).into_owned()
    }
}

impl CachingTokenizer<'_> {
    /// The ids of a line of running text, including its line end.
    pub(crate) fn encode_line(&mut self, line: &str) -> Vec<u32> {
        let mut ids = self.encode(line);
        self.tokenizer().encode_word(LINE_END, &mut ids);
        ids
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
    fn lines_come_back_with_their_spaces_and_ends() {
        for kind in
            [VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Word, VocabularyKind::Character]
        {
            let tokenizer = tokenizer(kind);
            for text in
                ["", "\n", "First Citizen:\nBefore we\n\n  proceed \n我们\n 走\n", "x\r\ny", "🙂\n<mask>"]
            {
                let ids = tokenizer.encode_running(text);
                assert_eq!(tokenizer.decode_running(&ids), text, "{kind:?}");
            }
            let mut encoder = CachingTokenizer::new(&tokenizer);
            let lines = [encoder.encode_line("First Citizen:"), encoder.encode_line("Before")].concat();
            assert_eq!(lines, tokenizer.encode_running("First Citizen:\nBefore\n"));
        }
    }

    #[test]
    fn text_inside_gets_no_space() {
        let tokenizer = tokenizer(VocabularyKind::Bpe);
        let ids = [tokenizer.encode("First"), tokenizer.encode_continuation(" Citizen: me")].concat();
        assert_eq!(ids, tokenizer.encode("First Citizen: me"));
        assert_eq!(tokenizer.decode(&ids), "First Citizen: me");
    }
}
