//! CTranslate2's folders: `model.bin` (versions 1 to 6), `config.json` and the vocabularies.
//!
//! ```text
//! u32 version · [from 2] string specification, u32 revision · u32 number of variables · variables · [from 3] aliases
//! variable   string name · u8 rank · u32 dims · [from 4] u8 type, u32 bytes · [up to 3] u8 size, u32 count · data
//! alias      string alias · string name of a variable or of another alias
//! string     u16 length with the NUL · bytes · NUL
//! ```
//!
//! A quantized weight is integers; `NAME_scale` has what they are divided by: for each row, or for all. An i16 weight without
//! one is from an early version, and divided by 1000.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::files::Files;
use super::tensors::{Divisor, ElementType};
use super::{FileBytes, ForeignTensor, FormatError, JsonObject, TensorSet, json_object};

/// The file with the weights.
pub const WEIGHTS: &str = "model.bin";
const CONFIG: &str = "config.json";
const NEWEST: u32 = 6;
const SCALE: &str = "_scale";
/// The scale of i16 weights that have none of their own.
const EARLY_I16_SCALE: f32 = 1000.0;

/// What `model.bin` has.
#[derive(Clone, Debug)]
pub struct Ctranslate2Weights {
    /// The version of the file's format.
    pub version: u32,
    /// What the model is, such as `TransformerSpec`; empty in version 1.
    pub specification: String,
    /// The revision of the specification.
    pub revision: u32,
    /// The variables, with the names of aliases too; quantized ones with their scales.
    pub tensors: TensorSet,
}

