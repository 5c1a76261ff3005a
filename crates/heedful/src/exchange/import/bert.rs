//! BERT as a masked language model, from which classifiers may start, and BERT as a classifier (`bert_classifier`).
//!
//! An encoder that was saved without its head for masked tokens gets a new one, as a model has it before training.

use heedful_tensor::ops::Activation;

use super::gathered::{Gathered, Linear};
use super::huggingface::{Settings, prefix, tokenizer};
use super::settings::{LABEL_SMOOTHING, stack};
use super::{ImportError, Imported, bert_classifier};
use crate::data::SpecialTokens;
use crate::data::tokenizer::{SpecialRole, Tokenizers};
use crate::layers::Positions;
use crate::models::Model;
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::weights::Weights;
use crate::tasks::masked::{MaskedConfig, MaskedModel};

/// The head for masked tokens.
const HEAD: &str = "cls.predictions";

pub(super) fn read(folder: &HuggingFaceFolder, settings: &Settings<'_>) -> Result<Imported, ImportError> {
    let mut from = Gathered::new(&folder.tensors);
    let tokenizer = tokenizer(&folder.files, settings.whole("vocab_size")?)?;
    let role = |role, name: &str| {
        let missing = || {
            FormatError::missing(
                folder.files.label("tokenizer.json"),
                format!("token {name}"),
                "It is not BERT's",
            )
        };
        tokenizer.special(role).ok_or_else(missing)
    };
    let special = SpecialTokens {
        // Neither is generated; both are around texts.
        bos: role(SpecialRole::Cls, "[CLS]")?,
        eos: role(SpecialRole::Sep, "[SEP]")?,
        text_first: Some(role(SpecialRole::Cls, "[CLS]")?),
        text_last: Some(role(SpecialRole::Sep, "[SEP]")?),
        mask: role(SpecialRole::Mask, "[MASK]")?,
        pad: settings.id("pad_token_id").unwrap_or(0),
        suppressed: tokenizer.special(SpecialRole::Unk).into_iter().collect(),
        ..SpecialTokens::default()
    };
    if from.has("classifier.weight") {
        let stack = configuration(settings, special)?;
        return bert_classifier::read(from, settings, stack, Tokenizers::joint(tokenizer));
    }
    let config = MaskedConfig {
        stack: configuration(settings, special)?,
        label_smoothing: LABEL_SMOOTHING,
        output_bias: from.has(&format!("{HEAD}.bias")),
    };
    gather(&mut from, &config.stack)?;
    let has_head = from.has(&format!("{HEAD}.transform.dense.weight"));
    let mut origin = "\nA BERT model of Hugging Face.\n".to_owned();
    if has_head {
        head(&mut from, &config)?;
    } else {
        origin.push_str("\nIt has no head for masked tokens; the one here is untrained, so its predictions mean nothing.\n");
        new_head(&mut from, &config)?;
    }
    from.leave_out(|name| {
        // What a sentence pair is classified by, and numbers that count.
        name.contains("pooler.") || name.starts_with("cls.seq_relationship") || name.ends_with("position_ids")
    });
    let weights: Weights = from.finish()?;
    let tokenizers = Tokenizers::joint(tokenizer);
    Ok(Imported { config: config.into(), tokenizers, labels: None, origin, weights })
}

fn configuration(settings: &Settings<'_>, special: SpecialTokens) -> Result<StackConfig, FormatError> {
    let activation = match settings.text("hidden_act", "gelu") {
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        other => return Err(settings.unsupported(format!("the activation function `{other}`"))),
    };
    let kind = settings.text("position_embedding_type", "absolute");
    if kind != "absolute" || settings.is("is_decoder", false) || settings.is("add_cross_attention", false) {
        return Err(settings.unsupported(format!("{kind} positions, or a decoder")));
    }
    let sizes = [settings.whole("hidden_size")?, settings.whole("intermediate_size")?];
    let (heads, layers) = (settings.whole("num_attention_heads")?, settings.whole("num_hidden_layers")?);
    Ok(StackConfig {
        special,
        norm_epsilon: settings.number("layer_norm_eps", 1e-12) as f32,
        activation,
        positions: Positions::Learned { max_length: settings.whole("max_position_embeddings")? },
        embedding_norm: true,
        ..stack(settings.whole("vocab_size")?, sizes, heads, layers)
    })
}

