//! CTranslate2 folders: `model.bin` (versions 1 to 6), `config.json` and the vocabularies.
//!
//! ```text
//! u32 version · [from 2] string specification, u32 revision · u32 number of variables · variables · [from 3] aliases
//! variable   string name · u8 rank · u32 dims · [from 4] u8 type, u32 bytes · [up to 3] u8 size, u32 count · data
//! alias      string alias · string name of a variable or of another alias
//! string     u16 length with the NUL · bytes · NUL
//! ```
//!
//! A quantized weight has integer elements; `NAME_scale` has their divisor, one for each row or one for all.
//! An i16 weight without a scale is from an early version and is divided by 1000.

mod write;

use std::collections::HashMap;

use super::cursor::Cursor;
use super::files::Files;
use super::tensors::{Divisor, ElementType};
use super::{FileBytes, ForeignTensor, FormatError, JsonObject, TensorSet, json_object};

pub(crate) use self::write::Ctranslate2Contents;

/// The file with the weights.
pub const WEIGHTS: &str = "model.bin";
/// The file with the settings.
pub(crate) const CONFIG: &str = "config.json";
const NEWEST: u32 = 6;
/// The types, indexed by code.
const CODES: [ElementType; 6] = [
    ElementType::F32,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::F16,
    ElementType::Bf16,
];
const SCALE: &str = "_scale";
/// The scale of i16 weights without `NAME_scale`.
const EARLY_I16_SCALE: f32 = 1000.0;

/// The contents of `model.bin`.
#[derive(Clone, Debug)]
pub struct Ctranslate2Weights {
    /// The version of the file's format.
    pub version: u32,
    /// The kind of model, such as `TransformerSpec`; empty in version 1.
    pub specification: String,
    /// The revision of the specification.
    pub revision: u32,
    /// The variables, also under their aliases; quantized ones with their scales.
    pub tensors: TensorSet,
}

/// A model folder.
#[derive(Clone, Debug)]
pub struct Ctranslate2Folder {
    /// The weights.
    pub weights: Ctranslate2Weights,
    /// `config.json`; empty in old folders without it.
    pub config: JsonObject,
    /// The source tokens in order of their ids.
    pub source_vocabulary: Vec<String>,
    /// The target tokens; equal to the source tokens if the model has one vocabulary.
    pub target_vocabulary: Vec<String>,
}

impl Ctranslate2Folder {
    /// Reads all files of a folder.
    pub fn open(files: &Files) -> Result<Ctranslate2Folder, FormatError> {
        let weights = Ctranslate2Weights::read(&files.label(WEIGHTS), files.get(WEIGHTS)?)?;
        let config = match files.find(CONFIG)? {
            Some(bytes) => json_object(&files.label(CONFIG), &bytes)?,
            None => JsonObject::new(),
        };
        let (source_vocabulary, target_vocabulary) = vocabularies(files)?;
        Ok(Ctranslate2Folder { weights, config, source_vocabulary, target_vocabulary })
    }
}

impl Ctranslate2Weights {
    /// Reads the bytes of a `model.bin`; `file` is the name in error messages.
    pub fn read(file: &str, bytes: FileBytes) -> Result<Ctranslate2Weights, FormatError> {
        let mut cursor = Cursor::new(file, &bytes);
        let version = cursor.u32("the version")?;
        if !(1..=NEWEST).contains(&version) {
            let found = format!("version {version} of CTranslate2's format, or is not a CTranslate2 file");
            let remedy = "Convert the model again with ctranslate2 2 to 4, whose versions are 1 to 6";
            return Err(FormatError::unsupported(file, found, remedy));
        }
        let (specification, revision) = match version {
            1 => (String::new(), 1),
            _ => (string(&mut cursor, "the specification")?.to_owned(), cursor.u32("the revision")?),
        };
        let mut tensors = TensorSet::new(file);
        for _ in 0..cursor.u32("the number of variables")? {
            let (name, tensor) = variable(file, &bytes, &mut cursor, version)?;
            tensors.insert(name, tensor)?;
        }
        attach_scales(&mut tensors)?;
        let mut aliases = HashMap::new();
        if version >= 3 {
            for _ in 0..cursor.u32("the number of aliases")? {
                let alias = string(&mut cursor, "an alias")?;
                let target = string(&mut cursor, "an alias's variable")?;
                if tensors.find(alias).is_some() || aliases.insert(alias, target).is_some() {
                    return Err(cursor.damaged(format!("the name `{alias}` is a duplicate")));
                }
            }
        }
        if cursor.left() > 0 {
            return Err(cursor.damaged(format!("{} bytes follow the expected end", cursor.left())));
        }
        for (alias, target) in resolve_aliases(file, &aliases, &tensors)? {
            tensors.insert(alias, target)?;
        }
        Ok(Ctranslate2Weights { version, specification, revision, tensors })
    }
}

fn string<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a str, FormatError> {
    let length = cursor.u16(what)?;
    cursor.text_with_nul(u64::from(length), what)
}

fn variable<'a>(
    file: &str,
    bytes: &FileBytes,
    cursor: &mut Cursor<'a>,
    version: u32,
) -> Result<(&'a str, ForeignTensor), FormatError> {
    let name = string(cursor, "a variable's name")?;
    let rank = cursor.u8("a variable's rank")?;
    let dims = cursor.take(u64::from(rank) * 4, "a variable's shape")?;
    let shape = dims.as_chunks::<4>().0.iter().map(|dim| u32::from_le_bytes(*dim) as usize).collect();
    let code = cursor.u8("a variable's type")?;
    let stored = u64::from(cursor.u32("a variable's size")?);
    let (element, size) = match version {
        1..=3 => (type_of_size(code), stored * u64::from(code)),
        _ => (type_of_code(code), stored),
    };
    let element = element.ok_or_else(|| {
        let found = format!("a variable `{name}` of the unknown type {code}");
        FormatError::unsupported(file, found, "Convert the model again without quantization")
    })?;
    let range = cursor.range(size, &format!("the variable `{name}`"))?;
    let tensor = ForeignTensor::new(shape, element, bytes.slice(range.clone())).map_err(|problem| {
        FormatError::damaged(file, format!("byte {}, variable `{name}`", range.start), problem)
    })?;
    Ok((name, tensor))
}

