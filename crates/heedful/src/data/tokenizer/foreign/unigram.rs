//! Segmentation by a unigram language model, like SentencePiece: the path with the best sum of scores.
//!
//! The `tokenizers` crate sums in f64 and lets every name in the vocabulary match, including `<0x41>` and
//! `<s>`. Here sums are f32, which decides ties like SentencePiece, and only text pieces match: the ids are
//! those of SentencePiece.

use rustc_hash::FxHashMap;

/// Penalty of an unknown character, below the worst score of all pieces.
const UNKNOWN_PENALTY: f32 = 10.0;

/// A piece that text can match.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) id: u32,
    pub(super) score: f64,
    pub(super) kind: PieceKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Learned,
    /// User-defined: preferred to all pieces that cover the same text.
    UserDefined,
}

pub(super) struct UnigramModel {
    pieces: FxHashMap<Box<str>, (u32, f32)>,
    longest: usize,
    unknown_score: f32,
    unknown: u32,
    /// Tokens of the model that are not SentencePiece pieces. Unknown characters are looked up here, because
    /// in SentencePiece the unknown piece keeps its text, which may be a token of the model.
    unknown_tokens: FxHashMap<Box<str>, u32>,
    /// The byte tokens, for byte fallback of unknown characters.
    bytes: Option<Box<[u32; 256]>>,
}

#[derive(Clone)]
struct Node {
    score: f32,
    start: Option<usize>,
    id: u32,
}

impl UnigramModel {
    pub(super) fn new(pieces: Vec<Piece>, unknown: u32, bytes: Option<Box<[u32; 256]>>) -> UnigramModel {
        let learned =
            || pieces.iter().filter(|piece| piece.kind == PieceKind::Learned).map(|piece| piece.score as f32);
        let worst = learned().fold(f32::MAX, f32::min);
        let best = learned().fold(f32::MIN, f32::max);
        let worst = if worst == f32::MAX { 0.0 } else { worst };
        let longest = pieces.iter().map(|piece| piece.text.len()).max().unwrap_or(0);
        let score = |piece: &Piece| match piece.kind {
            PieceKind::Learned => piece.score as f32,
            PieceKind::UserDefined => (f64::from(piece.text.len() as f32 * best) - 0.1) as f32,
        };
        let pieces =
            pieces.iter().map(|piece| (piece.text.as_str().into(), (piece.id, score(piece)))).collect();
        let unknown_score = worst - UNKNOWN_PENALTY;
        UnigramModel { pieces, longest, unknown_score, unknown, unknown_tokens: FxHashMap::default(), bytes }
    }

    /// The same model with tokens that only unknown characters can match.
    pub(super) fn with_unknown_tokens(self, unknown_tokens: FxHashMap<Box<str>, u32>) -> UnigramModel {
        UnigramModel { unknown_tokens, ..self }
    }

    /// Appends the ids of a normalized text.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut ends = vec![Node { score: 0.0, start: None, id: self.unknown }; text.len() + 1];
        for (start, first) in text.char_indices() {
            let score_before = ends[start].score;
            let mut has_character = false;
            let mut end = start;
            for character in text[start..].chars() {
                end += character.len_utf8();
                if end - start > self.longest {
                    break;
                }
                let Some(&(id, score)) = self.pieces.get(&text[start..end]) else { continue };
                relax(&mut ends[end], score + score_before, start, id);
                has_character |= end - start == first.len_utf8();
            }
            if !has_character {
                relax(
                    &mut ends[start + first.len_utf8()],
                    self.unknown_score + score_before,
                    start,
                    self.unknown,
                );
            }
        }
        self.append(text, &ends, ids);
    }

    /// Appends the best path. Adjacent unknown characters are one token, unless they become bytes.
    fn append(&self, text: &str, ends: &[Node], ids: &mut Vec<u32>) {
        let first = ids.len();
        let mut end = text.len();
        // The end of the current run of unknown characters.
        let mut unknown_end = None;
        while let Some(start) = ends[end].start {
            let is_unknown = ends[end].id == self.unknown;
            match &self.bytes {
                Some(bytes) if is_unknown => {
                    let characters = text.as_bytes()[start..end].iter().rev();
                    ids.extend(characters.map(|&byte| bytes[usize::from(byte)]));
                }
                None if is_unknown => drop(unknown_end.get_or_insert(end)),
                _ => {
                    ids.extend(unknown_end.take().map(|last| self.unknown_token(&text[end..last])));
                    ids.push(ends[end].id);
                }
            }
            end = start;
        }
        ids.extend(unknown_end.map(|last| self.unknown_token(&text[..last])));
        ids[first..].reverse();
    }

    fn unknown_token(&self, characters: &str) -> u32 {
        self.unknown_tokens.get(characters).copied().unwrap_or(self.unknown)
    }
}

/// Updates a node with a better path. With equal sums, the path whose last piece starts first is kept.
fn relax(node: &mut Node, score: f32, start: usize, id: u32) {
    if node.start.is_none() || score > node.score {
        *node = Node { score, start: Some(start), id };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(bytes: Option<Box<[u32; 256]>>) -> UnigramModel {
        let piece = |(id, (text, score)): (usize, &(&str, f64))| Piece {
            text: (*text).to_owned(),
            id: id as u32 + 1,
            score: *score,
            kind: if *text == "<sep>" { PieceKind::UserDefined } else { PieceKind::Learned },
        };
        let pieces = [("a", -2.0), ("b", -2.5), ("ab", -3.0), ("abc", -9.0), ("c", -4.0), ("<sep>", 0.0)];
        UnigramModel::new(pieces.iter().enumerate().map(piece).collect(), 0, bytes)
    }

    fn ids(model: &UnigramModel, text: &str) -> Vec<u32> {
        let mut ids = vec![0];
        model.encode(text, &mut ids);
        ids.split_off(1)
    }

    #[test]
    fn the_best_path_is_found_and_adjacent_unknown_characters_are_one_token() {
        let model = model(None);
        assert_eq!(ids(&model, "abc"), [3, 5]);
        assert_eq!(ids(&model, "ba"), [2, 1]);
        assert_eq!(ids(&model, "xy你a你"), [0, 1, 0]);
        assert_eq!(ids(&model, "a<sep>b"), [1, 6, 2]);
        assert!(ids(&model, "").is_empty());
        // Tokens of the model that are not SentencePiece pieces.
        let model = model
            .with_unknown_tokens([("你".into(), 9), ("xy".into(), 8), ("b".into(), 7)].into_iter().collect());
        assert_eq!(ids(&model, "xy你a你b"), [0, 1, 9, 2]);
        assert_eq!(ids(&model, "xya"), [8, 1]);
    }

    #[test]
    fn unknown_characters_become_bytes_with_byte_fallback() {
        let bytes = std::array::from_fn(|byte| 100 + byte as u32);
        assert_eq!(ids(&model(Some(Box::new(bytes))), "aéab"), [1, 100 + 0xC3, 100 + 0xA9, 3]);
    }
}
