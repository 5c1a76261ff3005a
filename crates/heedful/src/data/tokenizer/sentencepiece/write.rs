//! Converting a SentencePiece model to tokenizer.json.
//!
//! ```text
//! normalizer   character map · extra spaces · ▁ before the text · spaces as ▁ · no trailing ▁
//! model        the tokens of the model, in the order of their ids: pieces with their scores; other tokens with a space before
//!              their name (unused pieces: two), so that normalized text cannot match them · a marker · pieces that are not
//!              tokens of the model
//! decoder      removes that space · ▁ to space · joins bytes · removes the first space
//! ```

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{ModelKind, Piece, PieceKind, SentencePiece};
use crate::data::tokenizer::foreign::NOT_IN_THE_MODEL;
use crate::data::tokenizer::foreign::normalize::{EXTRA_SPACES, LAST_SPACES};
use crate::data::tokenizer::foreign::piece_format::{META, UNMATCHABLE};
use crate::data::tokenizer::pieces::byte_name;

/// Maximum number of leading spaces to strip: a model may generate tokens of a single space at the beginning
/// of a text.
const MAX_STRIPPED: usize = 64;

impl SentencePiece {
    pub(super) fn written(&self, tokens: &[&str], special: &[&str]) -> Result<String, String> {
        let by_text: HashMap<&str, &Piece> =
            self.pieces.iter().map(|piece| (piece.text.as_str(), piece)).collect();
        if by_text.len() < self.pieces.len() {
            return Err("a piece occurs twice".to_owned());
        }
        let is_special = |token: &str| {
            let kind = by_text.get(token).map(|piece| piece.kind);
            matches!(kind, Some(PieceKind::Control | PieceKind::Unknown)) || special.contains(&token)
        };
        let unknown = self.pieces.iter().find(|piece| piece.kind == PieceKind::Unknown);
        let unknown = unknown.and_then(|unknown| tokens.iter().position(|&token| token == unknown.text));
        let unknown = unknown.ok_or("the model's vocabulary has no token for the unknown piece")?;
        let entries = self.entries(tokens, &by_text, is_special);
        let has_hidden = entries.iter().any(|(name, _)| name.contains(UNMATCHABLE));
        if has_hidden && !self.escapes_spaces {
            return Err("it does not escape spaces, and its pieces are not the model's tokens".to_owned());
        }
        let added = |(id, token): (usize, &&str)| {
            let kind = by_text.get(token).map(|piece| piece.kind);
            let is_special = is_special(token);
            (is_special || kind == Some(PieceKind::UserDefined)).then(|| {
                json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": is_special})
            })
        };
        let file = json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": tokens.iter().enumerate().filter_map(added).collect::<Vec<_>>(),
            "normalizer": self.normalizer(),
            "pre_tokenizer": null,
            "post_processor": null,
            "decoder": self.decoder(has_hidden),
            "model": match self.kind {
                ModelKind::Unigram => self.unigram(&entries, unknown),
                ModelKind::Bpe => self.bpe(&entries, &by_text, tokens[unknown]),
            },
        });
        Ok(format!("{file}\n"))
    }

    /// Names and scores, in the order of the ids.
    fn entries(
        &self,
        tokens: &[&str],
        by_text: &HashMap<&str, &Piece>,
        is_special: impl Fn(&str) -> bool,
    ) -> Vec<(String, f32)> {
        let entry = |&token: &&str| match by_text.get(token) {
            _ if is_special(token) => (token.to_owned(), 0.0),
            Some(Piece {
                kind: PieceKind::Learned | PieceKind::UserDefined | PieceKind::Byte,
                score,
                ..
            }) => (token.to_owned(), *score),
            // An unused piece: text must not match it.
            Some(_) => (format!("{UNMATCHABLE}{UNMATCHABLE}{token}"), 0.0),
            None => (format!("{UNMATCHABLE}{token}"), 0.0),
        };
        let mut entries: Vec<(String, f32)> = tokens.iter().map(entry).collect();
        let known: HashSet<&str> = tokens.iter().copied().collect();
        let is_missing = |piece: &&Piece| {
            matches!(piece.kind, PieceKind::Learned | PieceKind::UserDefined)
                && !known.contains(piece.text.as_str())
        };
        let mut missing = self.pieces.iter().filter(is_missing).peekable();
        if missing.peek().is_some() {
            entries.push((NOT_IN_THE_MODEL.to_owned(), 0.0));
        }
        entries.extend(missing.map(|piece| (piece.text.clone(), piece.score)));
        entries
    }

    fn normalizer(&self) -> Value {
        use base64::Engine;
        let mut steps = Vec::new();
        if !self.charsmap.is_empty() {
            let coded = base64::engine::general_purpose::STANDARD.encode(&self.charsmap);
            steps.push(json!({"type": "Precompiled", "precompiled_charsmap": coded}));
        }
        if self.without_extra_spaces {
            steps.push(json!({"type": "Replace", "pattern": {"Regex": EXTRA_SPACES}, "content": ""}));
        }
        if self.space_before {
            let space = if self.escapes_spaces { META } else { ' ' };
            steps.push(json!({"type": "Prepend", "prepend": space}));
        }
        if self.escapes_spaces {
            steps.push(json!({"type": "Replace", "pattern": {"String": " "}, "content": META}));
        }
        if self.escapes_spaces && self.without_extra_spaces {
            steps.push(json!({"type": "Replace", "pattern": {"Regex": LAST_SPACES}, "content": ""}));
        }
        json!({"type": "Sequence", "normalizers": steps})
    }

    fn decoder(&self, has_hidden: bool) -> Value {
        let replace =
            |from: char, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
        let mut steps = Vec::new();
        if has_hidden {
            steps.push(replace(UNMATCHABLE, ""));
        }
        steps.push(replace(META, " "));
        if self.byte_fallback {
            steps.push(json!({"type": "ByteFallback"}));
        }
        steps.push(json!({"type": "Fuse"}));
        // If extra spaces are removed, no text begins with a space.
        let stripped = if self.without_extra_spaces { MAX_STRIPPED } else { usize::from(self.space_before) };
        if stripped > 0 {
            steps.push(json!({"type": "Strip", "content": " ", "start": stripped, "stop": 0}));
        }
        json!({"type": "Sequence", "decoders": steps})
    }

    fn unigram(&self, entries: &[(String, f32)], unknown: usize) -> Value {
        let vocabulary: Vec<Value> =
            entries.iter().map(|(name, score)| json!([name, f64::from(*score)])).collect();
        json!({"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": self.byte_fallback})
    }

    fn bpe(&self, entries: &[(String, f32)], by_text: &HashMap<&str, &Piece>, unknown: &str) -> Value {
        let vocabulary: Map<String, Value> =
            entries.iter().enumerate().map(|(id, (name, _))| (name.clone(), json!(id))).collect();
        let has_bytes =
            self.byte_fallback && (0..=u8::MAX).all(|byte| vocabulary.contains_key(&byte_name(byte)));
        json!({"type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": has_bytes, "ignore_merges": false,
            "vocab": vocabulary, "merges": self.merges(by_text)})
    }

    /// Every pair of pieces whose concatenation is a piece, the best piece first.
    fn merges(&self, by_text: &HashMap<&str, &Piece>) -> Vec<[&str; 2]> {
        let is_learned = |text: &str| by_text.get(text).is_some_and(|piece| piece.kind == PieceKind::Learned);
        let mut pieces: Vec<&Piece> =
            self.pieces.iter().filter(|piece| piece.kind == PieceKind::Learned).collect();
        pieces.sort_by(|one, other| other.score.total_cmp(&one.score));
        let mut merges = Vec::new();
        for piece in pieces {
            let inside = piece.text.char_indices().skip(1).map(|(at, _)| piece.text.split_at(at));
            merges.extend(
                inside
                    .filter(|(left, right)| is_learned(left) && is_learned(right))
                    .map(|(left, right)| [left, right]),
            );
        }
        merges
    }
}
