//! Reading SentencePiece's `.model`, and converting it to tokenizer.json.
//!
//! ```text
//! ModelProto       1 pieces · 2 trainer · 3 normalizer
//! SentencePiece    1 text · 2 score · 3 kind (1 learned, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte)
//! TrainerSpec      3 type (1 unigram, 2 BPE, 3 words, 4 characters) · 24 spaces after words · 35 byte fallback
//! NormalizerSpec   2 character map · 3 space before the text · 4 no extra spaces · 5 spaces as ▁
//! ```

mod protobuf;
mod write;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use self::protobuf::{Field, Fields};
use super::foreign::charsmap::Charsmap;
use super::{Tokenizer, TokenizerError};

/// A SentencePiece model covers a vocabulary if less than one token in this many is missing among its pieces.
const MISSING_TOKEN_DIVISOR: usize = 4;

/// A SentencePiece model.
#[derive(Clone, Debug)]
pub struct SentencePiece {
    file: String,
    pieces: Vec<Piece>,
    kind: ModelKind,
    byte_fallback: bool,
    charsmap: Vec<u8>,
    /// Whether a space is inserted before the text.
    space_before: bool,
    /// Whether spaces at the ends, and all but one of several, are removed.
    without_extra_spaces: bool,
    /// Whether spaces become `▁`.
    escapes_spaces: bool,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    score: f32,
    kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Learned,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelKind {
    Unigram,
    Bpe,
}

impl SentencePiece {
    /// Reads a `.model` file.
    pub fn open(path: &Path) -> Result<SentencePiece, TokenizerError> {
        let file = path.display().to_string();
        match fs::read(path) {
            Ok(bytes) => SentencePiece::read(&file, &bytes),
            Err(error) => Err(TokenizerError::Read { file, error }),
        }
    }

    /// As [`SentencePiece::open`], for bytes that are called `file` in messages.
    pub fn read(file: &str, bytes: &[u8]) -> Result<SentencePiece, TokenizerError> {
        let model = parse(bytes).and_then(|model| model.checked());
        match model {
            Ok(model) => Ok(SentencePiece { file: file.to_owned(), ..model }),
            Err(reason) => Err(TokenizerError::SentencePiece { file: file.to_owned(), reason }),
        }
    }

    /// The pieces, in the order of SentencePiece's own ids.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().map(|piece| piece.text.as_str())
    }

    /// A tokenizer with SentencePiece's own ids.
    pub fn tokenizer(&self) -> Result<Tokenizer, TokenizerError> {
        let tokens: Vec<&str> = self.pieces().collect();
        self.tokenizer_for(&tokens, &[])
    }

    /// A tokenizer with the ids of a model whose vocabulary is `tokens`, in the order of their ids. Pieces
    /// that are not in `tokens` become the unknown token. Tokens that are not pieces match runs of unknown
    /// characters with the same text (only in unigram models). Control pieces and the tokens in `special` are
    /// special.
    pub fn tokenizer_for<T: AsRef<str>>(
        &self,
        tokens: &[T],
        special: &[&str],
    ) -> Result<Tokenizer, TokenizerError> {
        let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
        let written = self.written(&tokens, special);
        written
            .and_then(|json| Tokenizer::foreign(&json))
            .map_err(|reason| TokenizerError::SentencePiece { file: self.file.clone(), reason })
    }

    /// Whether most tokens of a model are pieces of this one. If not, it is for one side only, and the other
    /// side has its own.
    pub(crate) fn covers<T: AsRef<str>>(&self, tokens: &[T]) -> bool {
        let pieces: HashSet<&str> = self.pieces().collect();
        let missing = tokens.iter().filter(|token| !pieces.contains(token.as_ref())).count();
        missing * MISSING_TOKEN_DIVISOR < tokens.len()
    }

    /// A unigram model for a vocabulary whose own SentencePiece model is unknown, with the normalization of
    /// this one. `tokens` are sorted by frequency, and piece probabilities are proportional to one over the
    /// rank (Zipf's law).
    pub(crate) fn by_rank<T: AsRef<str>>(&self, tokens: &[T]) -> SentencePiece {
        let kinds: HashMap<&str, PieceKind> =
            self.pieces.iter().map(|piece| (piece.text.as_str(), piece.kind)).collect();
        let piece = |(rank, token): (usize, &T)| Piece {
            text: token.as_ref().to_owned(),
            score: -((rank + 1) as f32).ln(),
            kind: kinds.get(token.as_ref()).copied().unwrap_or(PieceKind::Learned),
        };
        SentencePiece {
            pieces: tokens.iter().enumerate().map(piece).collect(),
            kind: ModelKind::Unigram,
            byte_fallback: false,
            ..self.clone()
        }
    }

