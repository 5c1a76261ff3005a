//! Translators of Marian: post-norm Transformers, with self attention or SSRU layers in the decoder.
//!
//! ```text
//! Wemb, decoder_ff_logit_out_b                              embedding.weight, output.bias
//! encoder_l1_self_{Wq,bq,Wk,bk,Wv,bv,Wo,bo,Wo_ln_scale,…}   encoder.0.self_attention.…, encoder.0.self_attention_norm
//! decoder_l1_context_…                                      decoder.0.cross_attention.…
//! decoder_l1_rnn_{W,Wf,bf,ffn_ln_scale,ffn_ln_bias}         decoder.0.ssru.input, its norm
//! encoder_l1_ffn_{W1,b1,W2,b2,ffn_ln_scale,ffn_ln_bias}     encoder.0.feed_forward.…
//! ```

use std::path::Path;

use heedful_tensor::ops::Activation;

use super::importer::ParamImporter;
use super::pieces::{SentencePieceFile, SentencePieceModels};
use super::settings::{Sizes, transformer};
use super::{ImportError, Imported};
use crate::data::SpecialTokens;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::names::Linear;
use crate::layers::{Halves, Norm, Positions, Tying};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::recipe::DecoderLayer;
use crate::store::formats::FormatError;
use crate::store::formats::marian::MarianModel;

/// ε of Marian's norms.
const EPSILON: f32 = 1e-9;
/// The end token in all of Marian's SentencePiece vocabularies.
const EOS: &str = "</s>";

/// Reads a `.npz` or `.bin`, with its SentencePiece models in the same folder.
pub(super) fn read(path: &Path) -> Result<Imported, ImportError> {
    let model = MarianModel::open(path)?;
    let mut from = ParamImporter::new(&model.tensors);
    let mut config = configuration(&model, &from)?;
    let (tokenizers, pieces, eos) = vocabularies(path)?;
    config.special = SpecialTokens {
        bos: eos,
        eos,
        source_eos: Some(eos),
        start_from_zero: true,
        pad: eos,
        ..SpecialTokens::default()
    };
    gather(&mut from, &config)?;
    // Scales of Marian's own integer GEMM.
    from.ignore(|name| name.ends_with("_QuantMultA") || name.starts_with("special:"));
    let weights = from.finish()?;
    let config = EncoderDecoderConfig::Transformer(config).into();
    let origin = "\nA model of Marian.\n".to_owned();
    Ok(Imported {
        config,
        tokenizers,
        labels: None,
        languages: None,
        origin,
        notes: Vec::new(),
        pieces,
        weights,
    })
}

/// The vocabularies of a model, the SentencePiece models from which they are made, and the id of [`EOS`].
fn vocabularies(path: &Path) -> Result<(Tokenizers, Vec<SentencePieceFile>, u32), ImportError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let label = folder.display().to_string();
    let entries = folder.read_dir().map_err(|error| FormatError::Read { file: label.clone(), error })?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|file| file.extension().is_some_and(|extension| extension == "spm"))
        .collect();
    files.sort();
    let is_source = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        ["src", "source"].iter().any(|word| name.contains(word))
    };
    let (pieces, piece_files) = match &files[..] {
        [] => {
            let remedy = "Copy the translator's .spm into the folder of the model";
            return Err(FormatError::missing(label, "SentencePiece model (*.spm)", remedy).into());
        }
        [joint] => SentencePieceModels::open(&[joint])?,
        [first, second] if is_source(first) != is_source(second) => {
            let (source, target) = if is_source(first) { (first, second) } else { (second, first) };
            SentencePieceModels::open(&[source, target])?
        }
        several => {
            let found = format!("{} SentencePiece models", several.len());
            let remedy = "Keep only those of the model: one for both sides, or one with `src` and one with `trg` in its name";
            return Err(FormatError::unsupported(label, found, remedy).into());
        }
    };
    let tokenizers = match &pieces {
        SentencePieceModels::Joint(joint) => Tokenizers::joint(joint.tokenizer()?),
        SentencePieceModels::Sides([source, target]) => {
            Tokenizers::separate(source.tokenizer()?, target.tokenizer()?)
        }
    };
    match tokenizers.target.id_of(EOS) {
        Some(eos) if tokenizers.source.id_of(EOS) == Some(eos) => Ok((tokenizers, piece_files, eos)),
        _ => {
            let remedy = "It is not a Marian vocabulary";
            Err(FormatError::missing(label, format!("piece `{EOS}` with one id in its vocabularies"), remedy)
                .into())
        }
    }
}

