//! SentencePiece's normalization: repeatedly replaces the longest prefix of the remaining text that is in a
//! table.
//!
//! ```text
//! u32 bytes of the trie · trie (a double array of u32, Aoe 1989) · replacements, each ending with a NUL
//! ```
//!
//! The `tokenizers` crate reads the same table, but looks up whole graphemes and does not check sizes: text
//! with several combining marks gets other ids than in SentencePiece, and a damaged table panics.

/// Maximum number of bytes of a replacement, to bound the growth of a text; NFKC's longest has 33 bytes.
const MAX_REPLACEMENT_BYTES: usize = 256;

#[derive(Clone, Debug)]
pub(in crate::data::tokenizer) struct Charsmap {
    trie: Vec<u32>,
    replacements: String,
}

impl Charsmap {
    /// Reads a table; an error describes what is wrong with it. An empty table replaces nothing.
    pub(in crate::data::tokenizer) fn read(bytes: &[u8]) -> Result<Charsmap, String> {
        if bytes.is_empty() {
            return Ok(Charsmap { trie: Vec::new(), replacements: String::new() });
        }
        let damaged = || "its table of normalizations is damaged".to_owned();
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        if !length.is_multiple_of(4) {
            return Err(damaged());
        }
        let (trie, replacements) = rest.split_at_checked(length).ok_or_else(damaged)?;
        let trie = trie.as_chunks::<4>().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        let replacements = String::from_utf8(replacements.to_vec()).map_err(|_| damaged())?;
        match replacements.split('\0').all(|replacement| replacement.len() <= MAX_REPLACEMENT_BYTES) {
            true => Ok(Charsmap { trie, replacements }),
            false => Err(format!("it replaces a character by more than {MAX_REPLACEMENT_BYTES} bytes")),
        }
    }

    pub(super) fn normalize(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (replacement, length) =
                self.longest(rest).unwrap_or((&rest[..first.len_utf8()], first.len_utf8()));
            out.push_str(replacement);
            rest = &rest[length..];
        }
        out
    }

    /// The replacement of the longest prefix that has one, and the prefix's length.
    fn longest(&self, text: &str) -> Option<(&str, usize)> {
        const IS_LEAF: u32 = 1 << 31;
        let offset = |unit: u32| (unit >> 10) << ((unit & (1 << 9)) >> 6);
        let mut node = offset(*self.trie.first()?);
        let mut found = None;
        for (index, &byte) in text.as_bytes().iter().enumerate() {
            node ^= u32::from(byte);
            let Some(&unit) = self.trie.get(node as usize) else { break };
            if unit & (IS_LEAF | 0xFF) != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if unit & (1 << 8) != 0 {
                let value = self.trie.get(node as usize).map(|&leaf| (leaf & !IS_LEAF) as usize);
                let replacement = value.and_then(|value| self.replacements.get(value..));
                let end = index + 1;
                if let Some(replacement) = replacement.filter(|_| text.is_char_boundary(end)) {
                    found = Some((replacement.split('\0').next().unwrap_or_default(), end));
                }
            }
        }
        found
    }
}

#[cfg(test)]
pub(in crate::data::tokenizer) mod tests {
    use super::*;

    /// A table that replaces single ASCII characters.
    pub(in crate::data::tokenizer) fn written(replaced: &[(u8, &str)]) -> Vec<u8> {
        // The root leads to units 512.., and the unit of a character to its leaf at 256 + character.
        let mut trie = vec![0_u32; 1024];
        let mut replacements = String::new();
        trie[0] = 512 << 10;
        for &(character, replacement) in replaced {
            let node = 512 ^ u32::from(character);
            let leaf = 256 + u32::from(character);
            trie[node as usize] = u32::from(character) | 1 << 8 | (node ^ leaf) << 10;
            trie[leaf as usize] = replacements.len() as u32 | 1 << 31;
            replacements.push_str(replacement);
            replacements.push('\0');
        }
        let trie: Vec<u8> = trie.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        [&(trie.len() as u32).to_le_bytes()[..], &trie, replacements.as_bytes()].concat()
    }

    #[test]
    fn characters_are_replaced() {
        let table = Charsmap::read(&written(&[(b'\t', " "), (b'a', "xyz"), (b'b', "")])).expect("a table");
        assert_eq!(table.normalize("a\tbéa"), "xyz éxyz");
        assert_eq!(Charsmap::read(&[]).expect("no table").normalize("a b"), "a b");
    }

    #[test]
    fn damaged_tables_do_not_panic() {
        let whole = written(&[(b'a', "b")]);
        for end in 1..whole.len() - 2 {
            assert!(Charsmap::read(&whole[..end]).is_err(), "{end}");
        }
        assert!(Charsmap::read(&written(&[(b'a', &"b".repeat(300))])).is_err());
        for at in 4..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] = 0xFF;
            if let Ok(table) = Charsmap::read(&bytes) {
                table.normalize("abé");
            }
        }
    }
}
