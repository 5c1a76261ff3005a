//! Reading a tokenizer.json of another project. Features that heedful does not support exactly are rejected
//! by name.

use std::collections::{BTreeSet, HashSet};

use serde::Deserialize;
use serde_json::{Value, json};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;

use super::added::added_name;
use super::model::ForeignModel;
use super::normalize::{Step, steps};
use super::piece_format::{PieceFormat, UNMATCHABLE, byte_of};
use super::unigram::{Piece, PieceKind, UnigramModel};
use super::{Foreign, PreTokenizers};
use crate::data::tokenizer::added::AddedTokens;
use crate::data::tokenizer::pieces::{Pieces, byte_name};

/// A marker after the last token of the model. The pieces after it take part in segmentation but are not
/// tokens of the model: they become the unknown token.
pub(in crate::data::tokenizer) const NOT_IN_THE_MODEL: &str = " <not in the model>";
/// Maximum number of bytes of a piece: longer ones would slow down matching.
const MAX_PIECE_BYTES: usize = 256;
const MAX_WORD_CHARACTERS: u64 = 1000;
const MAX_STRIPPED: u64 = 1000;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    decoder: Value,
    model: Value,
}

#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    special: bool,
    #[serde(default)]
    pub(super) normalized: bool,
    #[serde(default)]
    pub(super) single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
}

impl Foreign {
    /// Reads a tokenizer.json; an error names what heedful does not support.
    pub(in crate::data::tokenizer) fn read(json: &str) -> Result<Foreign, String> {
        let file: File = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let format = piece_format(&file)?;
        let mut names = names(&file.model)?;
        let segmentation_size = names.len();
        let (text_tokens, vocabulary_tokens) =
            file.added_tokens.into_iter().partition::<Vec<_>, _>(|token| {
                !token.special && names.get(token.id as usize).is_none_or(|name| *name != token.content)
            });
        let special = add(&vocabulary_tokens, &mut names)?;
        let steps = steps(&file.normalizer)?;
        let pre_tokenizers = pre_tokenizers(&file.pre_tokenizer)?;
        check_decoder(&file.decoder, format)?;
        let prefix = file.model["continuing_subword_prefix"].as_str().unwrap_or_default().to_owned();
        let unknown = unknown(&file.model, &names)?;
        let (added, special_names) =
            (&vocabulary_tokens, special.iter().map(|&id| names[id as usize].clone()).collect());
        let model = match file.model["type"].as_str() {
            Some("Unigram") => unigram(&file.model, &names[..segmentation_size], added, &special, unknown)?,
            _ => library_model(file.model, added, &special_names)?,
        };
        if let Some(size) = names.iter().position(|name| name == NOT_IN_THE_MODEL) {
            if special.iter().any(|&id| id as usize >= size)
                || unknown.is_none_or(|unknown| unknown as usize >= size)
            {
                return Err("it has special tokens beyond those of the model".to_owned());
            }
            names.truncate(size);
        }
        let model_size = names.len();
        let added = added_tokens(&text_tokens, format, &steps, &mut names)?;
        let bytes = |(id, name): (usize, &String)| match special.contains(&(id as u32)) {
            true => Vec::new(),
            false => format.bytes(name, &prefix),
        };
        let pieces = Pieces::new(names.iter().enumerate().map(|named| bytes(named).into()).collect());
        let decoder = match file.decoder {
            Value::Null => None,
            decoder => Some(serde_json::from_value(decoder).map_err(|error| error.to_string())?),
        };
        let json = json.to_owned();
        Ok(Foreign {
            json,
            steps,
            pre_tokenizers,
            model,
            decoder,
            format,
            names,
            model_size,
            special,
            unknown,
            pieces,
            added,
        })
    }
}

fn kind(part: &Value) -> &str {
    part["type"].as_str().unwrap_or_default()
}

fn piece_format(file: &File) -> Result<PieceFormat, String> {
    let is_byte_level = kind(&file.pre_tokenizer) == "ByteLevel";
    match kind(&file.model) {
        "WordPiece" => Ok(PieceFormat::WordPiece),
        "BPE" if is_byte_level => Ok(PieceFormat::ByteLevel),
        "BPE" | "Unigram" if !is_byte_level => Ok(PieceFormat::SentencePiece),
        other => Err(format!("its model is {other:?}, not Unigram, BPE or WordPiece")),
    }
}

/// The names of the model's tokens, in the order of their ids.
fn names(model: &Value) -> Result<Vec<String>, String> {
    match &model["vocab"] {
        Value::Array(entries) => {
            let named = entries.iter().map(|entry| entry[0].as_str().map(str::to_owned));
            distinct(named.collect::<Option<_>>().ok_or("its vocabulary cannot be read")?)
        }
        Value::Object(entries) => {
            let mut names = vec![None; entries.len()];
            for (name, id) in entries {
                let slot = id.as_u64().and_then(|id| names.get_mut(usize::try_from(id).ok()?));
                match slot {
                    Some(slot @ None) => *slot = Some(name.clone()),
                    _ => return Err(format!("its ids have a gap, or two tokens have the id {id}")),
                }
            }
            distinct(names.into_iter().flatten().collect())
        }
        _ => Err("its vocabulary cannot be read".to_owned()),
    }
}