/// A whole folder.
#[derive(Clone, Debug)]
pub struct Ctranslate2Folder {
    /// The weights.
    pub weights: Ctranslate2Weights,
    /// `config.json`; empty in old folders, which have none.
    pub config: JsonObject,
    /// The tokens of sources, in the order of their ids.
    pub source_vocabulary: Vec<String>,
    /// The tokens of targets; the same if the model has one vocabulary.
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
    /// Reads the bytes of a `model.bin`, which is called `file` in messages.
    pub fn read(file: &str, bytes: FileBytes) -> Result<Ctranslate2Weights, FormatError> {
        let mut cursor = Cursor::new(file, &bytes);
        let version = cursor.u32("the version")?;
        if !(1..=NEWEST).contains(&version) {
            let found = format!("version {version} of CTranslate2's format, or is no such file");
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
        scale(&mut tensors)?;
        let mut aliases = HashMap::new();
        if version >= 3 {
            for _ in 0..cursor.u32("the number of aliases")? {
                let alias = string(&mut cursor, "an alias")?;
                let target = string(&mut cursor, "an alias's variable")?;
                if tensors.find(alias).is_some() || aliases.insert(alias, target).is_some() {
                    return Err(cursor.damaged(format!("the name `{alias}` is there twice")));
                }
            }
        }
        if cursor.left() > 0 {
            return Err(cursor.damaged(format!("{} bytes follow what should be the end", cursor.left())));
        }
        for (alias, target) in resolved(file, &aliases, &tensors)? {
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
        1..=3 => (of_item_size(code), stored * u64::from(code)),
        _ => (of_code(code), stored),
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

fn of_code(code: u8) -> Option<ElementType> {
    let codes = [
        ElementType::F32,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::F16,
        ElementType::Bf16,
    ];
    codes.get(usize::from(code)).copied()
}

fn of_item_size(size: u8) -> Option<ElementType> {
    match size {
        1 => Some(ElementType::I8),
        2 => Some(ElementType::I16),
        4 => Some(ElementType::F32),
        _ => None,
    }
}

/// Gives the quantized weights their scales.
fn scale(tensors: &mut TensorSet) -> Result<(), FormatError> {
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
        let refused =
            |problem: String| FormatError::damaged(tensors.file(), format!("variable `{name}`"), problem);
        let divisor = match found {
            Some(scale) if scale.element_type() != ElementType::F32 => {
                return Err(refused(format!("its scale is {:?}, not F32", scale.element_type())));
            }
            Some(scale) if scale.count() == 1 => Divisor::Whole(scale.values()[0]),
            Some(scale) if scale.count() == tensor.shape()[0] => {
                Divisor::Rows(FileBytes::from(scale.bytes().to_vec()))
            }
            Some(scale) => {
                let (rows, scales) = (tensor.shape()[0], scale.count());
                return Err(refused(format!("it has {rows} rows and {scales} scales")));
            }
            None if tensor.element_type() == ElementType::I16 => Divisor::Whole(EARLY_I16_SCALE),
            None => return Err(refused(format!("it is integers, but there is no `{name}{SCALE}`"))),
        };
        tensors.change(&name, |tensor| tensor.divided(divisor));
    }
    Ok(())
}

/// The tensors of aliases.
fn resolved<'a>(
    file: &str,
    aliases: &HashMap<&'a str, &'a str>,
    tensors: &TensorSet,
) -> Result<Vec<(&'a str, ForeignTensor)>, FormatError> {
    let mut known: HashMap<&str, &ForeignTensor> = HashMap::new();
    for &alias in aliases.keys() {
        let refused = |problem: String| FormatError::damaged(file, format!("alias `{alias}`"), problem);
        let (mut target, mut chain) = (alias, Vec::new());
        while let (Some(&next), None) = (aliases.get(target), known.get(target)) {
            chain.push(target);
            target = next;
            // A chain that is longer than there are aliases has come back to where it was.
            if chain.len() > aliases.len() {
                return Err(refused("it leads back to itself".to_owned()));
            }
        }
        let tensor = known.get(target).copied().or_else(|| tensors.find(target));
        let tensor = tensor.ok_or_else(|| refused(format!("there is no variable `{target}`")))?;
        known.extend(chain.into_iter().map(|name| (name, tensor)));
    }
    Ok(aliases.keys().map(|&alias| (alias, known[alias].clone())).collect())
}

/// The tokens of both sides.
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
    let (json, text) = (format!("{name}.json"), format!("{name}.txt"));
    if let Some(bytes) = files.find(&json)? {
        let tokens = serde_json::from_slice(&bytes).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            FormatError::damaged(files.label(&json), place, format!("it is no list of tokens ({error})"))
        })?;
        return Ok(Some(tokens));
    }
    let Some(bytes) = files.find(&text)? else { return Ok(None) };
    let whole = str::from_utf8(&bytes).map_err(|error| {
        FormatError::damaged(files.label(&text), format!("byte {}", error.valid_up_to()), "it is not UTF-8")
    })?;
    let lines: Vec<&str> = whole.strip_suffix('\n').unwrap_or(whole).split('\n').collect();
    // A token may end with a carriage return; where all do, it belongs to the line ends.
    let is_windows = lines.iter().all(|line| line.ends_with('\r'));
    let token = |line: &&str| if is_windows { line[..line.len() - 1].to_owned() } else { (*line).to_owned() };
    Ok(Some(lines.iter().map(token).collect()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A variable of a file that is written here.
    pub(in crate::store::formats) struct Written<'a>(
        pub(in crate::store::formats) &'a str,
        pub(in crate::store::formats) &'a [u32],
        pub(in crate::store::formats) u8,
        pub(in crate::store::formats) Vec<u8>,
    );

    fn text(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u16 + 1).to_le_bytes());
        out.extend(text.as_bytes());
        out.push(0);
    }

    pub(in crate::store::formats) fn written(
        version: u32,
        variables: &[Written<'_>],
        aliases: &[(&str, &str)],
    ) -> Vec<u8> {
        let mut out = version.to_le_bytes().to_vec();
        if version >= 2 {
            text(&mut out, "TransformerSpec");
            out.extend(7_u32.to_le_bytes());
        }
        out.extend((variables.len() as u32).to_le_bytes());
        for Written(name, shape, code, data) in variables {
            text(&mut out, name);
            out.push(shape.len() as u8);
            out.extend(shape.iter().flat_map(|dim| dim.to_le_bytes()));
            let sizes = [4_u8, 1, 2, 4, 2, 2];
            let size = sizes[usize::from(*code)];
            match version {
                1..=3 => {
                    out.push(size);
                    out.extend((data.len() as u32 / u32::from(size)).to_le_bytes());
                }
                _ => {
                    out.push(*code);
                    out.extend((data.len() as u32).to_le_bytes());
                }
            }
            out.extend(data);
        }
        if version >= 3 {
            out.extend((aliases.len() as u32).to_le_bytes());
            for (alias, target) in aliases {
                text(&mut out, alias);
                text(&mut out, target);
            }
        }
        out
    }

    pub(in crate::store::formats) fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn small(version: u32) -> Vec<u8> {
        let shorts = [1000_i16, -500].iter().flat_map(|value| value.to_le_bytes()).collect();
        let variables = [
            Written("a/weight", &[2, 2], 1, vec![10, 20, 0xFE, 4]),
            Written("a/weight_scale", &[2], 0, floats(&[10.0, 2.0])),
            Written("b/weight", &[1, 2], 2, shorts),
            Written("heads", &[], 1, vec![8]),
        ];
        written(version, &variables, &[("c/weight", "d/weight"), ("d/weight", "a/weight")])
    }

    fn read(bytes: &[u8]) -> Result<Ctranslate2Weights, FormatError> {
        Ctranslate2Weights::read("model.bin", bytes.to_vec().into())
    }

    #[test]
    fn every_version_has_its_variables() {
        for version in 1..=6 {
            let weights = read(&small(version)).expect("a whole file");
            assert_eq!(weights.specification, if version == 1 { "" } else { "TransformerSpec" });
            let values = |name: &str| weights.tensors.get(name).expect("a variable").values();
            assert_eq!(values("a/weight"), [1.0, 2.0, -1.0, 2.0], "version {version}");
            assert_eq!(values("b/weight"), [1.0, -0.5]);
            assert_eq!(weights.tensors.get("heads").expect("a number").scalar(), Some(8.0));
            if version >= 3 {
                assert_eq!(values("c/weight"), values("a/weight"));
                assert_eq!(values("d/weight"), values("a/weight"));
            }
        }
    }

    #[test]
    fn every_truncation_is_refused_with_its_place() {
        for version in 1..=6 {
            let whole = small(version);
            for end in 0..whole.len() {
                let message = read(&whole[..end]).expect_err("a part").to_string();
                assert!(message.starts_with("model.bin is damaged at byte "), "{end}: {message}");
            }
            assert!(
                read(&[&whole[..], b"x"].concat()).expect_err("more").to_string().contains("1 bytes follow")
            );
        }
    }

    #[test]
    fn wrong_counts_shapes_and_aliases_are_refused() {
        let refused = |bytes: &[u8]| read(bytes).expect_err("a bad file").to_string();
        let one = |shape: &[u32], data: &[f32]| written(6, &[Written("x", shape, 0, floats(data))], &[]);
        assert!(refused(&one(&[3], &[1.0, 2.0])).contains("variable `x`: the shape [3]"));
        assert!(refused(&one(&[u32::MAX; 8], &[1.0])).contains("does not fit"));
        let aliased =
            |aliases: &[(&str, &str)]| refused(&written(6, &[Written("x", &[], 0, floats(&[1.0]))], aliases));
        assert!(aliased(&[("a", "b"), ("b", "c"), ("c", "a")]).contains("leads back to itself"));
        assert!(aliased(&[("a", "a")]).contains("leads back to itself"));
        assert!(aliased(&[("a", "y")]).contains("no variable `y`"));
        assert!(aliased(&[("x", "x")]).contains("twice"));
        let integers = |scale: &[f32]| {
            let weight = Written("w", &[2, 1], 1, vec![1, 2]);
            let scales = Written("w_scale", &[scale.len() as u32], 0, floats(scale));
            if scale.is_empty() { written(6, &[weight], &[]) } else { written(6, &[weight, scales], &[]) }
        };
        assert!(refused(&integers(&[])).contains("no `w_scale`"));
        assert!(refused(&integers(&[1.0, 2.0, 3.0])).contains("2 rows and 3 scales"));
        let mut many = small(6);
        let count = 4 + 2 + "TransformerSpec".len() + 1 + 4;
        many[count..count + 4].fill(0xFF);
        assert!(refused(&many).contains("model.bin is damaged at byte"));
        assert!(refused(&7_u32.to_le_bytes()).contains("version 7"));
    }

    #[test]
    fn a_folder_has_its_vocabularies() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Files::Folder(folder.path().to_owned());
        let write =
            |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).expect("room");
        let refused = |files: &Files| Ctranslate2Folder::open(files).expect_err("a part").to_string();
        assert!(refused(&files).contains("no file model.bin"));
        write("model.bin", &small(2));
        assert!(refused(&files).contains("no file shared_vocabulary.json"));
        write("source_vocabulary.txt", b"<unk>\r\n\xE2\x96\x81a\r\n");
        assert!(refused(&files).contains("no file target_vocabulary.json"));
        write("target_vocabulary.txt", b"<unk>\nb\r\n\n");
        let opened = Ctranslate2Folder::open(&files).expect("a folder");
        assert_eq!(opened.source_vocabulary, ["<unk>", "▁a"]);
        assert_eq!(opened.target_vocabulary, ["<unk>", "b\r", ""]);
        write("shared_vocabulary.json", br#"["</s>", "x"]"#);
        write("config.json", br#"{"add_source_eos": true}"#);
        let opened = Ctranslate2Folder::open(&files).expect("a folder");
        assert_eq!(opened.target_vocabulary, ["</s>", "x"]);
        assert_eq!(opened.config["add_source_eos"], true);
        write("config.json", b"{\"a\": }");
        assert!(refused(&files).contains("config.json is damaged at line 1"));
    }
}
