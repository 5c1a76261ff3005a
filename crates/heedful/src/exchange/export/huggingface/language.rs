//! Language models: pre-norm ones as GPT-2, post-norm ones as OPT.

use serde_json::json;

use super::super::vocabulary::Vocabulary;
use super::*;
use crate::Result;
use crate::exchange::import::OPT_OFFSET;
use crate::exchange::names::{StackShape, bart, gpt2};
use crate::layers::Norm;
use crate::tasks::language::LanguageConfig;

pub(in crate::exchange::export) fn language(
    original: &LoadedModel,
    config: &LanguageConfig,
    stack: &StackConfig,
) -> Result<Exported> {
    let (layer, special) = (stack.layer(), &stack.special);
    let kind = match stack.norm {
        Norm::Pre => "a GPT-2 model of Hugging Face",
        Norm::Post => "an OPT model of Hugging Face",
    };
    let mut unsupported = UnsupportedFeatures::of_layers(&layer);
    let activation = activation(&layer, &mut unsupported);
    unsupported.add(config.output_bias, || "a bias of the output projection (`output_bias`)".to_owned());
    unsupported.add(stack.embedding_norm, || "a norm on its embeddings (`embedding_norm`)".to_owned());
    unsupported.add(original.pieces.is_some(), || "a SentencePiece vocabulary".to_owned());
    if stack.norm == Norm::Post {
        check_epsilon(&layer, &mut unsupported);
    }
    unsupported.check(original, kind, REMEDY)?;

    let weights = original.weights()?;
    let mut exporter = ParamExporter::new(&weights);
    let (shape, longest) = (StackShape::single("decoder", stack), original.longest(stack.positions));
    let settings = match stack.norm {
        Norm::Pre => as_gpt2(&mut exporter, original, stack, activation, longest),
        Norm::Post => as_opt(&mut exporter, original, stack, activation, longest),
    };
    match stack.norm {
        Norm::Pre => exporter.map(gpt2::stack(shape, "transformer.")),
        Norm::Post => exporter.map(bart::stack(shape, "model.decoder", "final_layer_norm")),
    }
    let mut exported = Exported::new(kind, original);
    let vocabulary = Vocabulary::of_language(original, config.text, special);
    vocabulary.add_to_hugging_face(&mut exported, special, longest);
    exported.add_json("generation_config.json", &generation(special));
    exported.add_text("README.md", readme::LANGUAGE);
    finish(exported, original, &settings, exporter)
}

/// Settings and embeddings of GPT-2.
fn as_gpt2(
    exporter: &mut ParamExporter<'_>,
    original: &LoadedModel,
    stack: &StackConfig,
    activation: &str,
    longest: usize,
) -> Value {
    let d = stack.d_model;
    put_table(exporter, stack, ["transformer.wte.weight", "lm_head.weight"]);
    let positions = exporter.positions("position.weight", stack.positions, [longest, d]);
    exporter.add("transformer.wpe.weight", &[longest, d], positions);
    let mut settings = settings(original, "GPT2LMHeadModel", "gpt2", &stack.special);
    extend(
        &mut settings,
        json!({
            "vocab_size": stack.vocabulary,
            "n_positions": longest,
            "n_embd": d,
            "n_layer": stack.layers,
            "n_head": stack.heads,
            "n_inner": stack.d_ff,
            "activation_function": activation,
            "layer_norm_epsilon": shortest(stack.norm_epsilon),
            "tie_word_embeddings": !stack.scale_embeddings,
            "resid_pdrop": shortest(stack.dropout.residual),
            "embd_pdrop": shortest(stack.dropout.residual),
            "attn_pdrop": shortest(stack.dropout.attention),
        }),
    );
    settings
}

/// Settings and embeddings of OPT.
fn as_opt(
    exporter: &mut ParamExporter<'_>,
    original: &LoadedModel,
    stack: &StackConfig,
    activation: &str,
    longest: usize,
) -> Value {
    let d = stack.d_model;
    put_table(exporter, stack, ["model.decoder.embed_tokens.weight", "lm_head.weight"]);
    // OPT has unused rows before that of the first position.
    let mut positions = vec![0.0; OPT_OFFSET * d];
    positions.extend(exporter.positions("position.weight", stack.positions, [longest, d]));
    exporter.add("model.decoder.embed_positions.weight", &[longest + OPT_OFFSET, d], positions);
    let mut settings = settings(original, "OPTForCausalLM", "opt", &stack.special);
    extend(
        &mut settings,
        json!({
            "vocab_size": stack.vocabulary,
            "max_position_embeddings": longest,
            "hidden_size": d,
            "word_embed_proj_dim": d,
            "num_hidden_layers": stack.layers,
            "num_attention_heads": stack.heads,
            "ffn_dim": stack.d_ff,
            "activation_function": activation,
            "do_layer_norm_before": false,
            "tie_word_embeddings": !stack.scale_embeddings,
            "dropout": shortest(stack.dropout.residual),
            "attention_dropout": shortest(stack.dropout.attention),
        }),
    );
    settings
}
