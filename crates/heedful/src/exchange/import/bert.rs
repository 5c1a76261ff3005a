//! BERT as a masked language model, which classifiers can be fine-tuned from, and as a classifier
//! (`bert_classifier`); and Megatron-BERT, which is pre-norm and has no norm on its embeddings.
//!
//! An encoder that was saved without its masked-token head gets an untrained one.

use heedful_tensor::ops::Activation;

use super::huggingface::{Settings, prefix, tokenizer};
use super::importer::ParamImporter;
use super::settings::{LABEL_SMOOTHING, stack};
use super::{ImportError, Imported, bert_classifier, padding, positions, tables};
use crate::data::tokenizer::{SpecialRole, Tokenizers};
use crate::data::{SpecialTokens, Tokenizer};
use crate::exchange::names::bert::{HEAD, head, stack as blocks};
use crate::exchange::names::{StackShape, torch_norm};
use crate::layers::{Norm, Positions};
use crate::models::Model;
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::weights::Weights;
use crate::tasks::masked::{MaskedConfig, MaskedModel};

/// The note in the origin file of an encoder without a head.
pub(super) const UNTRAINED: &str =
    "\nIt has no head for masked tokens; the one here is untrained, so its predictions mean nothing.\n";

pub(super) fn read(
    folder: &HuggingFaceFolder,
    settings: &Settings<'_>,
    norm: Norm,
) -> Result<Imported, ImportError> {
    let mut from = ParamImporter::new(&folder.tensors);
    let tokenizer = tokenizer(&folder.files, settings.whole("vocab_size")?)?;
    let special = special_tokens(folder, settings, &tokenizer)?;
    let stack = configuration(settings, special, norm)?;
    if from.has("classifier.weight") {
        return bert_classifier::read(from, settings, stack, Tokenizers::joint(tokenizer));
    }
    let mut config = MaskedConfig { stack, label_smoothing: LABEL_SMOOTHING, output_bias: false };
    gather(&mut from, &mut config.stack)?;
    let kind = if norm == Norm::Post { "BERT" } else { "Megatron-BERT" };
    let mut origin = format!("\nA {kind} model of Hugging Face.\n");
    if !head_or_untrained(&mut from, &mut config)? {
        origin.push_str(UNTRAINED);
    }
    from.ignore(|name| {
        // The sentence-pair classifier, position indices, and the second name of the head's bias.
        name.contains("pooler.")
            || name.starts_with("cls.seq_relationship")
            || name.ends_with("position_ids")
            || name == format!("{HEAD}.decoder.bias")
    });
    let weights: Weights = from.finish()?;
    let tokenizers = Tokenizers::joint(tokenizer);
    Ok(Imported {
        config: config.into(),
        tokenizers,
        labels: None,
        languages: None,
        origin,
        notes: Vec::new(),
        pieces: Vec::new(),
        weights,
    })
}

/// The special tokens around texts; the defaults for a vocabulary that heedful made.
fn special_tokens(
    folder: &HuggingFaceFolder,
    settings: &Settings<'_>,
    tokenizer: &Tokenizer,
) -> Result<SpecialTokens, FormatError> {
    if !tokenizer.is_foreign() {
        return Ok(SpecialTokens::default());
    }
    let role = |role, name: &str| {
        let file = folder.files.label("tokenizer.json");
        let missing = || FormatError::missing(file, format!("token {name}"), "It is not BERT's");
        tokenizer.special(role).ok_or_else(missing)
    };
    let pad = settings.whole_or("pad_token_id", 0)? as u32;
    let (first, last) = (role(SpecialRole::Cls, "[CLS]")?, role(SpecialRole::Sep, "[SEP]")?);
    Ok(SpecialTokens {
        // An encoder generates neither; they surround texts.
        bos: first,
        eos: last,
        text_first: Some(first),
        text_last: Some(last),
        mask: role(SpecialRole::Mask, "[MASK]")?,
        pad,
        suppressed: padding::with_padding(
            tokenizer,
            tokenizer.special(SpecialRole::Unk).into_iter().collect(),
        ),
        ..SpecialTokens::default()
    })
}

