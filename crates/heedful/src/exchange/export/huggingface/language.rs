//! Pre-norm language models, as GPT-2.

use serde_json::json;

use super::super::vocabulary::Vocabulary;
use super::*;
use crate::exchange::names::{StackShape, gpt2};
use crate::layers::Norm;
use crate::tasks::language::LanguageConfig;

pub(in crate::exchange::export) fn language(
    original: &Original,
    config: &LanguageConfig,
    stack: &StackConfig,
) -> Result<Exported, ExportError> {
    let (layer, special) = (stack.layer(), &stack.special);
    let kind = "a GPT-2 model of Hugging Face";
    let mut refusals = Refusals::of_layers(&layer);
    let activation = activation(&layer, &mut refusals);
    refusals.add(config.output_bias, || "a bias of the output projection (`output_bias`)".to_owned());
    refusals.add(stack.embedding_norm, || "a norm over its embeddings (`embedding_norm`)".to_owned());
    refusals.add(original.pieces.is_some(), || "a SentencePiece vocabulary".to_owned());
    refusals.add(stack.norm == Norm::Post, || "norms behind its sublayers (`norm`)".to_owned());
    refusals.check(original, kind, REMEDY)?;

    let weights = original.weights()?;
    let mut spread = Spread::new(&weights);
    let (shape, longest) = (StackShape::single("decoder", stack), original.longest(stack.positions));
    let settings = as_gpt2(&mut spread, original, stack, activation, longest);
    spread.put(gpt2::stack(shape, "transformer."));
    let mut exported = Exported::new(kind, original);
    let vocabulary = Vocabulary::of_language(original, config.text, special);
    vocabulary.add_to_hugging_face(&mut exported, special, longest);
    exported.add_json("generation_config.json", &generation(special));
    exported.add_text("README.md", readme::LANGUAGE);
    finish(exported, original, &settings, spread)
}

/// Settings and tables of GPT-2.
fn as_gpt2(
    spread: &mut Spread<'_>,
    original: &Original,
    stack: &StackConfig,
    activation: &str,
    longest: usize,
) -> Value {
    let d = stack.d_model;
    put_table(spread, stack, ["transformer.wte.weight", "lm_head.weight"]);
    let positions = spread.positions("position.weight", stack.positions, [longest, d]);
    spread.add("transformer.wpe.weight", &[longest, d], positions);
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
