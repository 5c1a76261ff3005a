//! `--attention`: a file with all attention weights, in one format for every command that runs a model.
//!
//! ```text
//! FILE.json          [{"line": 1, "source": ["▁a", …], "target": ["▁ein", …, "<eos>"], "attention":
//!                      [{"layer": "decoder.0.cross", "heads": [[[0.1, …], …], …], "scores": …}, …]}, …]
//! FILE.safetensors   tensors "1.decoder.0.cross" of heads × queries × keys; tokens in the metadata
//! ```
//!
//! `--raw-scores` adds the scores before the softmax. JSON: `"scores"`, shaped like the heads, null at masked
//! keys. Safetensors: tensors "1.decoder.0.cross.scores", −∞ at masked keys.
//!
//! | | source | target | queries |
//! |---|---|---|---|
//! | translator | the source | the translation and `<eos>` | row i of a decoder predicts target token i |
//! | classifier | the text, after `<bos>` if the model uses it | the label | the label, in attention pooling |
//! | language model | empty | the text, and `<eos>` if the model predicts it | row i predicts token i |
//! | masked language model | the text | the best prediction for each gap | the text's tokens |

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::layers::{AttentionMap, Pass};
use heedful::models::Model;
use heedful::store::output::OutputFile;
use heedful::store::weights::{Metadata, header};
use heedful::tasks::classify::Classifier;
use heedful::tasks::language::Generator;
use heedful::tasks::translate::{Translation, Translator};
use heedful::tensor::Precision;
use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde_json::{Value, json};

use crate::output::Force;

/// `--attention` and `--raw-scores`.
#[derive(clap::Args)]
pub(crate) struct AttentionArguments {
    /// Write the attention weights of every layer and head to this file: .json or .safetensors
    #[arg(id = "attention", long = "attention", value_name = "FILE", help_heading = "Output")]
    pub(crate) file: Option<PathBuf>,
    /// Add the scores before the softmax to --attention
    #[arg(long, requires = "attention", help_heading = "Output")]
    raw_scores: bool,
}

impl AttentionArguments {
    /// Creates the file if `--attention` names one; it must not be `output`.
    pub(crate) fn create(
        &self,
        output: Option<&Path>,
        force: &Force,
        inputs: &[&Path],
    ) -> Result<Option<AttentionFile>> {
        let Some(file) = self.file.as_deref() else { return Ok(None) };
        if output == Some(file) {
            bail!("--output and --attention name the same file: give each its own");
        }
        AttentionFile::create(file, force, inputs).map(Some)
    }

    /// A forward pass that records the attention weights, and the scores if requested.
    pub(crate) fn pass(&self, compute: Precision) -> Pass {
        let pass = Pass::inference(compute);
        if self.raw_scores { pass.recording_scores() } else { pass.recording() }
    }
}

/// Writes attention weights text by text; the file becomes visible only when it is complete.
pub(crate) struct AttentionFile {
    file: OutputFile,
    contents: Contents,
}

/// State kept in memory for the texts written so far.
enum Contents {
    /// Number of texts.
    Json(usize),
    /// Contents of the header, which precedes the tensor data.
    Safetensors { tensors: Vec<(String, TensorInfo)>, bytes: usize, metadata: Metadata },
}

/// The tokens of a text, in readable form.
pub(crate) struct AttendedTokens {
    pub(crate) source: Vec<String>,
    pub(crate) target: Vec<String>,
}

impl AttendedTokens {
    /// Tokens of a translation's source and of its best output.
    pub(crate) fn of_translation(translator: &Translator, translation: &Translation) -> AttendedTokens {
        let best = translation.outputs.first().map_or(&[][..], |output| &output.hypothesis.tokens);
        AttendedTokens::of_pair(translator, &translation.source, best)
    }

    /// Tokens of a source and of a target; `<eos>` is appended to the target.
    pub(crate) fn of_pair(translator: &Translator, source: &[u32], target: &[u32]) -> AttendedTokens {
        let tokenizers = translator.tokenizers();
        let source = source.iter().map(|&id| tokenizers.source.piece(id)).collect();
        let mut target: Vec<String> = target.iter().map(|&id| tokenizers.target.piece(id)).collect();
        target.push("<eos>".to_owned());
        AttendedTokens { source, target }
    }
}

