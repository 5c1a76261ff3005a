//! MarianMT, the form that the OPUS-MT translators have in Hugging Face's transformers.

use heedful_tensor::ops::Activation;

use super::gathered::{Gathered, Linear};
use super::huggingface::Settings;
use super::settings::{Sizes, transformer};
use super::{ImportError, Imported, tables};
use crate::data::SpecialTokens;
use crate::data::tokenizer::{SentencePiece, Tokenizers};
use crate::layers::{Halves, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::FormatError;
use crate::store::formats::huggingface::HuggingFaceFolder;

/// The table of both sides.
const SHARED: &str = "model.shared.weight";

pub(super) fn read(folder: &HuggingFaceFolder, settings: &Settings<'_>) -> Result<Imported, ImportError> {
    let mut from = Gathered::new(&folder.tensors);
    let config = configuration(settings, &from)?;
    let tokenizers = vocabularies(folder, &config)?;
    gather(&mut from, &config)?;
    // Positions are computed; `shared` is a table that encoder or decoder has under its own name too.
    from.leave_out(|name| name.ends_with("embed_positions.weight") || name == SHARED);
    let weights = from.finish()?;
    let config = EncoderDecoderConfig::Transformer(config).into();
    Ok(Imported {
        config,
        tokenizers,
        labels: None,
        origin: "\nA MarianMT model of Hugging Face.\n".to_owned(),
        weights,
    })
}

fn configuration(settings: &Settings<'_>, from: &Gathered<'_>) -> Result<TransformerConfig, FormatError> {
    let both = |name: &str| -> Result<usize, FormatError> {
        let [encoder, decoder] =
            ["encoder", "decoder"].map(|stack| settings.whole(&format!("{stack}_{name}")));
        let (encoder, decoder) = (encoder?, decoder?);
        let unequal =
            || settings.unsupported(format!("{name} {encoder} in the encoder and {decoder} in the decoder"));
        if encoder == decoder { Ok(encoder) } else { Err(unequal()) }
    };
    let activation = match settings.text("activation_function", "gelu") {
        "relu" => Activation::Relu,
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "swish" | "silu" => Activation::Silu,
        other => return Err(settings.unsupported(format!("the activation function `{other}`"))),
    };
    if settings.is("normalize_before", false) || settings.is("add_final_layer_norm", false) {
        return Err(settings.unsupported("pre-norm layers".to_owned()));
    }
    let vocabulary = settings.whole("vocab_size")?;
    let sizes = Sizes {
        vocabularies: [vocabulary, settings.whole("decoder_vocab_size").unwrap_or(vocabulary)],
        d_model: settings.whole("d_model")?,
        d_ff: both("ffn_dim")?,
        heads: both("attention_heads")?,
        layers: [settings.whole("encoder_layers")?, settings.whole("decoder_layers")?],
    };
    let eos = settings.id("eos_token_id").unwrap_or(0);
    let pad = settings.id("pad_token_id").unwrap_or(sizes.vocabularies[1].saturating_sub(1) as u32);
    Ok(TransformerConfig {
        special: SpecialTokens {
            bos: settings.id("decoder_start_token_id").unwrap_or(pad),
            eos,
            source_eos: Some(eos),
            pad,
            // Padding is never a word of a translation; transformers says so in its generation settings.
            suppressed: if pad == eos { Vec::new() } else { vec![pad] },
            ..SpecialTokens::default()
        },
        activation,
        positions: Positions::Halves(Halves::MarianMt),
        scale_embeddings: settings.is("scale_embedding", false),
        tying: tables::tying(from, names(from)),
        output_bias: from.has("final_logits_bias"),
        ..transformer(&sizes)
    })
}

/// Where the tables of source, target and output are; one that is missing is tied.
fn names(from: &Gathered<'_>) -> [&'static str; 3] {
    let first = |names: [&'static str; 2]| if from.has(names[0]) { names[0] } else { names[1] };
    let target = first(["model.decoder.embed_tokens.weight", SHARED]);
    [first(["model.encoder.embed_tokens.weight", SHARED]), target, first(["lm_head.weight", target])]
}

/// `source.spm` and `target.spm` with the ids of `vocab.json`.
fn vocabularies(folder: &HuggingFaceFolder, config: &TransformerConfig) -> Result<Tokenizers, ImportError> {
    let files = &folder.files;
    let pieces = |name: &str| -> Result<SentencePiece, ImportError> {
        Ok(SentencePiece::read(&files.label(name), &files.get(name)?)?)
    };
    let (source, target) = (pieces("source.spm")?, pieces("target.spm")?);
    let tokens =
        |name: &str, size: usize| -> Result<Vec<String>, ImportError> { Ok(ids(files, name, size)?) };
    let source_tokens = tokens("vocab.json", config.source_vocabulary)?;
    let target_tokens = match files.find("target_vocab.json")? {
        Some(_) => tokens("target_vocab.json", config.target_vocabulary)?,
        None => source_tokens.clone(),
    };
    let special = ["</s>", "<pad>", "<s>"];
    Ok(Tokenizers::separate(
        source.tokenizer_for(&source_tokens, &special)?,
        target.tokenizer_for(&target_tokens, &special)?,
    ))
}

/// The tokens of a `vocab.json` in the order of their ids.
fn ids(
    files: &crate::store::formats::files::Files,
    name: &str,
    size: usize,
) -> Result<Vec<String>, FormatError> {
    let bytes = files.get(name)?;
    let map: std::collections::BTreeMap<String, usize> = serde_json::from_slice(&bytes).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        FormatError::damaged(
            files.label(name),
            place,
            format!("it is no list of tokens with their ids ({error})"),
        )
    })?;
    let mut tokens = vec![None; size];
    for (token, id) in map {
        match tokens.get_mut(id) {
            Some(place @ None) => *place = Some(token),
            _ => {
                let problem = format!("its id {id} is there twice, or the model has only {size} tokens");
                return Err(FormatError::damaged(files.label(name), format!("token `{token}`"), problem));
            }
        }
    }
    let missing = |id: usize| {
        FormatError::damaged(
            files.label(name),
            format!("id {id}"),
            "no token has it, and the model has a row for it",
        )
    };
    tokens.into_iter().enumerate().map(|(id, token)| token.ok_or_else(|| missing(id))).collect()
}

