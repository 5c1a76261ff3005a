//! Translators of CTranslate2, also those in Argos packages.
//!
//! ```text
//! encoder/embeddings_0, decoder/embeddings, decoder/projection     embedding tables, tied or not
//! S/layer_i/self_attention/linear_0, linear_1, layer_norm          S.i.self_attention.qkv, .output, S.i.self_attention_norm
//! decoder/layer_i/attention/linear_0, linear_1, linear_2           decoder.i.cross_attention.query, .key_value, .output
//! S/layer_i/ffn/linear_0, linear_1, layer_norm                     S.i.feed_forward.inner, .outer, S.i.feed_forward_norm
//! ```

use std::path::Path;

use heedful_tensor::ops::Activation;

use super::gathered::{Gathered, Linear};
use super::settings::{Sizes, transformer};
use super::{ImportError, Imported, positions, tables};
use crate::data::SpecialTokens;
use crate::data::tokenizer::{SentencePiece, Tokenizers};
use crate::layers::{Halves, Norm, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::argos::{ArgosPackage, Segmentation};
use crate::store::formats::ctranslate2::Ctranslate2Folder;
use crate::store::formats::files::Files;
use crate::store::formats::{FormatError, JsonObject};
use crate::store::weights::Weights;

/// Settings that say nothing about what is computed here: hints for alignments, and switches of what must be off.
const NEEDLESS: [&str; 5] =
    ["alignment_heads", "alignment_layer", "alibi_use_positive_positions", "scale_alibi", "embeddings_merge"];
/// What heedful does not compute, if it is not 0.
const ABSENT: [&str; 6] =
    ["alibi", "multi_query_attention", "num_heads_kv", "sliding_window", "no_final_norm", "rotary_dim"];

/// Names of SentencePiece models beside `model.bin`: one for both sides, or one for each.
const JOINT_PIECES: [&str; 4] = ["sentencepiece.model", "spm.model", "sp.model", "tokenizer.model"];
const SIDES: [[&str; 2]; 2] = [["source.spm", "target.spm"], ["source.model", "target.model"]];

/// An `.argosmodel`.
pub(super) fn argos(path: &Path) -> Result<Imported, ImportError> {
    let package = ArgosPackage::open(path)?;
    let file = path.display().to_string();
    let Segmentation::SentencePiece(pieces) = &package.segmentation else {
        let remedy = "Import a package with a SentencePiece model";
        return Err(FormatError::unsupported(file, "subwords of subword-nmt (bpe.model)", remedy).into());
    };
    let pieces = SentencePiece::read(&format!("sentencepiece.model in {file}"), pieces)?;
    let tokenizers = joint(&package.model, [&pieces, &pieces])?;
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
    imported(&package.model, tokenizers, origin)
}

/// A folder with `model.bin`.
pub(super) fn folder(path: &Path) -> Result<Imported, ImportError> {
    let files = Files::Folder(path.to_owned());
    let model = Ctranslate2Folder::open(&files)?;
    let pieces = |name: &str| -> Result<Option<SentencePiece>, ImportError> {
        Ok(match files.find(name)? {
            Some(bytes) => Some(SentencePiece::read(&files.label(name), &bytes)?),
            None => None,
        })
    };
    for name in JOINT_PIECES {
        if let Some(pieces) = pieces(name)? {
            let tokenizers = joint(&model, [&pieces, &pieces])?;
            return imported(&model, tokenizers, String::new());
        }
    }
    for [source, target] in SIDES {
        if let (Some(source), Some(target)) = (pieces(source)?, pieces(target)?) {
            let tokenizers = joint(&model, [&source, &target])?;
            return imported(&model, tokenizers, String::new());
        }
    }
    let remedy = "Copy the .model file of the translator beside model.bin, as sentencepiece.model, or both as source.spm and \
                  target.spm";
    Err(FormatError::missing(path.display().to_string(), "SentencePiece model", remedy).into())
}

/// The vocabularies: one if both sides have the same tokens and the same pieces. Where one SentencePiece model is given, and most
/// of the model's tokens are none of its pieces, it is that of the source, as in packages made of OPUS-MT models: what the model
/// writes is then split by how frequent its tokens are, of which their order tells.
fn joint(
    model: &Ctranslate2Folder,
    [source, target]: [&SentencePiece; 2],
) -> Result<Tokenizers, ImportError> {
    let names = Names::of(&model.config);
    let special = [names.bos, names.eos, "<pad>", "<blank>"];
    let of = |pieces: &SentencePiece, tokens: &[String]| pieces.tokenizer_for(tokens, &special);
    if std::ptr::eq(source, target) && !target.covers(&model.target_vocabulary) {
        let by_rank = target.by_rank(&model.target_vocabulary);
        return Ok(Tokenizers::separate(
            of(source, &model.source_vocabulary)?,
            of(&by_rank, &model.target_vocabulary)?,
        ));
    }
    Ok(match std::ptr::eq(source, target) && model.source_vocabulary == model.target_vocabulary {
        true => Tokenizers::joint(of(source, &model.source_vocabulary)?),
        false => {
            Tokenizers::separate(of(source, &model.source_vocabulary)?, of(target, &model.target_vocabulary)?)
        }
    })
}

fn imported(
    model: &Ctranslate2Folder,
    tokenizers: Tokenizers,
    origin: String,
) -> Result<Imported, ImportError> {
    let (config, weights) = translator(model)?;
    let config = EncoderDecoderConfig::Transformer(config).into();
    Ok(Imported { config, tokenizers, labels: None, origin, weights })
}

/// The names of special tokens in `config.json`.
struct Names<'c> {
    bos: &'c str,
    eos: &'c str,
    start: &'c str,
    source_bos: bool,
    source_eos: bool,
}

