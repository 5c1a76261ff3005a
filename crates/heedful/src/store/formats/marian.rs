//! Marian's models: `.npz`, or `.bin` of version 1, each with its settings as YAML in the array
//! `special:model.yml`.
//!
//! ```text
//! u64 version · u64 n · n × (u64 bytes of the name, type, rank, bytes of the data) · names with NUL · i32 shapes
//! u64 padding · padding · data of each, padded
//! ```
//!
//! An intgemm8 matrix is int8, followed by one f32 by which the values are divided. It is stored
//! column-major, as intgemm reads it; only `Wemb`, whose rows are looked up, is row-major.

use std::path::Path;

use super::cursor::Cursor;
use super::tensors::{Divisor, ElementType, Order, elements};
use super::yaml::Yaml;
use super::zip::{Archive, is_zip};
use super::{FileBytes, ForeignTensor, FormatError, TensorSet, npz};

const SETTINGS: &str = "special:model.yml";
const EMBEDDING: &str = "Wemb";
const VERSION: u64 = 1;
/// The size of an item in the table.
const ITEM_BYTES: u64 = 32;
const INTGEMM8: u64 = 0x4101;
/// Type flags of packed matrices: FBGEMM's and intgemm's.
const PACKED: u64 = 0x800;
const INTGEMM: u64 = 0x4000;

/// A Marian model.
#[derive(Clone, Debug)]
pub struct MarianModel {
    /// The matrices as inputs × outputs.
    pub tensors: TensorSet,
    /// The settings of its training.
    pub settings: Yaml,
}

impl MarianModel {
    /// Reads a `.npz` or a `.bin`, which is detected by content.
    pub fn open(path: &Path) -> Result<MarianModel, FormatError> {
        MarianModel::read(&path.display().to_string(), FileBytes::open(path)?)
    }

    /// As [`MarianModel::open`], for bytes; `file` is the name in error messages.
    pub fn read(file: &str, bytes: FileBytes) -> Result<MarianModel, FormatError> {
        let tensors =
            if is_zip(&bytes) { npz::read(&Archive::new(file, bytes)?)? } else { binary(file, &bytes)? };
        let settings = tensors.find(SETTINGS).ok_or_else(|| {
            let remedy =
                "Export the model with its settings: Marian writes them into every model that it saves";
            FormatError::missing(file, format!("`{SETTINGS}`"), remedy)
        })?;
        let text = settings.bytes();
        // Marian includes the final NUL.
        let text = str::from_utf8(text.strip_suffix(&[0]).unwrap_or(text));
        let text =
            text.map_err(|_| FormatError::damaged(file, format!("`{SETTINGS}`"), "it is not UTF-8"))?;
        let settings = Yaml::parse(&format!("{file}:{SETTINGS}"), text)?;
        Ok(MarianModel { tensors, settings })
    }
}

/// The tokens of a `vocab.yml` in order of their ids.
pub fn vocabulary(file: &str, bytes: &[u8]) -> Result<Vec<String>, FormatError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        FormatError::damaged(file, format!("byte {}", error.valid_up_to()), "it is not UTF-8")
    })?;
    let yaml = Yaml::parse(file, text)?;
    let mut tokens: Vec<Option<&str>> = vec![None; yaml.entries().count()];
    for (token, _) in yaml.entries() {
        let id = yaml.text(token).and_then(|id| id.parse::<usize>().ok());
        match id.and_then(|id| tokens.get_mut(id)) {
            Some(entry @ None) => *entry = Some(token),
            _ => {
                let problem = "its id is not a number, is a duplicate, or leaves a gap";
                return Err(FormatError::damaged(file, format!("the token `{token}`"), problem));
            }
        }
    }
    Ok(tokens.into_iter().flatten().map(str::to_owned).collect())
}

/// Whether bytes begin like a `.bin`.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&VERSION.to_le_bytes())
}

struct Item<'a> {
    name: &'a str,
    code: u64,
    shape: Vec<usize>,
    bytes: u64,
}

fn binary(file: &str, bytes: &FileBytes) -> Result<TensorSet, FormatError> {
    let mut cursor = Cursor::new(file, bytes);
    let version = cursor.u64("the version")?;
    if version != VERSION {
        let found = format!("version {version} of Marian's format, or is not a Marian file");
        return Err(FormatError::unsupported(file, found, "Import the model's .npz instead"));
    }
    let mut tensors = TensorSet::new(file);
    for item in items(&mut cursor)? {
        let range = cursor.range(item.bytes, &format!("the variable `{}`", item.name))?;
        tensors.insert(item.name, tensor(file, &item, bytes.slice(range))?)?;
    }
    Ok(tensors)
}