fn gather(from: &mut Gathered<'_>, config: &TransformerConfig) -> Result<(), FormatError> {
    let TransformerConfig { d_model: d, d_ff, target_vocabulary, .. } = *config;
    tables::gather(from, config, names(from))?;
    if config.output_bias {
        from.vector("output.bias", "final_logits_bias", target_vocabulary)?;
    }
    for (stack, depth) in [("encoder", config.encoder_layers), ("decoder", config.decoder_layers)] {
        for i in 0..depth {
            let (ours, theirs) = (format!("{stack}.{i}"), format!("model.{stack}.layers.{i}"));
            let mut linear = |part: &str, attention: &str, which: &[&str], shape: [usize; 2]| {
                let name = |p: &str| match attention {
                    "" => format!("{theirs}.{p}"),
                    attention => format!("{theirs}.{attention}.{p}_proj"),
                };
                let parts: Vec<_> = which
                    .iter()
                    .map(|p| (format!("{}.weight", name(p)), format!("{}.bias", name(p))))
                    .collect();
                from.linear(&format!("{ours}.{part}"), Linear::OutputsFirst, &parts, shape)
            };
            linear("self_attention.qkv", "self_attn", &["q", "k", "v"], [d, 3 * d])?;
            linear("self_attention.output", "self_attn", &["out"], [d, d])?;
            if stack == "decoder" {
                linear("cross_attention.query", "encoder_attn", &["q"], [d, d])?;
                linear("cross_attention.key_value", "encoder_attn", &["k", "v"], [d, 2 * d])?;
                linear("cross_attention.output", "encoder_attn", &["out"], [d, d])?;
            }
            linear("feed_forward.inner", "", &["fc1"], [d, d_ff])?;
            linear("feed_forward.outer", "", &["fc2"], [d_ff, d])?;
            let mut norm = |ours_part: &str, theirs_part: &str| {
                let name = format!("{theirs}.{theirs_part}");
                from.norm(
                    &format!("{ours}.{ours_part}"),
                    [&format!("{name}.weight"), &format!("{name}.bias")],
                    d,
                )
            };
            norm("self_attention_norm", "self_attn_layer_norm")?;
            if stack == "decoder" {
                norm("cross_attention_norm", "encoder_attn_layer_norm")?;
            }
            norm("feed_forward_norm", "final_layer_norm")?;
        }
    }
    Ok(())
}
