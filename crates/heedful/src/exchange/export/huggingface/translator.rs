//! Translators: post-norm ones as MarianMT, pre-norm ones as Pegasus.

use serde_json::json;

use super::super::vocabulary::Vocabulary;
use super::*;
use crate::Result;
use crate::exchange::feature_order::{FeatureOrder, reorder_features};
use crate::exchange::names::{StackShape, bart, tables};
use crate::layers::{Halves, Norm, Positions, Tying};
use crate::models::transformer::TransformerConfig;
use crate::recipe::DecoderLayer;

/// Default maximum length of an output.
const LONGEST_OUTPUT: usize = 512;

pub(in crate::exchange::export) fn translator(
    original: &LoadedModel,
    config: &TransformerConfig,
) -> Result<Exported> {
    let layer = config.layer();
    let (class, model_type, kind) = match config.norm {
        Norm::Post => ("MarianMTModel", "marian", "a MarianMT model of Hugging Face"),
        Norm::Pre => ("PegasusForConditionalGeneration", "pegasus", "a Pegasus model of Hugging Face"),
    };
    let mut unsupported = UnsupportedFeatures::of_layers(&layer);
    let activation = activation(&layer, &mut unsupported);
    check_epsilon(&layer, &mut unsupported);
    check_features(config, &mut unsupported);
    let vocabulary = Vocabulary::of_translator(original, &config.special, &mut unsupported);
    unsupported.check(original, kind, REMEDY)?;

    let mut weights = original.weights()?;
    if config.positions == Positions::Sinusoidal {
        weights = reorder_features(&weights, config.d_model, FeatureOrder::Halves);
    }
    let mut exporter = ParamExporter::new(&weights);
    put_tables(&mut exporter, config);
    if config.output_bias {
        let bias = exporter.values("output.bias").to_vec();
        exporter.add("final_logits_bias", &[1, config.target_vocabulary], bias);
    }
    let longest = original.longest(config.positions);
    for shape in StackShape::both(config) {
        let prefix = format!("model.{}", shape.name);
        // Marian computes its sinusoids; Pegasus reads them from the file.
        if config.norm == Norm::Pre {
            let halves = Positions::Halves(Halves::MarianMt);
            let table = exporter.positions("", halves, [longest, config.d_model]);
            exporter.add(format!("{prefix}.embed_positions.weight"), &[longest, config.d_model], table);
        }
        exporter.map(bart::stack(shape, &prefix, "layer_norm"));
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
    finish(exported, original, &settings, exporter)
}

/// Features that neither of the two supports.
fn check_features(config: &TransformerConfig, unsupported: &mut UnsupportedFeatures) {
    let positions = match config.positions {
        Positions::Sinusoidal | Positions::Halves(Halves::MarianMt) => None,
        Positions::Halves(_) => Some("sinusoids with other angles"),
        Positions::Learned { .. } => Some("learned positions"),
        Positions::None => Some("no positions"),
    };
    unsupported.add(positions.is_some(), || format!("{} (`positions`)", positions.unwrap_or_default()));
    unsupported.add(config.decoder_layer != DecoderLayer::Attention, || {
        "SSRU layers in the decoder (`decoder_layer`)".to_owned()
    });
    unsupported.add(config.embedding_norm, || "a norm on its embeddings (`embedding_norm`)".to_owned());
    unsupported.add(config.special.start_from_zero, || {
        "a decoder that begins with the zero vector (`special.start_from_zero`)".to_owned()
    });
    unsupported.add(config.special.source_eos.is_some_and(|eos| eos != config.special.eos), || {
        "different end tokens of sources and targets (`special.source_eos`)".to_owned()
    });
    // Older versions of transformers always use one embedding matrix for both sides of Pegasus.
    unsupported.add(config.norm == Norm::Pre && !shares_input(config.tying), || {
        "separate embeddings of source and target with pre-norm layers (`tying`)".to_owned()
    });
}

fn shares_input(tying: Tying) -> bool {
    matches!(tying, Tying::All | Tying::SourceTarget)
}

fn put_tables(exporter: &mut ParamExporter<'_>, config: &TransformerConfig) {
    let [source, target, output] = tables::ours(config);
    let mut put = |(ours, shape): (&str, [usize; 2]), theirs: &str| exporter.matrix(ours, theirs, shape);
    if shares_input(config.tying) {
        put(source, "model.shared.weight");
    }
    // A tied matrix is not written twice, except if only the inputs are tied: transformers ties all or none.
    if config.tying != Tying::All {
        put(source, "model.encoder.embed_tokens.weight");
        put(target, "model.decoder.embed_tokens.weight");
    }
    if matches!(config.tying, Tying::SourceTarget | Tying::None) {
        put(output, "lm_head.weight");
    }
}
