//! The vocabularies of a CTranslate2 model. CTranslate2's files list the tokens only; the tokenizers are in
//! other files of the folder.

use std::path::Path;

use super::Names;
use crate::data::Tokenizer;
use crate::data::tokenizer::{JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE, Tokenizers};
use crate::exchange::import::ImportError;
use crate::exchange::import::pieces::{SentencePieceFile, SentencePieceModels};
use crate::store::formats::FormatError;
use crate::store::formats::ctranslate2::Ctranslate2Folder;
use crate::store::formats::files::Files;

/// Common file names of SentencePiece models: one for both sides, or one for each.
const JOINT: [&str; 4] = [JOINT_PIECES, "spm.model", "sp.model", "tokenizer.model"];
const SIDES: [[&str; 2]; 2] = [SIDE_PIECES, ["source.model", "target.model"]];

/// Reads the tokenizers from the model's folder.
pub(super) fn read(
    model: &Ctranslate2Folder,
    files: &Files,
) -> Result<(Tokenizers, Vec<SentencePieceFile>), ImportError> {
    for name in JOINT {
        if let Some(bytes) = files.find(name)? {
            let (pieces, piece_files) = SentencePieceModels::joint(&files.label(name), bytes)?;
            return Ok((from_pieces(model, &pieces)?, piece_files));
        }
    }
    for names in SIDES {
        if files.find(names[0])?.is_some() && files.find(names[1])?.is_some() {
            let (pieces, piece_files) = SentencePieceModels::of_sides(files, names)?;
            return Ok((from_pieces(model, &pieces)?, piece_files));
        }
    }
    let (source, target) = (&model.source_vocabulary, &model.target_vocabulary);
    if files.find(JOINT_FILE)?.is_some() {
        return Ok((Tokenizers::joint(from_file(files, JOINT_FILE, source)?), Vec::new()));
    }
    if files.find(SOURCE_FILE)?.is_some() {
        let source = from_file(files, SOURCE_FILE, source)?;
        return Ok((Tokenizers::separate(source, from_file(files, TARGET_FILE, target)?), Vec::new()));
    }
    let remedy = "Copy the translator's .model file into the folder of model.bin, as sentencepiece.model, or both as source.spm and \
                  target.spm; or its tokenizer.json";
    Err(FormatError::missing(files.label(""), "SentencePiece model", remedy).into())
}

/// A `tokenizer.json` with these tokens.
fn from_file(files: &Files, name: &str, tokens: &[String]) -> Result<Tokenizer, ImportError> {
    let tokenizer = Tokenizer::from_exported(Path::new(&files.label(name)), &files.get(name)?)?;
    // Converters name every row of the weights, including padding.
    let tokenizer = match tokens.get(tokenizer.size()..) {
        Some(rows) => tokenizer.with_special_tokens(rows)?,
        None => tokenizer,
    };
    let names = tokenizer.names();
    let differ = names.iter().zip(tokens).position(|(name, token)| name != token);
    if differ.is_some() || names.len() != tokens.len() {
        let found = match differ {
            Some(id) => format!("the token `{}` with the id {id}, and the model `{}`", names[id], tokens[id]),
            None => format!("{} tokens, and the model {}", names.len(), tokens.len()),
        };
        let remedy = "It belongs to another model: copy the model's own there";
        return Err(FormatError::unsupported(files.label(name), found, remedy).into());
    }
    Ok(tokenizer)
}

/// One vocabulary if both sides have the same tokens and the same pieces. If there is one SentencePiece model
/// that does not cover the target tokens, it is that of the source, as in packages made from OPUS-MT models;
/// target texts are then tokenized by token frequency, which is estimated from the order of the tokens.
pub(super) fn from_pieces(
    model: &Ctranslate2Folder,
    pieces: &SentencePieceModels,
) -> Result<Tokenizers, ImportError> {
    let names = Names::of(&model.config);
    let special = [names.bos, names.eos, "<pad>", "<blank>"];
    let [source, target] = pieces.sides();
    let source = source.tokenizer_for(&model.source_vocabulary, &special)?;
    Ok(match pieces {
        SentencePieceModels::Joint(joint) if !joint.covers(&model.target_vocabulary) => {
            let by_rank = joint.by_rank(&model.target_vocabulary);
            Tokenizers::separate(source, by_rank.tokenizer_for(&model.target_vocabulary, &special)?)
        }
        SentencePieceModels::Joint(_) if model.source_vocabulary == model.target_vocabulary => {
            Tokenizers::joint(source)
        }
        _ => Tokenizers::separate(source, target.tokenizer_for(&model.target_vocabulary, &special)?),
    })
}