/// The table before the data.
fn items<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<Item<'a>>, FormatError> {
    let count = cursor.u64("the number of variables")?;
    let table = cursor.take(count.saturating_mul(ITEM_BYTES), "the table of variables")?;
    let (fields, _) = table.as_chunks::<8>();
    let fields: Vec<u64> = fields.iter().map(|field| u64::from_le_bytes(*field)).collect();
    let (rows, _) = fields.as_chunks::<4>();
    let mut names = Vec::with_capacity(rows.len());
    for [length, ..] in rows {
        names.push(cursor.text_with_nul(*length, "a variable's name")?);
    }
    let mut items = Vec::with_capacity(rows.len());
    for (&[_, code, rank, bytes], name) in rows.iter().zip(names) {
        let dims = cursor.take(rank.saturating_mul(4), &format!("the shape of `{name}`"))?;
        let dims = dims.as_chunks::<4>().0.iter().map(|dim| usize::try_from(i32::from_le_bytes(*dim)));
        let shape = dims.collect::<Result<_, _>>();
        let shape = shape.map_err(|_| cursor.damaged(format!("`{name}` has an axis below 0")))?;
        items.push(Item { name, code, shape, bytes });
    }
    let padding = cursor.u64("the padding")?;
    cursor.range(padding, "the padding")?;
    Ok(items)
}

/// Reads a variable, whose bytes may include padding.
fn tensor(file: &str, item: &Item<'_>, bytes: FileBytes) -> Result<ForeignTensor, FormatError> {
    let place = format!("variable `{}`", item.name);
    let damaged = |problem: String| FormatError::damaged(file, &place, problem);
    let element = element(item.code).ok_or_else(|| unknown(file, item))?;
    let needed = elements(&item.shape, element).map(|count| count * element.bytes());
    let needed = needed.filter(|&needed| needed <= bytes.len());
    let needed = needed
        .ok_or_else(|| damaged(format!("its shape {:?} does not fit {} bytes", item.shape, bytes.len())))?;
    let tensor = ForeignTensor::new(item.shape.clone(), element, bytes.slice(0..needed)).map_err(damaged)?;
    if item.code != INTGEMM8 {
        return Ok(tensor);
    }
    let multiplier = bytes[needed..].first_chunk::<4>().map(|bytes| f32::from_le_bytes(*bytes));
    let multiplier = multiplier.ok_or_else(|| damaged("its multiplier is missing".to_owned()))?;
    let is_table = item.name == EMBEDDING || item.shape.len() != 2;
    let order = if is_table { Order::RowMajor } else { Order::ColumnMajor };
    Ok(tensor.ordered(order).divided(Divisor::Whole(multiplier)))
}

fn element(code: u64) -> Option<ElementType> {
    Some(match code {
        0x404 => ElementType::F32,
        0x408 => ElementType::F64,
        0x402 => ElementType::F16,
        0x101 | INTGEMM8 => ElementType::I8,
        0x102 => ElementType::I16,
        0x104 => ElementType::I32,
        0x108 => ElementType::I64,
        0x201 => ElementType::U8,
        _ => return None,
    })
}