impl Names<'_> {
    fn of(config: &JsonObject) -> Names<'_> {
        let text = |key: &str, usual| config.get(key).and_then(|value| value.as_str()).unwrap_or(usual);
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

fn translator(model: &Ctranslate2Folder) -> Result<(TransformerConfig, Weights), FormatError> {
    let mut from = Gathered::new(&model.weights.tensors);
    let specification = &model.weights.specification;
    if !["", "TransformerSpec", "TransformerBase", "TransformerBig"].contains(&specification.as_str()) {
        return Err(from.unsupported(format!("a {specification}")));
    }
    let special = special_tokens(model, &mut from)?;
    let embedded =
        if from.has("encoder/embeddings_0/weight") { "encoder/embeddings_0" } else { "encoder/embeddings" };
    let tables = [&format!("{embedded}/weight"), "decoder/embeddings/weight", "decoder/projection/weight"];
    let [source, d_model] = from.shape(tables[0])?;
    let [target, _] = from.shape(tables[1])?;
    let vocabularies = [&model.source_vocabulary, &model.target_vocabulary].map(Vec::len);
    if vocabularies != [source, target] {
        let problem =
            format!("{vocabularies:?} tokens in the vocabularies, and {:?} in the weights", [source, target]);
        return Err(from.unsupported(problem));
    }
    let [d_ff, _] = from.shape("encoder/layer_0/ffn/linear_0/weight")?;
    let depth = |from: &Gathered<'_>, stack: &str| {
        (0..).take_while(|i| from.has(&format!("{stack}/layer_{i}/ffn/linear_0/weight"))).count()
    };
    let layers = [depth(&from, "encoder"), depth(&from, "decoder")];
    let sizes =
        Sizes { vocabularies, d_model, d_ff, heads: equal(&mut from, "num_heads", 8.0)? as usize, layers };
    let epsilon = model.config.get("layer_norm_epsilon").and_then(|value| value.as_f64());
    let is_pre_norm = equal(&mut from, "pre_norm", 1.0)? != 0.0;
    let has_norm = from.has("encoder/layernorm_embedding/gamma");
    let config = TransformerConfig {
        special,
        norm: if is_pre_norm { Norm::Pre } else { Norm::Post },
        norm_epsilon: epsilon.unwrap_or(1e-5) as f32,
        activation: activation(&mut from)?,
        positions: positions_of(&mut from, d_model)?,
        scale_embeddings: is_scaled(&mut from, d_model)?,
        embedding_norm: has_norm,
        tying: tables::tying(&from, tables),
        output_bias: from.has("decoder/projection/bias"),
        ..transformer(&sizes)
    };
    gather(&mut from, &config, tables)?;
    for stack in ["encoder", "decoder"] {
        for name in ABSENT {
            if from.number(&format!("{stack}/{name}"))?.is_some_and(|value| value != 0.0) {
                return Err(from.unsupported(format!("variable `{stack}/{name}`")));
            }
        }
    }
    from.leave_out(|name| NEEDLESS.iter().any(|needless| name.ends_with(&format!("coder/{needless}"))));
    Ok((config, from.finish()?))
}

