//! `--attention`: every attention weight, in a file, the same for every command that runs a model.
//!
//! ```text
//! FILE.json          [{"line": 1, "source": ["▁a", …], "target": ["▁ein", …, "<eos>"], "attention":
//!                      [{"layer": "decoder.0.cross", "heads": [[[0.1, …], …], …], "scores": …}, …]}, …]
//! FILE.safetensors   tensors "1.decoder.0.cross" of heads × queries × keys; tokens in the metadata
//! ```
//!
//! With `--raw-scores` also the scores before the softmax: `"scores"` in the form of the heads, null where a mask hides the key;
//! tensors "1.decoder.0.cross.scores", −∞ there.
//!
//! | | source | target | queries |
//! |---|---|---|---|
//! | translator | the source | the translation and `<eos>` | row i of a decoder predicts target token i |
//! | classifier | the text, behind `<bos>` where that is read | the label | of the pooling: the label |
//! | language model | empty | the text, and `<eos>` where texts end | row i predicts token i |
//! | masked language model | the text | the best prediction for each gap | the text's tokens |

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::layers::{AttentionMap, Pass};
use heedful::models::Model;
use heedful::store::output::Output;
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
    /// The file, if it is named; it must not be `output`.
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

    /// A pass that records what is wanted.
    pub(crate) fn pass(&self, compute: Precision) -> Pass {
        let pass = Pass::inference(compute);
        if self.raw_scores { pass.recording_scores() } else { pass.recording() }
    }
}

/// Writes attention weights text by text; the file appears as a whole at the end.
pub(crate) struct AttentionFile {
    file: Output,
    contents: Contents,
}

/// What is kept in memory of the texts so far.
enum Contents {
    /// How many there are.
    Json(usize),
    /// What stands before the numbers.
    Safetensors { tensors: Vec<(String, TensorInfo)>, bytes: usize, metadata: Metadata },
}

/// The tokens of a text, in readable form.
pub(crate) struct AttendedTokens {
    pub(crate) source: Vec<String>,
    pub(crate) target: Vec<String>,
}

impl AttendedTokens {
    /// Of a translation's source and its best output.
    pub(crate) fn of_translation(translator: &Translator, translation: &Translation) -> AttendedTokens {
        let best = translation.outputs.first().map_or(&[][..], |output| &output.hypothesis.tokens);
        AttendedTokens::of_pair(translator, &translation.source, best)
    }

    /// Of a source and a target, which `<eos>` follows.
    pub(crate) fn of_pair(translator: &Translator, source: &[u32], target: &[u32]) -> AttendedTokens {
        let tokenizers = translator.tokenizers();
        let source = source.iter().map(|&id| tokenizers.source.piece(id)).collect();
        let mut target: Vec<String> = target.iter().map(|&id| tokenizers.target.piece(id)).collect();
        target.push("<eos>".to_owned());
        AttendedTokens { source, target }
    }
}

impl AttendedTokens {
    /// Of a classifier's text and its label.
    pub(crate) fn of_text(classifier: &Classifier, tokens: &[u32], label: String) -> AttendedTokens {
        let read = classifier.model().special_tokens().surrounded(tokens);
        let source = read.iter().map(|&id| classifier.tokenizer().piece(id)).collect();
        AttendedTokens { source, target: vec![label] }
    }

    /// Of a language model's text.
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
                "{} is a pipe or a device, and a .safetensors file begins with what is known last: name a file, or use .json",
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

    /// Puts the file in its place.
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

/// JSON has no infinity: what a mask hides is null.
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
