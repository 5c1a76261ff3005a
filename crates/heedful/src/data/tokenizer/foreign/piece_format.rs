//! The piece formats of foreign vocabularies: how the name of a token represents bytes of text.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// SentencePiece's character for a space.
pub(in crate::data::tokenizer) const META: char = '▁';
/// Makes a name unmatchable: normalized text has no spaces, because each is replaced by [`META`].
pub(in crate::data::tokenizer) const UNMATCHABLE: char = ' ';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceFormat {
    /// A space is `▁`; byte tokens are `<0xE4>`.
    SentencePiece,
    /// Every byte is a printable character (GPT-2): a space is `Ġ`.
    ByteLevel,
    /// A token that continues a word begins with `##` (BERT).
    WordPiece,
}

impl PieceFormat {
    /// The bytes that a token adds to a text.
    pub(super) fn bytes(self, name: &str, prefix: &str) -> Vec<u8> {
        match self {
            PieceFormat::SentencePiece => match byte_of(name) {
                Some(byte) => vec![byte],
                None => name.replace(UNMATCHABLE, "").replace(META, " ").into_bytes(),
            },
            PieceFormat::ByteLevel => {
                let byte = |character| BYTE_OF_CHARACTER.get(&character).copied();
                match name.chars().map(byte).collect::<Option<Vec<u8>>>() {
                    Some(bytes) => bytes,
                    None => name.as_bytes().to_vec(),
                }
            }
            PieceFormat::WordPiece => match name.strip_prefix(prefix) {
                Some(rest) => rest.as_bytes().to_vec(),
                None => [b" ", name.as_bytes()].concat(),
            },
        }
    }

    /// A token in readable form.
    pub(super) fn display(self, name: &str, bytes: &[u8]) -> String {
        match (self, str::from_utf8(bytes)) {
            (PieceFormat::SentencePiece, _) => name.replace(UNMATCHABLE, ""),
            (PieceFormat::WordPiece, _) => name.to_owned(),
            (PieceFormat::ByteLevel, Ok(text)) => {
                text.chars().map(|character| if character == ' ' { META } else { character }).collect()
            }
            (PieceFormat::ByteLevel, Err(_)) => bytes.iter().map(|byte| format!("<0x{byte:02X}>")).collect(),
        }
    }
}

/// The byte of a token such as `<0x0A>`.
pub(in crate::data::tokenizer) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2
        || digits.contains(|digit: char| !digit.is_ascii_digit() && !digit.is_ascii_uppercase())
    {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// GPT-2's byte alphabet: printable Latin-1 characters represent themselves, the other bytes are mapped to
/// U+0100 and up.
static BYTE_OF_CHARACTER: LazyLock<FxHashMap<char, u8>> = LazyLock::new(|| {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let others = (0..=u8::MAX).filter(|&byte| !is_printable(byte));
    let moved = others.zip(0x100_u32..).map(|(byte, code)| (char::from_u32(code).unwrap_or_default(), byte));
    let kept = (0..=u8::MAX).filter(|&byte| is_printable(byte)).map(|byte| (char::from(byte), byte));
    kept.chain(moved).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_represent_bytes() {
        assert_eq!(PieceFormat::SentencePiece.bytes("▁the", ""), b" the");
        assert_eq!(PieceFormat::SentencePiece.bytes(" ▁the", ""), b" the");
        assert_eq!(PieceFormat::SentencePiece.bytes("<0xE4>", ""), [0xE4]);
        assert_eq!(PieceFormat::SentencePiece.bytes("<0xe4>", ""), b"<0xe4>");
        assert_eq!(PieceFormat::ByteLevel.bytes("Ġthe", ""), b" the");
        assert_eq!(PieceFormat::ByteLevel.bytes("ä½", ""), [0xE4, 0xBD]);
        assert_eq!(PieceFormat::ByteLevel.bytes("<|x|>你", ""), "<|x|>你".as_bytes());
        assert_eq!(PieceFormat::WordPiece.bytes("##ing", "##"), b"ing");
        assert_eq!(PieceFormat::WordPiece.bytes("sing", "##"), b" sing");
        assert_eq!(PieceFormat::ByteLevel.display("Ġthe", b" the"), "▁the");
        assert_eq!(PieceFormat::ByteLevel.display("ä½", &[0xE4, 0xBD]), "<0xE4><0xBD>");
        let mut all: Vec<u8> = BYTE_OF_CHARACTER.values().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..=u8::MAX).collect::<Vec<_>>());
    }
}