    /// Rejects features that heedful does not support exactly.
    fn checked(self) -> Result<SentencePiece, String> {
        if !self.pieces.iter().any(|piece| piece.kind == PieceKind::Unknown) {
            return Err("it has no unknown piece".to_owned());
        }
        let has = |kind| self.pieces.iter().any(|piece| piece.kind == kind);
        if self.kind == ModelKind::Bpe && (has(PieceKind::UserDefined) || has(PieceKind::Unused)) {
            return Err("it is BPE with user-defined or unused pieces. Train it without them".to_owned());
        }
        Charsmap::read(&self.charsmap)?;
        Ok(self)
    }
}

fn parse(bytes: &[u8]) -> Result<SentencePiece, String> {
    let mut model = SentencePiece {
        file: String::new(),
        pieces: Vec::new(),
        kind: ModelKind::Unigram,
        byte_fallback: false,
        charsmap: Vec::new(),
        space_before: true,
        without_extra_spaces: true,
        escapes_spaces: true,
    };
    for field in Fields::of(bytes) {
        let field = field.map_err(|at| format!("it is damaged at byte {at}. Copy or download it again"))?;
        let inside = || format!("its field {} is damaged. Copy or download it again", field.0);
        match field {
            (1, Field::Bytes(piece)) => {
                let index = model.pieces.len();
                let piece = read_piece(piece)
                    .ok_or_else(|| format!("its piece {index} is damaged. Copy or download it again"))?;
                model.pieces.push(piece);
            }
            (2, Field::Bytes(trainer)) => model.read_trainer(trainer).ok_or_else(inside)??,
            (3, Field::Bytes(normalizer)) => model.read_normalizer(normalizer).ok_or_else(inside)?,
            _ => {}
        }
    }
    Ok(model)
}

fn read_piece(bytes: &[u8]) -> Option<Piece> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: PieceKind::Learned };
    for field in Fields::of(bytes) {
        match field.ok()? {
            (1, Field::Bytes(text)) => piece.text = str::from_utf8(text).ok()?.to_owned(),
            (2, Field::Float(score)) if score.is_finite() => piece.score = score,
            (3, Field::Number(kind)) => {
                piece.kind = match kind {
                    1 => PieceKind::Learned,
                    2 => PieceKind::Unknown,
                    3 => PieceKind::Control,
                    4 => PieceKind::UserDefined,
                    5 => PieceKind::Unused,
                    6 => PieceKind::Byte,
                    _ => return None,
                }
            }
            (1..=3, _) => return None,
            _ => {}
        }
    }
    (!piece.text.is_empty()).then_some(piece)
}

impl SentencePiece {
    /// `None` if it is damaged; an error if heedful does not support it.
    fn read_trainer(&mut self, bytes: &[u8]) -> Option<Result<(), String>> {
        for field in Fields::of(bytes) {
            match field.ok()? {
                (3, Field::Number(1)) => self.kind = ModelKind::Unigram,
                (3, Field::Number(2)) => self.kind = ModelKind::Bpe,
                (3, Field::Number(3)) => {
                    return Some(Err("its pieces are whole words, not unigram or BPE".to_owned()));
                }
                (3, Field::Number(4)) => {
                    return Some(Err("its pieces are characters, not unigram or BPE".to_owned()));
                }
                (24, Field::Number(1)) => {
                    return Some(Err("its spaces follow words instead of preceding them".to_owned()));
                }
                (35, Field::Number(has)) => self.byte_fallback = has != 0,
                (3 | 24 | 35, Field::Bytes(_) | Field::Float(_)) | (3, _) => return None,
                _ => {}
            }
        }
        Some(Ok(()))
    }

    fn read_normalizer(&mut self, bytes: &[u8]) -> Option<()> {
        for field in Fields::of(bytes) {
            match field.ok()? {
                (2, Field::Bytes(charsmap)) => self.charsmap = charsmap.to_vec(),
                (3, Field::Number(is)) => self.space_before = is != 0,
                (4, Field::Number(is)) => self.without_extra_spaces = is != 0,
                (5, Field::Number(is)) => self.escapes_spaces = is != 0,
                (2..=5, _) => return None,
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
