//! CTranslate2 models: translators (also in Argos packages), language models and encoders.
//!
//! The name mappings are in `names::ctranslate2`; this module reads the settings, which CTranslate2 stores as
//! variables.

mod single;
mod translator;
mod vocabulary;

use std::path::Path;

use heedful_tensor::ops::Activation;
use serde_json::Value;

use super::importer::ParamImporter;
use super::pieces::{SentencePieceFile, SentencePieceModels};
use super::{ImportError, Imported, ORIGIN, languages};
use crate::data::tokenizer::Tokenizers;
use crate::exchange::embedded_settings::EmbeddedSettings;
use crate::exchange::names::activations;
use crate::store::formats::argos::{ArgosPackage, Segmentation};
use crate::store::formats::ctranslate2::Ctranslate2Folder;
use crate::store::formats::files::Files;
use crate::store::formats::{FormatError, JsonObject};

/// The specifications of translators; empty in format version 1.
const TRANSLATORS: [&str; 4] = ["", "TransformerSpec", "TransformerBase", "TransformerBig"];
/// The settings in `config.json` besides ε.
const TEXTS: [&str; 3] = ["bos_token", "eos_token", "decoder_start_token"];
const FLAGS: [&str; 2] = ["add_source_bos", "add_source_eos"];
/// Settings that heedful ignores: alignment hints, and options of features that must be off.
const IGNORED: [&str; 5] =
    ["alignment_heads", "alignment_layer", "alibi_use_positive_positions", "scale_alibi", "embeddings_merge"];
/// Features that heedful does not support: they must be 0.
const UNSUPPORTED: [&str; 6] =
    ["alibi", "multi_query_attention", "num_heads_kv", "sliding_window", "no_final_norm", "rotary_dim"];

/// Reads an `.argosmodel`.
pub(super) fn argos(path: &Path) -> Result<Imported, ImportError> {
    let package = ArgosPackage::open(path)?;
    let file = path.display().to_string();
    check(&package.model)?;
    let Segmentation::SentencePiece(pieces) = &package.segmentation else {
        let remedy = "Run it with Argos Translate, or look for a later version of the package: those have a SentencePiece model";
        return Err(FormatError::unsupported(file, "subwords of subword-nmt (bpe.model)", remedy).into());
    };
    let (pieces, piece_files) =
        SentencePieceModels::joint(&format!("sentencepiece.model in {file}"), pieces.clone())?;
    let tokenizers = vocabulary::from_pieces(&package.model, &pieces)?;
    let text = |key: &str| package.metadata.get(key).and_then(|value| value.as_str()).unwrap_or("unknown");
    let mut origin = format!(
        "\nAn Argos package, {} to {}, version {}.\n",
        text("from_name"),
        text("to_name"),
        text("package_version")
    );
    if let Some(readme) = &package.readme {
        origin.push_str(&format!("\nIts own words:\n\n{readme}\n"));
    }
    let mut imported = imported(&package.model, tokenizers, piece_files, origin)?;
    imported.languages = languages(&package.metadata, ["from_code", "to_code"]);
    Ok(imported)
}

/// Reads a folder with `model.bin`.
pub(super) fn folder(path: &Path) -> Result<Imported, ImportError> {
    let files = Files::Folder(path.to_owned());
    let model = Ctranslate2Folder::open(&files)?;
    check(&model)?;
    let (tokenizers, piece_files) = vocabulary::read(&model, &files)?;
    let mut origin = String::new();
    if let Some(known) = files.find(ORIGIN)? {
        origin.push_str(&format!("\nIts {ORIGIN}:\n\n{}\n", String::from_utf8_lossy(&known)));
    }
    let mut imported = imported(&model, tokenizers, piece_files, origin)?;
    if model.weights.specification == single::ENCODER {
        single::read_head(&mut imported, &files)?;
    }
    let label = files.label("config.json");
    EmbeddedSettings::read(&model.config, &label)?.restore(&mut imported.config, &mut imported.weights);
    Ok(imported)
}

