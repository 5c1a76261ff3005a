//! How a vocabulary of another project spells text: what bytes a token adds to it.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// SentencePiece's sign for a space.
pub(in crate::data::tokenizer) const META: char = '▁';
/// What makes a name unmatchable: normalized text has no space, for each became [`META`].
pub(in crate::data::tokenizer) const UNMATCHABLE: char = ' ';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// A space is `▁`; tokens of bytes are `<0xE4>`.
    Meta,
    /// Every byte is a printable character (GPT-2): a space is `Ġ`.
    Bytes,
    /// A token that continues a word begins with `##` (BERT).
    Continued,
}

impl Spelling {
    /// The bytes that a token adds to a text.
    pub(super) fn bytes(self, name: &str, prefix: &str) -> Vec<u8> {
        match self {
            Spelling::Meta => match byte_of(name) {
                Some(byte) => vec![byte],
                None => name.replace(UNMATCHABLE, "").replace(META, " ").into_bytes(),
            },
            Spelling::Bytes => {
                let byte = |character| BYTE_OF_CHARACTER.get(&character).copied();
                match name.chars().map(byte).collect::<Option<Vec<u8>>>() {
                    Some(bytes) => bytes,
                    None => name.as_bytes().to_vec(),
                }
            }
            Spelling::Continued => match name.strip_prefix(prefix) {
                Some(rest) => rest.as_bytes().to_vec(),
                None => [b" ", name.as_bytes()].concat(),
            },
        }
    }

    /// A token in readable form.
    pub(super) fn shown(self, name: &str, bytes: &[u8]) -> String {
        match (self, str::from_utf8(bytes)) {
            (Spelling::Meta, _) => name.replace(UNMATCHABLE, ""),
            (Spelling::Continued, _) => name.to_owned(),
            (Spelling::Bytes, Ok(text)) => {
                text.chars().map(|character| if character == ' ' { META } else { character }).collect()
            }
            (Spelling::Bytes, Err(_)) => bytes.iter().map(|byte| format!("<0x{byte:02X}>")).collect(),
        }
    }
}

/// The byte that a token such as `<0x0A>` stands for.
pub(in crate::data::tokenizer) fn byte_of(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2
        || digits.contains(|digit: char| !digit.is_ascii_digit() && !digit.is_ascii_uppercase())
    {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

/// GPT-2's alphabet: printable Latin-1 characters are themselves, the others follow from U+0100 on.
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
    fn tokens_stand_for_bytes() {
        assert_eq!(Spelling::Meta.bytes("▁the", ""), b" the");
        assert_eq!(Spelling::Meta.bytes(" ▁the", ""), b" the");
        assert_eq!(Spelling::Meta.bytes("<0xE4>", ""), [0xE4]);
        assert_eq!(Spelling::Meta.bytes("<0xe4>", ""), b"<0xe4>");
        assert_eq!(Spelling::Bytes.bytes("Ġthe", ""), b" the");
        assert_eq!(Spelling::Bytes.bytes("ä½", ""), [0xE4, 0xBD]);
        assert_eq!(Spelling::Bytes.bytes("<|x|>你", ""), "<|x|>你".as_bytes());
        assert_eq!(Spelling::Continued.bytes("##ing", "##"), b"ing");
        assert_eq!(Spelling::Continued.bytes("sing", "##"), b" sing");
        assert_eq!(Spelling::Bytes.shown("Ġthe", b" the"), "▁the");
        assert_eq!(Spelling::Bytes.shown("ä½", &[0xE4, 0xBD]), "<0xE4><0xBD>");
        let mut all: Vec<u8> = BYTE_OF_CHARACTER.values().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..=u8::MAX).collect::<Vec<_>>());
    }
}