/// The configuration without the special tokens, which depend on the vocabulary.
fn configuration(model: &MarianModel, from: &ParamImporter<'_>) -> Result<TransformerConfig, ImportError> {
    let settings = &model.settings;
    // A missing key has Marian's default; a value of another type is an error.
    let wrong = |key: &str| from.unsupported(format!("the setting `{key}` with a value of another type"));
    let text = |key: &str, default: &'static str| match settings.get(key) {
        None => Ok(default.to_owned()),
        Some(_) => settings.text(key).map(str::to_owned).ok_or_else(|| wrong(key)),
    };
    let is = |key: &str| match settings.get(key) {
        None => Ok(false),
        Some(_) => settings.truth(key).ok_or_else(|| wrong(key)),
    };
    let whole = |key: &str, default: usize| match settings.get(key) {
        None => Ok(default),
        Some(_) => settings.text(key).and_then(|text| text.parse().ok()).ok_or_else(|| wrong(key)),
    };
    for (key, default) in [
        ("type", "transformer"),
        ("transformer-postprocess", "dan"),
        ("transformer-preprocess", ""),
        ("transformer-postprocess-emb", "d"),
        ("transformer-postprocess-top", ""),
        ("transformer-ffn-depth", "2"),
    ] {
        let value = text(key, default)?;
        if value != default {
            return Err(from.unsupported(format!("the setting `{key}: {value}`")).into());
        }
    }
    for key in ["transformer-no-projection", "transformer-pool", "transformer-train-position-embeddings"] {
        if is(key)? {
            return Err(from.unsupported(format!("the setting `{key}: true`")).into());
        }
    }
    if !is("tied-embeddings-all")? {
        return Err(from.unsupported("embeddings that are not tied").into());
    }
    let activation = match text("transformer-ffn-activation", "swish")?.as_str() {
        "relu" => Activation::Relu,
        "swish" => Activation::Silu,
        "gelu" => Activation::Gelu,
        other => return Err(from.unsupported(format!("the activation function {other}")).into()),
    };
    let decoder_layer = match text("transformer-decoder-autoreg", "self-attention")?.as_str() {
        "self-attention" => DecoderLayer::Attention,
        "rnn" if text("dec-cell", "ssru")? == "ssru" => DecoderLayer::Ssru,
        other => return Err(from.unsupported(format!("the decoder layer {other}")).into()),
    };
    let [vocabulary, d_model] = from.shape("Wemb")?;
    let [_, d_ff] = from.shape("encoder_l1_ffn_W1")?;
    let sizes = Sizes {
        vocabularies: [vocabulary; 2],
        d_model,
        d_ff,
        heads: whole("transformer-heads", 8)?,
        layers: [whole("enc-depth", 6)?, whole("dec-depth", 6)?],
    };
    Ok(TransformerConfig {
        decoder_layer,
        norm: Norm::Post,
        norm_epsilon: EPSILON,
        activation,
        positions: Positions::Halves(Halves::Marian),
        tying: Tying::All,
        output_bias: from.has("decoder_ff_logit_out_b"),
        ..transformer(&sizes)
    })
}

fn gather(from: &mut ParamImporter<'_>, config: &TransformerConfig) -> Result<(), FormatError> {
    let TransformerConfig { d_model: d, d_ff, source_vocabulary, .. } = *config;
    from.matrix("embedding.weight", "Wemb", [source_vocabulary, d])?;
    if config.output_bias {
        from.vector("output.bias", "decoder_ff_logit_out_b", source_vocabulary)?;
    }
    for (stack, depth) in [("encoder", config.encoder_layers), ("decoder", config.decoder_layers)] {
        for i in 0..depth {
            let (ours, theirs) = (format!("{stack}.{i}"), format!("{stack}_l{}", i + 1));
            if stack == "encoder" || config.decoder_layer == DecoderLayer::Attention {
                let qkv = projections(&theirs, "self", &["q", "k", "v"]);
                from.linear(&format!("{ours}.self_attention.qkv"), Linear::InputsFirst, &qkv, [d, 3 * d])?;
                let output = projections(&theirs, "self", &["o"]);
                from.linear(&format!("{ours}.self_attention.output"), Linear::InputsFirst, &output, [d, d])?;
                norm(from, &format!("{ours}.self_attention_norm"), &format!("{theirs}_self_Wo_ln"), d)?;
            } else {
                let name = |part: &str| format!("{theirs}_rnn_{part}");
                // Marian's SSRU candidate has no bias.
                let parts = [[name("W"), name("b")], [name("Wf"), name("bf")]];
                from.linear(&format!("{ours}.ssru.input"), Linear::InputsFirst, &parts, [d, 2 * d])?;
                norm(from, &format!("{ours}.ssru_norm"), &name("ffn_ln"), d)?;
            }
            if stack == "decoder" {
                let cross = format!("{ours}.cross_attention");
                let query = projections(&theirs, "context", &["q"]);
                from.linear(&format!("{cross}.query"), Linear::InputsFirst, &query, [d, d])?;
                let key_value = projections(&theirs, "context", &["k", "v"]);
                from.linear(&format!("{cross}.key_value"), Linear::InputsFirst, &key_value, [d, 2 * d])?;
                let output = projections(&theirs, "context", &["o"]);
                from.linear(&format!("{cross}.output"), Linear::InputsFirst, &output, [d, d])?;
                norm(from, &format!("{cross}_norm"), &format!("{theirs}_context_Wo_ln"), d)?;
            }
            for (part, number, shape) in [("inner", 1, [d, d_ff]), ("outer", 2, [d_ff, d])] {
                let layer = [["W", "b"].map(|part| format!("{theirs}_ffn_{part}{number}"))];
                from.linear(&format!("{ours}.feed_forward.{part}"), Linear::InputsFirst, &layer, shape)?;
            }
            norm(from, &format!("{ours}.feed_forward_norm"), &format!("{theirs}_ffn_ffn_ln"), d)?;
        }
    }
    Ok(())
}

/// Weights and biases of an attention's projections.
fn projections(layer: &str, attention: &str, which: &[&str]) -> Vec<[String; 2]> {
    which.iter().map(|p| ["W", "b"].map(|part| format!("{layer}_{attention}_{part}{p}"))).collect()
}

fn norm(from: &mut ParamImporter<'_>, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
    from.norm(ours, [&format!("{theirs}_scale"), &format!("{theirs}_bias")], width)
}
