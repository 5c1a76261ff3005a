//! GPT-2 as a language model.

use heedful_tensor::ops::Activation;

use super::gathered::{Gathered, Linear};
use super::huggingface::{Settings, prefix, tokenizer};
use super::settings::stack;
use super::{ImportError, Imported};
use crate::data::SpecialTokens;
use crate::data::tokenizer::Tokenizers;
use crate::layers::{Norm, Positions};
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::tasks::language::{LanguageConfig, TextShape};

pub(super) fn read(folder: &HuggingFaceFolder, settings: &Settings<'_>) -> Result<Imported, ImportError> {
    let mut from = Gathered::new(&folder.tensors);
    let stack = configuration(settings)?;
    let tokenizer = tokenizer(&folder.files, stack.vocabulary)?;
    gather(&mut from, &stack)?;
    let weights = from.finish()?;
    let config = LanguageConfig {
        stack: stack.into(),
        text: TextShape::Running,
        label_smoothing: 0.0,
        output_bias: false,
    };
    Ok(Imported {
        config: config.into(),
        tokenizers: Tokenizers::joint(tokenizer),
        labels: None,
        origin: "\nA GPT-2 model of Hugging Face.\n".to_owned(),
        weights,
    })
}

fn configuration(settings: &Settings<'_>) -> Result<StackConfig, FormatError> {
    let activation = match settings.text("activation_function", "gelu_new") {
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "gelu" => Activation::Gelu,
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        other => return Err(settings.unsupported(format!("the activation function `{other}`"))),
    };
    for (key, usual) in [
        ("scale_attn_weights", true),
        ("scale_attn_by_inverse_layer_idx", false),
        ("add_cross_attention", false),
        ("tie_word_embeddings", true),
    ] {
        if settings.is(key, usual) != usual {
            return Err(settings.unsupported(format!("`{key}`: {}", !usual)));
        }
    }
    let vocabulary = settings.whole("vocab_size")?;
    let d_model = settings.whole("n_embd")?;
    let d_ff = settings.whole("n_inner").unwrap_or(4 * d_model);
    let last = vocabulary.saturating_sub(1) as u32;
    let eos = settings.id("eos_token_id").unwrap_or(last);
    Ok(StackConfig {
        special: SpecialTokens {
            bos: settings.id("bos_token_id").unwrap_or(last),
            eos,
            pad: eos,
            ..SpecialTokens::default()
        },
        norm: Norm::Pre,
        norm_epsilon: settings.number("layer_norm_epsilon", 1e-5) as f32,
        activation,
        positions: Positions::Learned { max_length: settings.whole("n_positions")? },
        ..stack(vocabulary, [d_model, d_ff], settings.whole("n_head")?, settings.whole("n_layer")?)
    })
}

fn gather(from: &mut Gathered<'_>, config: &StackConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, d_ff, .. } = *config;
    let prefix = prefix(from, "transformer.", "wte.weight");
    let words = format!("{prefix}wte.weight");
    from.table("embedding.weight", &words, [vocabulary, d])?;
    let length = config.positions.longest().unwrap_or(0);
    from.table("position.weight", &format!("{prefix}wpe.weight"), [length, d])?;
    for i in 0..config.layers {
        let (ours, theirs) = (format!("decoder.{i}"), format!("{prefix}h.{i}"));
        let mut linear = |part: &str, name: &str, shape: [usize; 2]| {
            let parts = [(format!("{theirs}.{name}.weight"), format!("{theirs}.{name}.bias"))];
            from.linear(&format!("{ours}.{part}"), Linear::InputsFirst, &parts, shape)
        };
        linear("self_attention.qkv", "attn.c_attn", [d, 3 * d])?;
        linear("self_attention.output", "attn.c_proj", [d, d])?;
        linear("feed_forward.inner", "mlp.c_fc", [d, d_ff])?;
        linear("feed_forward.outer", "mlp.c_proj", [d_ff, d])?;
        norm(from, &format!("{ours}.self_attention_norm"), &format!("{theirs}.ln_1"), d)?;
        norm(from, &format!("{ours}.feed_forward_norm"), &format!("{theirs}.ln_2"), d)?;
        // The causal mask, which old files keep.
        from.leave_out(|name| {
            name == format!("{theirs}.attn.bias") || name == format!("{theirs}.attn.masked_bias")
        });
    }
    norm(from, "decoder.norm", &format!("{prefix}ln_f"), d)?;
    if from.has("lm_head.weight") && !from.are_the_same(["lm_head.weight", &words]) {
        return Err(from.unsupported("an output projection that is not the embedding"));
    }
    from.leave_out(|name| name == "lm_head.weight");
    Ok(())
}

fn norm(from: &mut Gathered<'_>, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
    from.norm(ours, [&format!("{theirs}.weight"), &format!("{theirs}.bias")], width)
}