fn type_of_code(code: u8) -> Option<ElementType> {
    CODES.get(usize::from(code)).copied()
}

fn type_of_size(size: u8) -> Option<ElementType> {
    match size {
        1 => Some(ElementType::I8),
        2 => Some(ElementType::I16),
        4 => Some(ElementType::F32),
        _ => None,
    }
}

/// Attaches the scales to the quantized weights.
fn attach_scales(tensors: &mut TensorSet) -> Result<(), FormatError> {
    let is_quantized = |tensor: &ForeignTensor| {
        matches!(tensor.element_type(), ElementType::I8 | ElementType::I16) && tensor.shape().len() >= 2
    };
    let quantized: Vec<String> = tensors
        .names()
        .filter(|name| tensors.find(name).is_some_and(is_quantized))
        .map(str::to_owned)
        .collect();
    for name in quantized {
        let (tensor, found) = (tensors.get(&name)?, tensors.find(&format!("{name}{SCALE}")));
        let damaged =
            |problem: String| FormatError::damaged(tensors.file(), format!("variable `{name}`"), problem);
        let divisor = match found {
            Some(scale) if scale.element_type() != ElementType::F32 => {
                return Err(damaged(format!("its scale is {:?}, not F32", scale.element_type())));
            }
            Some(scale) if scale.count() == 1 => Divisor::Whole(scale.values()[0]),
            Some(scale) if scale.count() == tensor.shape()[0] => {
                Divisor::Rows(FileBytes::from(scale.bytes().to_vec()))
            }
            Some(scale) => {
                let (rows, scales) = (tensor.shape()[0], scale.count());
                return Err(damaged(format!("it has {rows} rows and {scales} scales")));
            }
            None if tensor.element_type() == ElementType::I16 => Divisor::Whole(EARLY_I16_SCALE),
            None => {
                return Err(damaged(format!("its elements are integers, but there is no `{name}{SCALE}`")));
            }
        };
        tensors.change(&name, |tensor| tensor.divided(divisor));
    }
    Ok(())
}

/// Resolves the aliases to tensors.
fn resolve_aliases<'a>(
    file: &str,
    aliases: &HashMap<&'a str, &'a str>,
    tensors: &TensorSet,
) -> Result<Vec<(&'a str, ForeignTensor)>, FormatError> {
    let mut known: HashMap<&str, &ForeignTensor> = HashMap::new();
    for &alias in aliases.keys() {
        let damaged = |problem: String| FormatError::damaged(file, format!("alias `{alias}`"), problem);
        let (mut target, mut chain) = (alias, Vec::new());
        while let (Some(&next), None) = (aliases.get(target), known.get(target)) {
            chain.push(target);
            target = next;
            // A chain with more links than there are aliases is a cycle.
            if chain.len() > aliases.len() {
                return Err(damaged("it is part of a cycle".to_owned()));
            }
        }
        let tensor = known.get(target).copied().or_else(|| tensors.find(target));
        let tensor = tensor.ok_or_else(|| damaged(format!("there is no variable `{target}`")))?;
        known.extend(chain.into_iter().map(|name| (name, tensor)));
    }
    Ok(aliases.keys().map(|&alias| (alias, known[alias].clone())).collect())
}

/// The source and target vocabularies.
fn vocabularies(files: &Files) -> Result<(Vec<String>, Vec<String>), FormatError> {
    for shared in ["shared_vocabulary", "vocabulary"] {
        if let Some(tokens) = vocabulary(files, shared)? {
            return Ok((tokens.clone(), tokens));
        }
    }
    match (vocabulary(files, "source_vocabulary")?, vocabulary(files, "target_vocabulary")?) {
        (Some(source), Some(target)) => Ok((source, target)),
        (source, _) => {
            let missing = if source.is_some() { "target_vocabulary.json" } else { "shared_vocabulary.json" };
            let remedy = "Copy the model's vocabulary into the folder";
            Err(FormatError::missing(files.label(""), format!("file {missing}"), remedy))
        }
    }
}

fn vocabulary(files: &Files, name: &str) -> Result<Option<Vec<String>>, FormatError> {
    let (json, txt) = (format!("{name}.json"), format!("{name}.txt"));
    if let Some(bytes) = files.find(&json)? {
        let tokens = serde_json::from_slice(&bytes).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            FormatError::damaged(files.label(&json), place, format!("it is not a list of tokens ({error})"))
        })?;
        return Ok(Some(tokens));
    }
    let Some(bytes) = files.find(&txt)? else { return Ok(None) };
    let text = str::from_utf8(&bytes).map_err(|error| {
        FormatError::damaged(files.label(&txt), format!("byte {}", error.valid_up_to()), "it is not UTF-8")
    })?;
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    // A token may end with a carriage return; if all lines do, these are Windows line endings.
    let is_windows = lines.iter().all(|line| line.ends_with('\r'));
    let token = |line: &&str| if is_windows { line[..line.len() - 1].to_owned() } else { (*line).to_owned() };
    Ok(Some(lines.iter().map(token).collect()))
}

#[cfg(test)]
pub(super) mod tests;
