//! Hugging Face folders: `config.json`, and the weights as safetensors in one file or in shards.

pub(crate) mod write;

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use super::files::{Files, is_plain_name};
use super::tensors::ElementType;
use super::{FileBytes, ForeignTensor, FormatError, JsonObject, TensorSet, json_object};

/// The file with the model's settings.
pub const CONFIG: &str = "config.json";
/// The file with the weights.
pub(crate) const WEIGHTS: &str = "model.safetensors";
/// The file with a model's head, for formats that have no place for it.
pub(crate) const HEAD: &str = "head.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const PICKLED: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];

/// A model folder.
#[derive(Clone, Debug)]
pub struct HuggingFaceFolder {
    /// `config.json`.
    pub config: JsonObject,
    /// The weights, by their names in the files.
    pub tensors: TensorSet,
    /// The other files: vocabularies, licence, model card.
    pub files: Files,
}

impl HuggingFaceFolder {
    /// Reads only a folder's settings.
    pub fn config(folder: &Path) -> Result<JsonObject, FormatError> {
        let files = Files::Folder(folder.to_owned());
        json_object(&files.label(CONFIG), &files.get(CONFIG)?)
    }

    /// Reads a folder.
    pub fn open(folder: &Path) -> Result<HuggingFaceFolder, FormatError> {
        let files = Files::Folder(folder.to_owned());
        let config = HuggingFaceFolder::config(folder)?;
        let tensors = match (files.find(WEIGHTS)?, files.find(INDEX)?) {
            (Some(bytes), _) => read_tensors(&files.label(WEIGHTS), &bytes)?,
            (None, Some(index)) => sharded(&files, &index)?,
            (None, None) => return Err(missing_weights(&files, folder)),
        };
        Ok(HuggingFaceFolder { config, tensors, files })
    }
}

/// The tensors of one safetensors file; `file` is the name in error messages.
pub(crate) fn read_tensors(file: &str, bytes: &FileBytes) -> Result<TensorSet, FormatError> {
    let mut tensors = TensorSet::new(file);
    add(&mut tensors, file, bytes)?;
    Ok(tensors)
}

/// An empty set for a missing file.
pub(crate) fn no_tensors(file: &str) -> TensorSet {
    TensorSet::new(file)
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The tensors of all shards of an index; each must be in the shard that the index states.
fn sharded(files: &Files, index: &[u8]) -> Result<TensorSet, FormatError> {
    let file = files.label(INDEX);
    let index: Index = serde_json::from_slice(index).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        FormatError::damaged(&file, place, format!("it is not a map from tensors to files ({error})"))
    })?;
    let mut shards: Vec<&str> = index.weight_map.values().map(String::as_str).collect();
    shards.sort_unstable();
    shards.dedup();
    let mut tensors = TensorSet::new(&file);
    for shard in shards {
        if !is_plain_name(shard) {
            let problem = "it is not the name of a file in the same folder";
            return Err(FormatError::damaged(&file, format!("`{}`", shard.escape_debug()), problem));
        }
        add(&mut tensors, &files.label(shard), &files.get(shard)?)?;
    }
    if let Some((name, shard)) = index.weight_map.iter().find(|(name, _)| tensors.find(name).is_none()) {
        let problem = format!("it should be in {shard}, but is not");
        return Err(FormatError::damaged(&file, format!("tensor `{name}`"), problem));
    }
    Ok(tensors)
}

/// Adds the tensors of a safetensors file.
fn add(tensors: &mut TensorSet, file: &str, bytes: &FileBytes) -> Result<(), FormatError> {
    let damaged = |place: String, problem: String| FormatError::damaged(file, place, problem);
    let (length, header) = SafeTensors::read_metadata(bytes).map_err(|error| {
        damaged("its header".to_owned(), format!("it is truncated or not a safetensors file ({error})"))
    })?;
    // The header's length is stored in 8 bytes before it.
    let data = length + 8;
    let mut infos: Vec<_> = header.tensors().into_iter().collect();
    infos.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, info) in infos {
        let element = element(info.dtype).ok_or_else(|| {
            let remedy = "Save the weights as float32, float16 or bfloat16";
            FormatError::unsupported(file, format!("a tensor `{name}` of {}", info.dtype), remedy)
        })?;
        let range = data + info.data_offsets.0..data + info.data_offsets.1;
        if range.start > range.end || range.end > bytes.len() {
            return Err(damaged(format!("tensor `{name}`"), "it is truncated".to_owned()));
        }
        let tensor = ForeignTensor::new(info.shape.clone(), element, bytes.slice(range))
            .map_err(|problem| damaged(format!("tensor `{name}`"), problem))?;
        tensors.insert(&name, tensor)?;
    }
    Ok(())
}