fn imported(
    model: &Ctranslate2Folder,
    tokenizers: Tokenizers,
    pieces: Vec<SentencePieceFile>,
    origin: String,
) -> Result<Imported, ImportError> {
    let mut from = ParamImporter::new(&model.weights.tensors);
    let config = match model.weights.specification.as_str() {
        single::DECODER => single::language(model, &mut from)?,
        single::ENCODER => single::masked(model, &mut from)?,
        _ => translator::gather(model, &mut from)?,
    };
    check_unsupported(&mut from)?;
    from.ignore(|name| IGNORED.iter().any(|ignored| name.ends_with(&format!("coder/{ignored}"))));
    Ok(Imported {
        config,
        tokenizers,
        labels: None,
        languages: None,
        origin,
        notes: Vec::new(),
        pieces,
        weights: from.finish()?,
    })
}

/// Checks that the specification is supported, and that the settings have the types of CTranslate2.
fn check(model: &Ctranslate2Folder) -> Result<(), FormatError> {
    let from = ParamImporter::new(&model.weights.tensors);
    let specification = model.weights.specification.as_str();
    if !TRANSLATORS.contains(&specification) && ![single::DECODER, single::ENCODER].contains(&specification) {
        return Err(from.unsupported(format!("a {specification}")));
    }
    let typed = TEXTS.map(|key| (key, Value::is_string as fn(&Value) -> bool));
    let typed = typed.into_iter().chain(FLAGS.map(|key| (key, Value::is_boolean as fn(&Value) -> bool)));
    for (key, is_typed) in typed {
        if let Some(value) = model.config.get(key).filter(|value| !is_typed(value)) {
            let found = format!("`{key}`: {value} in its config.json");
            let remedy = "Compare the file with the original";
            return Err(FormatError::unsupported(model.weights.tensors.file(), found, remedy));
        }
    }
    Ok(())
}

/// Checks that unsupported features are off.
fn check_unsupported(from: &mut ParamImporter<'_>) -> Result<(), FormatError> {
    for stack in ["encoder", "decoder"] {
        for name in UNSUPPORTED {
            if from.scalar(&format!("{stack}/{name}"))?.is_some_and(|value| value != 0.0) {
                return Err(from.unsupported(format!("variable `{stack}/{name}`")));
            }
        }
    }
    Ok(())
}

/// The special tokens in `config.json`.
struct Names<'c> {
    bos: &'c str,
    eos: &'c str,
    start: &'c str,
    source_bos: bool,
    source_eos: bool,
}

impl Names<'_> {
    fn of(config: &JsonObject) -> Names<'_> {
        let text = |key: &str, default| config.get(key).and_then(|value| value.as_str()).unwrap_or(default);
        let truth = |key: &str| config.get(key).and_then(|value| value.as_bool()).unwrap_or(false);
        let bos = text("bos_token", "<s>");
        Names {
            bos,
            eos: text("eos_token", "</s>"),
            start: text("decoder_start_token", bos),
            source_bos: truth("add_source_bos"),
            source_eos: truth("add_source_eos"),
        }
    }
}

/// The id of a token.
fn id(tokens: &[String], name: &str) -> Option<u32> {
    tokens.iter().position(|token| token == name).map(|id| id as u32)
}

/// The error if the vocabulary lacks a token that the settings name.
fn missing_token(model: &Ctranslate2Folder, name: &str) -> FormatError {
    let remedy = "The model is incomplete, or of a kind that heedful does not support";
    let missing = format!("token `{name}` in its vocabulary");
    FormatError::missing(model.weights.tensors.file(), missing, remedy)
}