/// A setting that is the same in encoder and decoder.
fn equal(from: &mut Gathered<'_>, name: &str, usual: f64) -> Result<f64, FormatError> {
    let [encoder, decoder] = ["encoder", "decoder"].map(|stack| from.number(&format!("{stack}/{name}")));
    let [encoder, decoder] = [encoder?, decoder?].map(|value| value.unwrap_or(usual));
    if encoder == decoder {
        return Ok(encoder);
    }
    Err(from.unsupported(format!("{name} {encoder} in the encoder and {decoder} in the decoder")))
}

/// Whether embeddings are multiplied by √d: a switch, or in newer files the factor itself.
fn is_scaled(from: &mut Gathered<'_>, d_model: usize) -> Result<bool, FormatError> {
    let is_factor = from.is_fraction("encoder/scale_embeddings");
    let (value, root) = (equal(from, "scale_embeddings", 1.0)?, (d_model as f64).sqrt());
    match is_factor {
        false => Ok(value != 0.0),
        true if (value - root).abs() < 1e-4 * root => Ok(true),
        true if value == 1.0 => Ok(false),
        true => Err(from.unsupported(format!("embeddings that are multiplied by {value}"))),
    }
}

fn activation(from: &mut Gathered<'_>) -> Result<Activation, FormatError> {
    match equal(from, "activation", 0.0)? {
        0.0 => Ok(Activation::Relu),
        1.0 => Ok(Activation::GeluTanh),
        2.0 => Ok(Activation::Silu),
        3.0 => Ok(Activation::Gelu),
        other => Err(from.unsupported(format!("the activation function {other}"))),
    }
}

fn special_tokens(model: &Ctranslate2Folder, from: &mut Gathered<'_>) -> Result<SpecialTokens, FormatError> {
    let names = Names::of(&model.config);
    let id =
        |tokens: &[String], name: &str| tokens.iter().position(|token| token == name).map(|id| id as u32);
    let mut flag = |name: &str, usual: bool| -> Result<bool, FormatError> {
        Ok(from.number(name)?.map_or(usual, |value| value != 0.0))
    };
    // Models before version 4 have them among the weights.
    let source_bos = flag("with_source_bos", names.source_bos)?;
    let source_eos = flag("with_source_eos", names.source_eos)?;
    let target_bos = flag("with_target_bos", true)?;
    let start_from_zero = flag("decoder/start_from_zero_embedding", false)?;
    if source_bos || !target_bos {
        return Err(from.unsupported("a token before every source, or none before every target"));
    }
    let lacks = |name: &str| {
        let remedy = "It is not a whole model, or one of a kind that heedful does not know";
        FormatError::missing(
            model.weights.tensors.file(),
            format!("token `{name}` in its vocabulary"),
            remedy,
        )
    };
    let eos = id(&model.target_vocabulary, names.eos).ok_or_else(|| lacks(names.eos))?;
    let bos = match id(&model.target_vocabulary, names.start) {
        Some(bos) => bos,
        // Any token does, since its vector is not read.
        None if start_from_zero => eos,
        None => return Err(lacks(names.start)),
    };
    // A decoder that begins with the vector 0 is Marian's, whose sources end with a token: if CTranslate2 does not add it, those
    // who call it do.
    let source_eos = match source_eos || start_from_zero {
        true => Some(id(&model.source_vocabulary, names.eos).ok_or_else(|| lacks(names.eos))?),
        false => None,
    };
    let pad = ["<pad>", "<blank>"].iter().find_map(|name| id(&model.target_vocabulary, name)).unwrap_or(eos);
    Ok(SpecialTokens { bos, eos, source_eos, start_from_zero, pad, ..SpecialTokens::default() })
}

