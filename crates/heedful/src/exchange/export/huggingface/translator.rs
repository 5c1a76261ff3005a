//! Translators: MarianMT where they are post-norm, Pegasus where they are pre-norm.

use serde_json::json;

use super::super::vocabulary::Vocabulary;
use super::*;
use crate::Result;
use crate::exchange::names::{StackShape, bart, tables};
use crate::exchange::stream::{WaveOrder, reordered};
use crate::layers::{Halves, Norm, Positions, Tying};
use crate::models::transformer::TransformerConfig;
use crate::recipe::DecoderLayer;

/// Tokens of an output, if whoever runs the model says nothing else.
const LONGEST_OUTPUT: usize = 512;

pub(in crate::exchange::export) fn translator(
    original: &Original,
    config: &TransformerConfig,
) -> Result<Exported> {
    let layer = config.layer();
    let (class, model_type, kind) = match config.norm {
        Norm::Post => ("MarianMTModel", "marian", "a MarianMT model of Hugging Face"),
        Norm::Pre => ("PegasusForConditionalGeneration", "pegasus", "a Pegasus model of Hugging Face"),
    };
    let mut refusals = Refusals::of_layers(&layer);
    let activation = activation(&layer, &mut refusals);
    refuse_epsilon(&layer, &mut refusals);
    refuse(config, &mut refusals);
    let vocabulary = Vocabulary::of_translator(original, &config.special, &mut refusals);
    refusals.check(original, kind, REMEDY)?;

    let mut weights = original.weights()?;
    if config.positions == Positions::Sinusoidal {
        weights = reordered(&weights, config.d_model, WaveOrder::Halves);
    }
    let mut spread = Spread::new(&weights);
    put_tables(&mut spread, config);
    if config.output_bias {
        let bias = spread.numbers("output.bias").to_vec();
        spread.add("final_logits_bias", &[1, config.target_vocabulary], bias);
    }
    let longest = original.longest(config.positions);
    for shape in StackShape::both(config) {
        let prefix = format!("model.{}", shape.name);
        // Marian computes its sinusoids, Pegasus reads them too.
        if config.norm == Norm::Pre {
            let halves = Positions::Halves(Halves::MarianMt);
            let table = spread.positions("", halves, [longest, config.d_model]);
            spread.add(format!("{prefix}.embed_positions.weight"), &[longest, config.d_model], table);
        }
        spread.put(bart::stack(shape, &prefix, "layer_norm"));
    }

    let special = &config.special;
    let mut settings = settings(original, class, model_type, special);
    extend(
        &mut settings,
        json!({
            "is_encoder_decoder": true,
            "vocab_size": config.source_vocabulary,
            "d_model": config.d_model,
            "encoder_layers": config.encoder_layers,
            "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": config.heads,
            "decoder_attention_heads": config.heads,
            "encoder_ffn_dim": config.d_ff,
            "decoder_ffn_dim": config.d_ff,
            "activation_function": activation,
            "scale_embedding": config.scale_embeddings,
            "static_position_embeddings": true,
            "max_position_embeddings": longest,
            "tie_word_embeddings": matches!(config.tying, Tying::All | Tying::TargetOutput),
            "decoder_start_token_id": special.bos,
            "forced_eos_token_id": null,
            "dropout": shortest(config.dropout.residual),
            "attention_dropout": shortest(config.dropout.attention),
            "activation_dropout": shortest(config.dropout.feed_forward),
        }),
    );
    if config.norm == Norm::Post {
        settings["decoder_vocab_size"] = config.target_vocabulary.into();
        settings["share_encoder_decoder_embeddings"] = shares_input(config.tying).into();
    }
    let mut exported = Exported::new(kind, original);
    vocabulary.add_to_hugging_face(&mut exported, special, longest);
    let mut generation = generation(special);
    generation["decoder_start_token_id"] = special.bos.into();
    generation["max_length"] = LONGEST_OUTPUT.min(longest).into();
    exported.add_json("generation_config.json", &generation);
    exported.add_text("README.md", &readme::translator(original));
    finish(exported, original, &settings, spread)
}

/// What neither of the two has.
fn refuse(config: &TransformerConfig, refusals: &mut Refusals) {
    let positions = match config.positions {
        Positions::Sinusoidal | Positions::Halves(Halves::MarianMt) => None,
        Positions::Halves(_) => Some("sinusoids of other angles"),
        Positions::Learned { .. } => Some("learned positions"),
        Positions::None => Some("no positions"),
    };
    refusals.add(positions.is_some(), || format!("{} (`positions`)", positions.unwrap_or_default()));
    refusals.add(config.decoder_layer != DecoderLayer::Attention, || {
        "recurrent units in the decoder (`decoder_layer`)".to_owned()
    });
    refusals.add(config.embedding_norm, || "a norm over its embeddings (`embedding_norm`)".to_owned());
    refusals.add(config.special.start_from_zero, || {
        "a decoder that begins with the vector 0 (`special.start_from_zero`)".to_owned()
    });
    refusals.add(config.special.source_eos.is_some_and(|eos| eos != config.special.eos), || {
        "another token after sources than after targets (`special.source_eos`)".to_owned()
    });
    // Older versions of transformers give Pegasus one table for both sides, whatever its files say.
    refusals.add(config.norm == Norm::Pre && !shares_input(config.tying), || {
        "separate embeddings of source and target with pre-norm layers (`tying`)".to_owned()
    });
}

fn shares_input(tying: Tying) -> bool {
    matches!(tying, Tying::All | Tying::SourceTarget)
}

fn put_tables(spread: &mut Spread<'_>, config: &TransformerConfig) {
    let [source, target, output] = tables::ours(config);
    let mut put = |(ours, shape): (&str, [usize; 2]), theirs: &str| spread.table(ours, theirs, shape);
    if shares_input(config.tying) {
        put(source, "model.shared.weight");
    }
    // A table that is tied to another is not written again, but for inputs that only share: transformers ties all or none.
    if config.tying != Tying::All {
        put(source, "model.encoder.embed_tokens.weight");
        put(target, "model.decoder.embed_tokens.weight");
    }
    if matches!(config.tying, Tying::SourceTarget | Tying::None) {
        put(output, "lm_head.weight");
    }
}