fn element(dtype: Dtype) -> Option<ElementType> {
    Some(match dtype {
        Dtype::F32 => ElementType::F32,
        Dtype::F64 => ElementType::F64,
        Dtype::F16 => ElementType::F16,
        Dtype::BF16 => ElementType::Bf16,
        Dtype::I8 => ElementType::I8,
        Dtype::I16 => ElementType::I16,
        Dtype::I32 => ElementType::I32,
        Dtype::I64 => ElementType::I64,
        Dtype::U8 | Dtype::BOOL => ElementType::U8,
        _ => return None,
    })
}

/// The error for a folder without safetensors. Unpickling can execute code, so heedful does not read pickled
/// weights.
fn missing_weights(files: &Files, folder: &Path) -> FormatError {
    let has_pickled = PICKLED.iter().any(|name| matches!(files.find(name), Ok(Some(_))));
    if !has_pickled {
        let remedy = "Download it with its weights as safetensors";
        return FormatError::missing(files.label(""), format!("file {WEIGHTS}"), remedy);
    }
    let remedy = format!(
        "Convert them once: cd {} && python3 -c \"import glob, torch, safetensors.torch as s; \
         w = {{k: v.clone() for f in glob.glob('pytorch_model*.bin') \
         for k, v in torch.load(f, map_location='cpu', weights_only=True).items()}}; \
         s.save_file(w, '{WEIGHTS}', {{'format': 'pt'}})\"",
        folder.display()
    );
    FormatError::unsupported(files.label(""), format!("only pickled weights ({})", PICKLED[0]), remedy)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn weights(names: &[&str]) -> Vec<u8> {
        let bytes: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let view = |name: &&str| {
            let view =
                safetensors::tensor::TensorView::new(Dtype::F32, vec![2], &bytes).expect("two numbers");
            ((*name).to_owned(), view)
        };
        safetensors::serialize(names.iter().map(view).collect::<Vec<_>>(), None).expect("memory")
    }

    fn refused(folder: &Path) -> String {
        HuggingFaceFolder::open(folder).expect_err("a bad folder").to_string()
    }

    #[test]
    fn tensors_are_read_from_one_file_and_from_shards() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &[u8]| {
            fs::write(folder.path().join(name), content).expect("a writable folder");
        };
        write("config.json", br#"{"model_type": "bert"}"#);
        write("a.safetensors", &weights(&["x", "y"]));
        write("b.safetensors", &weights(&["z"]));
        let index = |shard: &str| format!(r#"{{"weight_map": {{"x": "a.safetensors", "z": "{shard}"}}}}"#);
        write(INDEX, index("b.safetensors").as_bytes());
        let opened = HuggingFaceFolder::open(folder.path()).expect("a folder");
        assert_eq!(opened.tensors.names().collect::<Vec<_>>(), ["x", "y", "z"]);
        assert_eq!(opened.config["model_type"], "bert");
        for shard in ["../b.safetensors", "/b", "..", "", "a/b"] {
            write(INDEX, index(shard).as_bytes());
            assert!(refused(folder.path()).contains("same folder"), "{shard}");
        }
        write(INDEX, index("a.safetensors").as_bytes());
        assert!(refused(folder.path()).contains("tensor `z`: it should be in a.safetensors"));
        write(WEIGHTS, &weights(&["only"]));
        let opened = HuggingFaceFolder::open(folder.path()).expect("a folder");
        assert_eq!(opened.tensors.get("only").expect("a tensor").values(), [1.0, 2.0]);
    }

    #[test]
    fn every_truncation_is_rejected_and_pickles_are_never_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &[u8]| {
            fs::write(folder.path().join(name), content).expect("a writable folder");
        };
        assert!(refused(folder.path()).contains("no file config.json"));
        write("config.json", b"{}");
        assert!(refused(folder.path()).contains("no file model.safetensors"));
        write("pytorch_model.bin", b"");
        assert!(refused(folder.path()).contains("python3 -c"));
        let whole = weights(&["x", "y"]);
        for end in 0..whole.len() {
            write(WEIGHTS, &whole[..end]);
            assert!(refused(folder.path()).contains("model.safetensors is damaged"), "{end}");
        }
    }
}