/// A setting that must be equal in these stacks.
fn equal(
    from: &mut ParamImporter<'_>,
    stacks: &[&str],
    name: &str,
    default: f64,
) -> Result<f64, FormatError> {
    let mut values = Vec::new();
    for stack in stacks {
        values.push(from.scalar(&format!("{stack}/{name}"))?.unwrap_or(default));
    }
    match values[..] {
        [encoder, decoder] if encoder != decoder => {
            Err(from.unsupported(format!("{name} {encoder} in the encoder and {decoder} in the decoder")))
        }
        _ => Ok(values[0]),
    }
}

/// Whether embeddings are multiplied by √d: stored as a flag, or in newer files as the factor itself.
fn is_scaled(from: &mut ParamImporter<'_>, stacks: &[&str], d_model: usize) -> Result<bool, FormatError> {
    let is_factor = from.is_float(&format!("{}/scale_embeddings", stacks[0]));
    let (value, root) = (equal(from, stacks, "scale_embeddings", 1.0)?, (d_model as f64).sqrt());
    match is_factor {
        false => Ok(value != 0.0),
        true if (value - root).abs() < 1e-4 * root => Ok(true),
        true if value == 1.0 => Ok(false),
        true => Err(from.unsupported(format!("embeddings that are multiplied by {value}"))),
    }
}

fn activation(from: &mut ParamImporter<'_>, stacks: &[&str]) -> Result<Activation, FormatError> {
    let number = equal(from, stacks, "activation", 0.0)?;
    activations::of_ctranslate2(number)
        .ok_or_else(|| from.unsupported(format!("the activation function {number}")))
}

/// ε of the norms.
fn epsilon(model: &Ctranslate2Folder) -> f32 {
    model.config.get("layer_norm_epsilon").and_then(|value| value.as_f64()).unwrap_or(1e-5) as f32
}

/// Number of layers of a stack.
fn depth(from: &ParamImporter<'_>, stack: &str) -> usize {
    (0..).take_while(|i| from.has(&format!("{stack}/layer_{i}/ffn/linear_0/weight"))).count()
}

/// The name of the source embedding, which ends in an index in some files.
fn source_table(from: &ParamImporter<'_>) -> &'static str {
    let numbered = "encoder/embeddings_0/weight";
    if from.has(numbered) { numbered } else { "encoder/embeddings/weight" }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::formats::zip::write::archive;
    use crate::tasks::folder::{Languages, ModelFolder};

    #[test]
    fn an_argos_package_names_its_languages() {
        let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchange/models/ctranslate2");
        let read = |name: &str| fs::read(given.join(name)).expect("a file of the model");
        let temporary = tempfile::tempdir().expect("a folder");
        for (metadata, expected) in [
            (&br#"{"from_code": "zh", "to_code": "en"}"#[..], Some(["zh", "en"])),
            (br#"{"from_name": "Chinese"}"#, None),
            (br#"{"from_code": " ", "to_code": "en"}"#, None),
        ] {
            let package = archive(&[
                ("zh_en/metadata.json", metadata),
                ("zh_en/sentencepiece.model", &read("sentencepiece.model")),
                ("zh_en/model/config.json", &read("config.json")),
                ("zh_en/model/model.bin", &read("model.bin")),
                ("zh_en/model/shared_vocabulary.json", &read("shared_vocabulary.json")),
            ]);
            let file = temporary.path().join("zh_en.argosmodel");
            fs::write(&file, package.expect("a small one")).expect("a writable folder");
            let imported = crate::exchange::import::read(&file).expect("a model");
            let folder = temporary.path().join("model");
            imported.save(&folder).expect("a writable folder");
            let found = ModelFolder::open(&folder).expect("a model").languages;
            let languages =
                |[source, target]: [&str; 2]| Languages { source: source.into(), target: target.into() };
            assert_eq!(found, expected.map(languages));
            // Copies of the model keep them.
            let copy = ModelFolder::open(&folder).expect("a model").copy_to(&temporary.path().join("copy"));
            assert_eq!(copy.expect("a writable folder").languages, found);
            ModelFolder::seal(&folder).expect("a model");
            assert_eq!(ModelFolder::open(&folder).expect("a model").languages, found);
        }
    }
}
