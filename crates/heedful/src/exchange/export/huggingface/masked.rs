//! Masked language models: post-norm ones as BERT, pre-norm ones as Megatron-BERT.

use heedful_tensor::ops::Activation;
use serde_json::json;

use super::super::vocabulary::Vocabulary;
use super::*;
use crate::Result;
use crate::exchange::names::bert::{HEAD, head, stack as blocks};
use crate::exchange::names::{StackShape, torch_norm};
use crate::layers::Norm;
use crate::tasks::masked::MaskedConfig;

pub(in crate::exchange::export) fn masked(original: &LoadedModel, config: &MaskedConfig) -> Result<Exported> {
    let (stack, d) = (&config.stack, config.stack.d_model);
    let (class, model_type, kind) = match stack.norm {
        Norm::Post => ("BertForMaskedLM", "bert", "a BERT model of Hugging Face"),
        Norm::Pre => ("MegatronBertForMaskedLM", "megatron-bert", "a Megatron-BERT model of Hugging Face"),
    };
    let mut unsupported = UnsupportedFeatures::of_layers(&stack.layer());
    unsupported.add(stack.norm == Norm::Post && !stack.embedding_norm, || {
        "post-norm layers without a norm on the embeddings (`embedding_norm`)".to_owned()
    });
    unsupported.add(stack.norm == Norm::Pre && stack.embedding_norm, || {
        "pre-norm layers with a norm on the embeddings (`embedding_norm`)".to_owned()
    });
    unsupported.add(stack.activation != Activation::Gelu, || {
        "an activation function other than gelu, which the head has (`activation`)".to_owned()
    });
    unsupported.add(original.pieces.is_some(), || "a SentencePiece vocabulary".to_owned());
    unsupported.check(original, kind, REMEDY)?;

    let weights = original.weights()?;
    let mut exporter = ParamExporter::new(&weights);
    let longest = original.longest(stack.positions);
    put_table(
        &mut exporter,
        stack,
        ["bert.embeddings.word_embeddings.weight", &format!("{HEAD}.decoder.weight")],
    );
    let positions = exporter.positions("position.weight", stack.positions, [longest, d]);
    exporter.add("bert.embeddings.position_embeddings.weight", &[longest, d], positions);
    // There is a single token type, whose vector is 0.
    exporter.add("bert.embeddings.token_type_embeddings.weight", &[1, d], vec![0.0; d]);
    if stack.embedding_norm {
        exporter.map(torch_norm("embedding_norm", "bert.embeddings.LayerNorm", d));
    }
    exporter.map(blocks(StackShape::single("encoder", stack), "bert."));
    exporter.map(head(d));
    let bias = match config.output_bias {
        true => exporter.values("output.bias").to_vec(),
        false => vec![0.0; stack.vocabulary],
    };
    // The bias has two names; transformers ties them only if the projection is tied to the embedding.
    exporter.add(format!("{HEAD}.bias"), &[stack.vocabulary], bias.clone());
    exporter.add(format!("{HEAD}.decoder.bias"), &[stack.vocabulary], bias);

    let special = &stack.special;
    let mut settings = settings(original, class, model_type, special);
    extend(
        &mut settings,
        json!({
            "vocab_size": stack.vocabulary,
            "max_position_embeddings": longest,
            "hidden_size": d,
            "intermediate_size": stack.d_ff,
            "num_hidden_layers": stack.layers,
            "num_attention_heads": stack.heads,
            "hidden_act": "gelu",
            "type_vocab_size": 1,
            "layer_norm_eps": shortest(stack.norm_epsilon),
            "tie_word_embeddings": !stack.scale_embeddings,
            "hidden_dropout_prob": shortest(stack.dropout.residual),
            "attention_probs_dropout_prob": shortest(stack.dropout.attention),
        }),
    );
    let mut exported = Exported::new(kind, original);
    Vocabulary::of_masked(original, special).add_to_hugging_face(&mut exported, special, longest);
    exported.add_text("README.md", readme::MASKED);
    finish(exported, original, &settings, exporter)
}