fn unknown(file: &str, item: &Item<'_>) -> FormatError {
    let is_packed = item.code & (PACKED | INTGEMM) != 0;
    let kind = if is_packed { "values packed for a matrix product" } else { "an unknown type" };
    let found = format!("a variable `{}` with {kind} ({:#x})", item.name, item.code);
    let remedy =
        "Import the .npz, or a .bin that `marian-conv --gemm-type intgemm8` or `float32` made from it";
    FormatError::unsupported(file, found, remedy)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::npz::tests::array;
    use super::super::zip::tests::written as zip;
    use super::*;

    const YAML: &[u8] = b"dim-emb: 2\ndim-vocabs:\n  - 3\n  - 3\n\0";

    /// Name, shape, type and bytes of a variable.
    type Variable<'a> = (&'a str, &'a [i32], u64, Vec<u8>);

    pub(in crate::store::formats) fn written(variables: &[Variable<'_>]) -> Vec<u8> {
        let mut out = [1, variables.len() as u64].map(u64::to_le_bytes).as_flattened().to_vec();
        for (name, shape, code, data) in variables {
            let item = [name.len() as u64 + 1, *code, shape.len() as u64, data.len() as u64];
            out.extend(item.map(u64::to_le_bytes).as_flattened());
        }
        for (name, ..) in variables {
            out.extend([name.as_bytes(), b"\0"].concat());
        }
        for (_, shape, ..) in variables {
            out.extend(shape.iter().flat_map(|dim| dim.to_le_bytes()));
        }
        out.extend(3_u64.to_le_bytes());
        out.extend([0; 3]);
        variables.iter().for_each(|(.., data)| out.extend(data));
        out
    }

    fn small() -> Vec<u8> {
        let quantized =
            |numbers: &[u8], multiplier: f32| [numbers, &multiplier.to_le_bytes(), &[0; 7]].concat();
        written(&[
            ("Wemb", &[3, 2], INTGEMM8, quantized(&[2, 4, 6, 8, 10, 12], 2.0)),
            ("encoder_l1_ffn_W1", &[2, 3], INTGEMM8, quantized(&[4, 16, 8, 20, 12, 24], 4.0)),
            ("encoder_l1_ffn_b1", &[1, 1], 0x404, 0.5_f32.to_le_bytes().to_vec()),
            (SETTINGS, &[YAML.len() as i32], 0x101, YAML.to_vec()),
        ])
    }

    fn read(bytes: &[u8]) -> Result<MarianModel, FormatError> {
        MarianModel::read("model.bin", bytes.to_vec().into())
    }

    #[test]
    fn matrices_are_read_in_row_major_order() {
        let model = read(&small()).expect("a model");
        let values = |name: &str| model.tensors.get(name).expect("a variable").values();
        assert_eq!(values("Wemb"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(values("encoder_l1_ffn_W1"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(values("encoder_l1_ffn_b1"), [0.5]);
        assert_eq!(model.settings.number("dim-emb"), Some(2.0));
    }

    #[test]
    fn an_npz_is_detected() {
        let numbers: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let matrix = array("'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)", &numbers);
        let settings = format!("'descr': '|i1', 'fortran_order': False, 'shape': ({},)", YAML.len());
        let settings = array(&settings, YAML);
        let model =
            read(&zip(&[("Wemb.npy", &matrix), ("special:model.yml.npy", &settings)], 0)).expect("a model");
        assert_eq!(model.tensors.get("Wemb").expect("a variable").values(), [1.0, 2.0]);
        let without = read(&zip(&[("Wemb.npy", &matrix)], 0)).expect_err("no settings").to_string();
        assert!(without.contains("special:model.yml"), "{without}");
    }

    #[test]
    fn a_vocabulary_is_sorted_by_id() {
        let tokens = |text: &str| vocabulary("vocab.yml", text.as_bytes());
        assert_eq!(tokens("</s>: 0\nb: 2\n\"▁a\": 1\n").expect("a vocabulary"), ["</s>", "▁a", "b"]);
        for text in ["a: 0\nb: 0", "a: 0\nb: 2", "a: x", "a: 0\nb: 99999999999"] {
            assert!(
                tokens(text).expect_err("a bad vocabulary").to_string().contains("the token `"),
                "{text}"
            );
        }
    }

    #[test]
    fn every_truncation_is_rejected() {
        let whole = small();
        for end in 0..whole.len() {
            let message = read(&whole[..end]).expect_err("a part").to_string();
            assert!(message.starts_with("model.bin "), "{end}: {message}");
        }
    }

    #[test]
    fn wrong_counts_and_packed_matrices_are_rejected() {
        let refused = |bytes: &[u8]| read(bytes).expect_err("a bad file").to_string();
        let one = |shape: &[i32], code, data: &[u8]| refused(&written(&[("x", shape, code, data.to_vec())]));
        assert!(one(&[-1], 0x404, &[]).contains("below 0"));
        assert!(one(&[i32::MAX; 4], 0x404, &[0; 8]).contains("does not fit"));
        assert!(one(&[4], INTGEMM8, &[0; 6]).contains("multiplier"));
        for code in [0x5101, 0x4102, 0x802, 0x1801] {
            assert!(one(&[1], code, &[0; 8]).contains("packed for a matrix product"), "{code:#x}");
        }
        assert!(one(&[1], 0x9, &[0; 8]).contains("unknown type (0x9)"));
        let mut many = small();
        many[8..16].fill(0xFF);
        assert!(refused(&many).contains("the table of variables"));
        assert!(refused(&2_u64.to_le_bytes()).contains("version 2"));
    }
}