fn distinct(names: Vec<String>) -> Result<Vec<String>, String> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| name.is_empty() || !seen.insert(name.as_str())) {
        Some(name) => Err(format!("its token `{name}` is empty or there twice")),
        None if names.is_empty() || u32::try_from(names.len()).is_err() => Err("it has no tokens".to_owned()),
        None => Ok(names),
    }
}

/// The ids of the special tokens; the names of those that the model does not have are appended.
fn add(added: &[Added], names: &mut Vec<String>) -> Result<BTreeSet<u32>, String> {
    let mut special = BTreeSet::new();
    for Added { id, content, special: is_special, .. } in added {
        match names.get(*id as usize) {
            Some(name) if name == content => {}
            None if *id as usize == names.len() && !names.contains(content) && *is_special => {
                names.push(content.clone());
            }
            _ => return Err(format!("its added token `{content}` does not have the id {id}")),
        }
        if *is_special {
            special.insert(*id);
        }
    }
    Ok(special)
}

/// Tokens that were added as text. Their ids follow those of the model, and their names are appended.
fn added_tokens(
    added: &[Added],
    format: PieceFormat,
    steps: &[Step],
    names: &mut Vec<String>,
) -> Result<Option<AddedTokens>, String> {
    let mut known: HashSet<String> =
        if added.is_empty() { HashSet::new() } else { names.iter().cloned().collect() };
    let mut forms = Vec::new();
    for token in added {
        let Added { id, content, lstrip, rstrip, .. } = token;
        if *lstrip || *rstrip {
            return Err(format!("its added token `{content}` strips adjacent spaces"));
        }
        let (form, mode) = token.form(format, steps)?;
        let name = added_name(format, content, &form).to_owned();
        if *id as usize != names.len() || !known.insert(name.clone()) {
            return Err(format!("its added token `{content}` does not have the id {id}"));
        }
        names.push(name);
        forms.push((form, *id, mode));
    }
    AddedTokens::new(forms)
}

fn unknown(model: &Value, names: &[String]) -> Result<Option<u32>, String> {
    let by_name = |name: &str| names.iter().position(|other| other == name);
    let id = match (&model["unk_id"], &model["unk_token"]) {
        (Value::Number(id), _) => {
            id.as_u64().and_then(|id| usize::try_from(id).ok()).filter(|&id| id < names.len())
        }
        (_, Value::String(name)) => by_name(name),
        _ => return Ok(None),
    };
    match id {
        Some(id) => Ok(Some(id as u32)),
        None => Err("its unknown token is not in its vocabulary".to_owned()),
    }
}

fn unigram(
    model: &Value,
    names: &[String],
    added: &[Added],
    special: &BTreeSet<u32>,
    unknown: Option<u32>,
) -> Result<ForeignModel, String> {
    let unknown = unknown.ok_or("it has no unknown token")?;
    let entries = model["vocab"].as_array().ok_or("its vocabulary cannot be read")?;
    let has_bytes = model["byte_fallback"].as_bool().unwrap_or(false);
    let user_defined: HashSet<u32> =
        added.iter().filter(|token| !token.special).map(|token| token.id).collect();
    let mut pieces = Vec::new();
    for (id, (name, entry)) in (0_u32..).zip(names.iter().zip(entries)) {
        let is_byte = has_bytes && byte_of(name).is_some();
        if special.contains(&id) || id == unknown || is_byte || name.contains(UNMATCHABLE) {
            continue;
        }
        if name.len() > MAX_PIECE_BYTES {
            return Err(format!("its token {id} has more than {MAX_PIECE_BYTES} bytes"));
        }
        let score = entry[1].as_f64().ok_or_else(|| format!("its token `{name}` has no score"))?;
        let kind = if user_defined.contains(&id) { PieceKind::UserDefined } else { PieceKind::Learned };
        pieces.push(Piece { text: name.clone(), id, score, kind });
    }
    let bytes = has_bytes.then(|| {
        let mut bytes = Box::new([unknown; 256]);
        for (id, byte) in (0_u32..).zip(names).filter_map(|(id, name)| Some((id, byte_of(name)?))) {
            bytes[usize::from(byte)] = id;
        }
        bytes
    });
    let unknown_tokens =
        (0_u32..).zip(names).filter_map(|(id, name)| Some((name.strip_prefix(UNMATCHABLE)?.into(), id)));
    Ok(ForeignModel::Unigram(
        UnigramModel::new(pieces, unknown, bytes).with_unknown_tokens(unknown_tokens.collect()),
    ))
}