fn configuration(
    settings: &Settings<'_>,
    special: SpecialTokens,
    norm: Norm,
) -> Result<StackConfig, FormatError> {
    settings.must_be("is_decoder", false)?;
    settings.must_be("add_cross_attention", false)?;
    let kind = settings.text("position_embedding_type", "absolute")?;
    if kind != "absolute" {
        return Err(settings.unsupported(format!("{kind} positions")));
    }
    let sizes = [settings.whole("hidden_size")?, settings.whole("intermediate_size")?];
    let (heads, layers) = (settings.whole("num_attention_heads")?, settings.whole("num_hidden_layers")?);
    Ok(StackConfig {
        special,
        norm,
        norm_epsilon: settings.number("layer_norm_eps", 1e-12)? as f32,
        activation: settings.activation("hidden_act", "gelu")?,
        positions: Positions::Learned { max_length: settings.whole("max_position_embeddings")? },
        embedding_norm: norm == Norm::Post,
        ..stack(settings.whole("vocab_size")?, sizes, heads, layers)
    })
}

/// Imports everything except the head. The kind of positions, and whether embeddings are scaled, are detected
/// from the tensors.
pub(super) fn gather(from: &mut ParamImporter<'_>, config: &mut StackConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, .. } = *config;
    let prefix = prefix(from, "bert.", "embeddings.word_embeddings.weight");
    let embeddings = format!("{prefix}embeddings");
    let words = [&format!("{embeddings}.word_embeddings.weight"), &format!("{HEAD}.decoder.weight")];
    config.scale_embeddings = tables::gather_single(from, words.map(|name| name.as_str()), [vocabulary, d])?;
    let length = config.positions.longest().unwrap_or(0);
    let types = format!("{embeddings}.token_type_embeddings.weight");
    let [count, _] = from.shape(&types)?;
    // Every token has token type 0: its vector is added to every position.
    let mut first = from.tensor(&types, &[count, d])?.values();
    first.truncate(d);
    let mut table = from.tensor(&format!("{embeddings}.position_embeddings.weight"), &[length, d])?.values();
    if first.iter().any(|&value| value != 0.0) {
        for row in table.chunks_exact_mut(d) {
            row.iter_mut().zip(&first).for_each(|(position, token_type)| *position += token_type);
        }
    }
    config.positions = positions::take(from, "position.weight", &table, d);
    if config.embedding_norm {
        from.map(torch_norm("embedding_norm", &format!("{embeddings}.LayerNorm"), d))?;
    }
    from.map(blocks(StackShape::single("encoder", config), prefix))
}

/// Imports the masked-token head, or initializes an untrained one; returns whether the model had a head.
pub(super) fn head_or_untrained(
    from: &mut ParamImporter<'_>,
    config: &mut MaskedConfig,
) -> Result<bool, ImportError> {
    let StackConfig { vocabulary, d_model, activation, .. } = config.stack;
    let bias = format!("{HEAD}.bias");
    config.output_bias = from.has(&bias);
    if !from.has(&format!("{HEAD}.transform.dense.weight")) {
        config.output_bias = false;
        add_untrained_head(from, config)?;
        return Ok(false);
    }
    if activation != Activation::Gelu {
        return Err(from.unsupported("an activation function other than GELU in its head").into());
    }
    from.map(head(d_model))?;
    if config.output_bias {
        from.vector("output.bias", &bias, vocabulary)?;
    }
    Ok(true)
}

/// Initializes an untrained head.
fn add_untrained_head(from: &mut ParamImporter<'_>, config: &MaskedConfig) -> Result<(), ImportError> {
    let untrained = MaskedModel::new(config.clone(), 0)?;
    for name in ["head.weight", "head.bias", "head_norm.gamma", "head_norm.beta"] {
        let param = untrained.params().get(name).expect("every masked language model has a head");
        from.add(name, param.shape(), &param.to_vec());
    }
    Ok(())
}