fn positions_of(from: &mut Gathered<'_>, d_model: usize) -> Result<Positions, FormatError> {
    let names = ["encoder", "decoder"].map(|stack| format!("{stack}/position_encodings/encodings"));
    if !from.has(&names[0]) {
        return Ok(Positions::Halves(Halves::OpenNmt));
    }
    let mut found = Vec::new();
    for name in &names {
        let [length, _] = from.shape(name)?;
        let table = from.tensor(name, &[length, d_model])?.values();
        found.push((positions::of_table(&table, d_model), table));
    }
    if found[0].0 != found[1].0 {
        return Err(from.unsupported("other positions in the encoder than in the decoder"));
    }
    if let (Positions::Learned { max_length }, _) = found[0] {
        for ((_, table), ours) in found.iter().zip(["source_position", "target_position"]) {
            from.add(format!("{ours}.weight"), [max_length, d_model], table);
        }
    }
    Ok(found[0].0)
}

fn gather(from: &mut Gathered<'_>, config: &TransformerConfig, names: [&str; 3]) -> Result<(), FormatError> {
    let TransformerConfig { d_model: d, d_ff, .. } = *config;
    tables::gather(from, config, names)?;
    if config.output_bias {
        from.vector("output.bias", "decoder/projection/bias", config.target_vocabulary)?;
    }
    for (stack, depth) in [("encoder", config.encoder_layers), ("decoder", config.decoder_layers)] {
        if config.embedding_norm {
            let side = if stack == "encoder" { "source" } else { "target" };
            norm(from, &format!("{side}_embedding_norm"), &format!("{stack}/layernorm_embedding"), d)?;
        }
        for i in 0..depth {
            let (ours, theirs) = (format!("{stack}.{i}"), format!("{stack}/layer_{i}"));
            let mut linear = |ours_part: &str, theirs_part: &str, shape: [usize; 2]| {
                let name = format!("{theirs}/{theirs_part}");
                let parts = [(format!("{name}/weight"), format!("{name}/bias"))];
                from.linear(&format!("{ours}.{ours_part}"), Linear::OutputsFirst, &parts, shape)
            };
            linear("self_attention.qkv", "self_attention/linear_0", [d, 3 * d])?;
            linear("self_attention.output", "self_attention/linear_1", [d, d])?;
            if stack == "decoder" {
                linear("cross_attention.query", "attention/linear_0", [d, d])?;
                linear("cross_attention.key_value", "attention/linear_1", [d, 2 * d])?;
                linear("cross_attention.output", "attention/linear_2", [d, d])?;
            }
            linear("feed_forward.inner", "ffn/linear_0", [d, d_ff])?;
            linear("feed_forward.outer", "ffn/linear_1", [d_ff, d])?;
            norm(
                from,
                &format!("{ours}.self_attention_norm"),
                &format!("{theirs}/self_attention/layer_norm"),
                d,
            )?;
            if stack == "decoder" {
                norm(
                    from,
                    &format!("{ours}.cross_attention_norm"),
                    &format!("{theirs}/attention/layer_norm"),
                    d,
                )?;
            }
            norm(from, &format!("{ours}.feed_forward_norm"), &format!("{theirs}/ffn/layer_norm"), d)?;
        }
        if config.norm == Norm::Pre {
            norm(from, &format!("{stack}.norm"), &format!("{stack}/layer_norm"), d)?;
        }
    }
    Ok(())
}

fn norm(from: &mut Gathered<'_>, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
    from.norm(ours, [&format!("{theirs}/gamma"), &format!("{theirs}/beta")], width)
}
