//! `--attention`: every attention weight, in a file.
//!
//! ```text
//! FILE.json          [{"line": 1, "source": ["▁a", …], "target": ["▁ein", …, "<eos>"], "attention":
//!                      [{"layer": "decoder.0.cross_attention", "heads": [[[0.1, …], …], …]}, …]}, …]
//! FILE.safetensors   tensors "1.decoder.0.cross_attention" of heads × queries × keys; tokens in the metadata
//! ```
//!
//! Row i of a decoder's matrix is the step that predicts target token i; the last row predicts `<eos>`.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::layers::AttentionMap;
use heedful::store::output::Output;
use heedful::store::weights::{Metadata, header};
use heedful::tasks::translate::{Translation, Translator};
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::{Value, json};

use super::Arguments;

/// Writes attention weights line by line; the file appears as a whole at the end.
pub(super) struct AttentionFile {
    file: Output,
    contents: Contents,
}

/// What is kept in memory of the lines so far.
enum Contents {
    /// How many there are.
    Json(usize),
    /// What stands before the numbers.
    Safetensors { tensors: Vec<(String, TensorInfo)>, bytes: usize, metadata: Metadata },
}

impl AttentionFile {
    /// The extension of the name decides the format.
    pub(super) fn create(path: &Path, arguments: &Arguments) -> Result<AttentionFile> {
        let contents = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Contents::Json(0),
            Some("safetensors") => {
                Contents::Safetensors { tensors: Vec::new(), bytes: 0, metadata: Metadata::new() }
            }
            _ => bail!("{}: the file name must end in .json or .safetensors", path.display()),
        };
        let file = arguments.force.open(path, &arguments.inputs())?;
        if file.is_device() && matches!(contents, Contents::Safetensors { .. }) {
            bail!(
                "{} is a pipe or a device, and a .safetensors file begins with what is known last: name a file, or use .json",
                path.display()
            );
        }
        Ok(AttentionFile { file, contents })
    }

    /// Adds the attention of the best translation of line `number`.
    pub(super) fn add(
        &mut self,
        number: usize,
        translator: &Translator,
        translation: &Translation,
        maps: &[AttentionMap],
    ) -> Result<()> {
        let tokenizers = translator.tokenizers();
        let source: Vec<String> = translation.source.iter().map(|&id| tokenizers.source.piece(id)).collect();
        let output = translation.outputs.first().map_or(&[][..], |output| &output.hypothesis.tokens);
        let mut target: Vec<String> = output.iter().map(|&id| tokenizers.target.piece(id)).collect();
        target.push("<eos>".to_owned());
        match &mut self.contents {
            Contents::Json(lines) => {
                let layers: Vec<Value> = maps.iter().map(layer).collect();
                let line =
                    json!({ "line": number + 1, "source": source, "target": target, "attention": layers });
                self.file.add(if *lines == 0 { b"[" } else { b"," })?;
                self.file.add(&serde_json::to_vec(&line)?)?;
                *lines += 1;
            }
            Contents::Safetensors { tensors, bytes, metadata } => {
                for map in maps {
                    let shape = vec![map.heads(), map.queries.tokens(), map.keys.tokens()];
                    let start = *bytes;
                    for weights in &map.weights[0] {
                        let numbers: Vec<u8> =
                            weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
                        self.file.add(&numbers)?;
                        *bytes += numbers.len();
                    }
                    let info = TensorInfo { dtype: Dtype::F32, shape, data_offsets: (start, *bytes) };
                    tensors.push((format!("{}.{}", number + 1, map.site), info));
                }
                metadata.insert(format!("{}.source", number + 1), json!(source).to_string());
                metadata.insert(format!("{}.target", number + 1), json!(target).to_string());
            }
        }
        Ok(())
    }

    /// Puts the file in its place.
    pub(super) fn finish(self) -> Result<()> {
        match self.contents {
            Contents::Json(0) => self.file.finish_with(b"[]")?,
            Contents::Json(_) => self.file.finish_with(b"]")?,
            Contents::Safetensors { tensors, metadata, .. } => {
                self.file.finish_behind(&header(&metadata, &tensors))?;
            }
        }
        Ok(())
    }
}

fn layer(map: &AttentionMap) -> Value {
    let keys = map.keys.tokens().max(1);
    let head = |weights: &Vec<f32>| weights.chunks_exact(keys).map(<[f32]>::to_vec).collect::<Vec<_>>();
    let heads: Vec<_> = map.weights[0].iter().map(head).collect();
    json!({ "layer": map.site.to_string(), "heads": heads })
}