/// BPE or WordPiece of the `tokenizers` crate, with special tokens renamed so that text cannot match them.
fn library_model(
    mut model: Value,
    added: &[Added],
    special: &HashSet<String>,
) -> Result<ForeignModel, String> {
    if let Some(token) = added.iter().find(|token| !token.special) {
        return Err(format!("it has an added token that is not special (`{}`)", token.content));
    }
    let is_set =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("");
    match kind(&model) {
        "BPE" => {
            if is_set(&model["dropout"]) {
                return Err("it drops merges at random".to_owned());
            }
            if is_set(&model["continuing_subword_prefix"]) || is_set(&model["end_of_word_suffix"]) {
                return Err("its BPE marks the inside or the end of words".to_owned());
            }
            let has_all_bytes = (0..=u8::MAX).all(|byte| model["vocab"].get(byte_name(byte)).is_some());
            if is_set(&model["byte_fallback"]) && !has_all_bytes {
                return Err("it does not have all 256 bytes".to_owned());
            }
        }
        _ => {
            let max = model["max_input_chars_per_word"].as_u64();
            if max.is_none_or(|max| max > MAX_WORD_CHARACTERS) || !is_set(&model["continuing_subword_prefix"])
            {
                return Err("its WordPiece has unusual limits".to_owned());
            }
            if !is_set(&model["unk_token"]) {
                return Err("it has no unknown token".to_owned());
            }
        }
    }
    let unmatchable = |name: &str| format!("{UNMATCHABLE}{name}");
    if let Some(vocabulary) = model["vocab"].as_object_mut() {
        for name in special {
            if let Some(id) = vocabulary.remove(name) {
                vocabulary.insert(unmatchable(name), id);
            }
        }
    }
    if let Some(name) = model["unk_token"].as_str().filter(|name| special.contains(*name)) {
        model["unk_token"] = json!(unmatchable(name));
    }
    // Fails if a merge refers to a special token, which was renamed.
    let read =
        serde_json::from_value(model).map_err(|error| format!("its model cannot be read ({error})"))?;
    Ok(ForeignModel::Library(Box::new(read)))
}

fn pre_tokenizers(part: &Value) -> Result<Option<PreTokenizers>, String> {
    const KNOWN: [&str; 4] = ["BertPreTokenizer", "ByteLevel", "Metaspace", "WhitespaceSplit"];
    let parts: Vec<&Value> = match (part, kind(part)) {
        (Value::Null, _) => return Ok(None),
        (_, "Sequence") => part["pretokenizers"].as_array().into_iter().flatten().collect(),
        _ => vec![part],
    };
    if let Some(other) = parts.iter().find(|part| !KNOWN.contains(&kind(part))) {
        return Err(format!("it splits text by other rules ({})", kind(other)));
    }
    let read = |part: &Value| {
        serde_json::from_value::<PreTokenizerWrapper>(part.clone())
            .map_err(|error| format!("its pre-tokenizer cannot be read ({error})"))
    };
    let mut continuation = part.clone();
    without_space_before(&mut continuation);
    Ok(Some(PreTokenizers { at_text_start: read(part)?, continuation: read(&continuation)? }))
}

fn without_space_before(part: &mut Value) {
    match kind(part) {
        "Sequence" => {
            part["pretokenizers"].as_array_mut().into_iter().flatten().for_each(without_space_before);
        }
        "Metaspace" => {
            part["prepend_scheme"] = json!("never");
            part["add_prefix_space"] = json!(false);
        }
        "ByteLevel" => part["add_prefix_space"] = json!(false),
        _ => {}
    }
}

fn check_decoder(part: &Value, format: PieceFormat) -> Result<(), String> {
    let supported: &[&str] = match format {
        PieceFormat::SentencePiece => &["Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"],
        PieceFormat::ByteLevel => &["ByteLevel"],
        PieceFormat::WordPiece => &["WordPiece"],
    };
    let parts: Vec<&Value> = match (part, kind(part)) {
        (Value::Null, _) => return Ok(()),
        (_, "Sequence") => part["decoders"].as_array().into_iter().flatten().collect(),
        _ => vec![part],
    };
    for part in parts {
        let is_unsupported = match kind(part) {
            "Replace" => {
                let grows = part["content"].as_str().is_none_or(|content| content.len() > 4);
                part["pattern"]["String"].as_str().is_none_or(str::is_empty) || grows
            }
            // The crate panics if stripping both ends of a token overlaps.
            "Strip" => {
                part["stop"].as_u64() != Some(0)
                    || part["start"].as_u64().is_none_or(|start| start > MAX_STRIPPED)
            }
            _ => false,
        };
        if !supported.contains(&kind(part)) || is_unsupported {
            return Err(format!("it decodes tokens by other rules ({})", kind(part)));
        }
    }
    Ok(())
}