/// Takes the encoder.
pub(super) fn gather(from: &mut Gathered<'_>, config: &StackConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, d_ff, .. } = *config;
    let prefix = prefix(from, "bert.", "embeddings.word_embeddings.weight");
    let embeddings = format!("{prefix}embeddings");
    from.table("embedding.weight", &format!("{embeddings}.word_embeddings.weight"), [vocabulary, d])?;
    let length = config.positions.longest().unwrap_or(0);
    let types = format!("{embeddings}.token_type_embeddings.weight");
    let [count, _] = from.shape(&types)?;
    // Every token is of the first of the two texts that BERT can read: its vector is part of every position.
    let first = from.tensor(&types, &[count, d])?.values();
    let mut positions =
        from.tensor(&format!("{embeddings}.position_embeddings.weight"), &[length, d])?.values();
    for row in positions.chunks_exact_mut(d) {
        row.iter_mut().zip(&first).for_each(|(position, token_type)| *position += token_type);
    }
    from.add("position.weight", [length, d], &positions);
    norm(from, "embedding_norm", &format!("{embeddings}.LayerNorm"), d)?;
    for i in 0..config.layers {
        let (ours, theirs) = (format!("encoder.{i}"), format!("{prefix}encoder.layer.{i}"));
        let mut linear = |part: &str, names: &[&str], shape: [usize; 2]| {
            let name = |name: &&str| (format!("{theirs}.{name}.weight"), format!("{theirs}.{name}.bias"));
            let parts: Vec<_> = names.iter().map(name).collect();
            from.linear(&format!("{ours}.{part}"), Linear::OutputsFirst, &parts, shape)
        };
        let qkv = ["attention.self.query", "attention.self.key", "attention.self.value"];
        linear("self_attention.qkv", &qkv, [d, 3 * d])?;
        linear("self_attention.output", &["attention.output.dense"], [d, d])?;
        linear("feed_forward.inner", &["intermediate.dense"], [d, d_ff])?;
        linear("feed_forward.outer", &["output.dense"], [d_ff, d])?;
        norm(
            from,
            &format!("{ours}.self_attention_norm"),
            &format!("{theirs}.attention.output.LayerNorm"),
            d,
        )?;
        norm(from, &format!("{ours}.feed_forward_norm"), &format!("{theirs}.output.LayerNorm"), d)?;
    }
    Ok(())
}

fn head(from: &mut Gathered<'_>, config: &MaskedConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, activation, .. } = config.stack;
    if activation != Activation::Gelu {
        return Err(from.unsupported("another activation function than GELU in its head"));
    }
    let dense = format!("{HEAD}.transform.dense");
    let parts = [(format!("{dense}.weight"), format!("{dense}.bias"))];
    from.linear("head", Linear::OutputsFirst, &parts, [d, d])?;
    norm(from, "head_norm", &format!("{HEAD}.transform.LayerNorm"), d)?;
    if config.output_bias {
        from.vector("output.bias", &format!("{HEAD}.bias"), vocabulary)?;
    }
    let decoder = format!("{HEAD}.decoder.weight");
    let words = format!(
        "{}embeddings.word_embeddings.weight",
        prefix(from, "bert.", "embeddings.word_embeddings.weight")
    );
    if from.has(&decoder) && !from.are_the_same([&decoder, &words]) {
        return Err(from.unsupported("an output projection that is not the embedding"));
    }
    from.leave_out(|name| name.starts_with(&format!("{HEAD}.decoder.")));
    Ok(())
}

/// The head of a model that was never trained.
fn new_head(from: &mut Gathered<'_>, config: &MaskedConfig) -> Result<(), ImportError> {
    let untrained = MaskedModel::new(config.clone(), 0)?;
    for name in ["head.weight", "head.bias", "head_norm.gamma", "head_norm.beta"] {
        let param = untrained.params().get(name).expect("every masked language model has a head");
        from.add(name, param.shape(), &param.to_vec());
    }
    Ok(())
}

fn norm(from: &mut Gathered<'_>, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
    from.norm(ours, [&format!("{theirs}.weight"), &format!("{theirs}.bias")], width)
}