impl AttendedTokens {
    /// Tokens of a classifier's text, with its label as the target.
    pub(crate) fn of_text(classifier: &Classifier, tokens: &[u32], label: String) -> AttendedTokens {
        let read = classifier.model().special_tokens().surrounded(tokens);
        let source = read.iter().map(|&id| classifier.tokenizer().piece(id)).collect();
        AttendedTokens { source, target: vec![label] }
    }

    /// Tokens of a language model's text.
    pub(crate) fn of_line(generator: &Generator, tokens: &[u32]) -> AttendedTokens {
        let mut target: Vec<String> = tokens.iter().map(|&id| generator.tokenizer().piece(id)).collect();
        if generator.ends_texts() {
            target.push("<eos>".to_owned());
        }
        AttendedTokens { source: Vec::new(), target }
    }
}

impl AttentionFile {
    /// The extension of the name decides the format. `inputs` are the files that the command reads.
    fn create(path: &Path, force: &Force, inputs: &[&Path]) -> Result<AttentionFile> {
        let contents = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Contents::Json(0),
            Some("safetensors") => {
                Contents::Safetensors { tensors: Vec::new(), bytes: 0, metadata: Metadata::new() }
            }
            _ => bail!("{}: the file name must end in .json or .safetensors", path.display()),
        };
        let file = force.open(path, inputs)?;
        if file.is_device() && matches!(contents, Contents::Safetensors { .. }) {
            bail!(
                "{} is a pipe or a device, and a .safetensors header can only be written last: name a file, or use .json",
                path.display()
            );
        }
        Ok(AttentionFile { file, contents })
    }

    /// Adds the attention of text `number`, counted from 0.
    pub(crate) fn add(
        &mut self,
        number: usize,
        tokens: &AttendedTokens,
        maps: &[AttentionMap],
    ) -> Result<()> {
        let AttendedTokens { source, target } = tokens;
        let line = number + 1;
        match &mut self.contents {
            Contents::Json(lines) => {
                let layers: Vec<Value> = maps.iter().map(layer).collect();
                let object = json!({ "line": line, "source": source, "target": target, "attention": layers });
                self.file.add(if *lines == 0 { b"[" } else { b"," })?;
                self.file.add(&serde_json::to_vec(&object)?)?;
                *lines += 1;
            }
            Contents::Safetensors { tensors, bytes, metadata } => {
                for map in maps {
                    let shape = vec![map.heads(), map.queries.tokens(), map.keys.tokens()];
                    let name = format!("{line}.{}", map.site.layer_name());
                    let weights = (name.clone(), &map.weights[0]);
                    let scores = map.scores.as_ref().map(|scores| (format!("{name}.scores"), &scores[0]));
                    for (name, heads) in [Some(weights), scores].into_iter().flatten() {
                        let start = *bytes;
                        for head in heads {
                            let numbers: Vec<u8> =
                                head.iter().flat_map(|number| number.to_le_bytes()).collect();
                            self.file.add(&numbers)?;
                            *bytes += numbers.len();
                        }
                        let data_offsets = (start, *bytes);
                        let info = TensorInfo { dtype: Dtype::F32, shape: shape.clone(), data_offsets };
                        tensors.push((name, info));
                    }
                }
                metadata.insert(format!("{line}.source"), json!(source).to_string());
                metadata.insert(format!("{line}.target"), json!(target).to_string());
            }
        }
        Ok(())
    }

    /// Completes the file and moves it to its final name.
    pub(crate) fn finish(self) -> Result<()> {
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

/// JSON has no infinity: scores of masked keys are null.
fn layer(map: &AttentionMap) -> Value {
    let keys = map.keys.tokens().max(1);
    let rows = |head: &Vec<f32>| head.chunks_exact(keys).map(<[f32]>::to_vec).collect::<Vec<_>>();
    let heads = |heads: &[Vec<f32>]| heads.iter().map(rows).collect::<Vec<_>>();
    let mut layer = json!({ "layer": map.site.layer_name().to_string(), "heads": heads(&map.weights[0]) });
    if let Some(scores) = &map.scores {
        layer["scores"] = json!(heads(&scores[0]));
    }
    layer
}
