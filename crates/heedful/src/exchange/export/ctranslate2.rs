//! Export to CTranslate2. The format can express all of heedful's settings, so positions are written as a
//! table and features are not reordered.
//!
//! An encoder of CTranslate2 outputs its states: the head of a masked language model is written to a separate
//! file, under BERT's names.

use serde_json::{Value, json};

use super::exporter::ParamExporter;
use super::loaded_model::LoadedModel;
use super::unsupported::UnsupportedFeatures;
use super::vocabulary::Vocabulary;
use super::{Contents, Exported, shortest};
use crate::Result;
use crate::data::SpecialTokens;
use crate::exchange::embedded_settings::{EmbeddedSettings, KEY};
use crate::exchange::names::bert::{HEAD, head};
use crate::exchange::names::{StackShape, activations, ctranslate2 as names, tables};
use crate::layers::Norm;
use crate::models::transformer::{StackConfig, TransformerConfig};
use crate::recipe::DecoderLayer;
use crate::store::formats::ctranslate2::{CONFIG, Ctranslate2Contents, WEIGHTS};
use crate::store::formats::huggingface;
use crate::store::formats::output_tensor::{OutputTensor, TensorValues};
use crate::tasks::language::LanguageConfig;
use crate::tasks::masked::MaskedConfig;

const FORMAT: &str = "a CTranslate2 model";
const REMEDY: &str = "Train a model without it";

/// A translator.
pub(super) fn translator(original: &LoadedModel, config: &TransformerConfig) -> Result<Exported> {
    let mut unsupported = UnsupportedFeatures::of_layers(&config.layer());
    unsupported.add(config.decoder_layer != DecoderLayer::Attention, || {
        "SSRU layers in the decoder (`decoder_layer`)".to_owned()
    });
    let stacks = StackShape::both(config);
    let scalars = stacks.map(|shape| scalars(shape, &stack_of(config, shape), &mut unsupported));
    let vocabulary = Vocabulary::of_translator(original, &config.special, &mut unsupported);
    let ends = config.special.source_eos.map(|eos| vocabulary.source_name(eos));
    let eos = vocabulary.target_name(config.special.eos);
    unsupported.add(ends.as_ref().is_some_and(|end| *end != eos), || {
        "different end tokens of sources and targets".to_owned()
    });
    unsupported.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut exporter = ParamExporter::new(&weights);
    let mut aliases = Vec::new();
    let theirs = ["encoder/embeddings_0/weight", "decoder/embeddings/weight", "decoder/projection/weight"];
    let mut written: Vec<(&str, &str)> = Vec::new();
    for ((ours, shape), name) in tables::ours(config).into_iter().zip(theirs) {
        match written.iter().find(|(table, _)| *table == ours) {
            Some((_, first)) => aliases.push((name.to_owned(), (*first).to_owned())),
            None => exporter.matrix(ours, name, shape),
        }
        written.push((ours, name));
    }
    if config.output_bias {
        let bias = exporter.values("output.bias").to_vec();
        exporter.add("decoder/projection/bias", &[config.target_vocabulary], bias);
    }
    for ((shape, side), scalars) in stacks.into_iter().zip(["source", "target"]).zip(scalars) {
        for (name, number) in scalars {
            exporter.scalar(format!("{}/{name}", shape.name), number);
        }
        put_stack(&mut exporter, original, shape, &stack_of(config, shape), side);
    }
    let start = i8::from(config.special.start_from_zero);
    exporter.scalar("decoder/start_from_zero_embedding".to_owned(), TensorValues::I8(start));

    let mut exported = Exported::new("a translator of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let mut settings = settings(original, &vocabulary, config.norm_epsilon, &config.special);
    settings["decoder_start_token"] = vocabulary.target_name(config.special.bos).into();
    settings["add_source_bos"] = false.into();
    settings["add_source_eos"] = ends.is_some().into();
    exported.add_json(CONFIG, &settings);
    exported.add_text("translate.py", include_str!("scripts/translate.py"));
    exported.finish(original, contents("TransformerSpec", 7, exporter.finish(), aliases))
}

/// A language model.
pub(super) fn language(
    original: &LoadedModel,
    config: &LanguageConfig,
    stack: &StackConfig,
) -> Result<Exported> {
    let shape = StackShape::single("decoder", stack);
    let mut unsupported = UnsupportedFeatures::of_layers(&stack.layer());
    let scalars = scalars(shape, stack, &mut unsupported);
    let vocabulary = Vocabulary::of_language(original, config.text, &stack.special);
    unsupported.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut exporter = ParamExporter::new(&weights);
    put_single(&mut exporter, original, shape, stack, "decoder/embeddings/weight", scalars);
    let aliases = vec![("decoder/projection/weight".to_owned(), "decoder/embeddings/weight".to_owned())];
    if config.output_bias {
        let bias = exporter.values("output.bias").to_vec();
        exporter.add("decoder/projection/bias", &[stack.vocabulary], bias);
    }
    exporter.scalar("decoder/start_from_zero_embedding".to_owned(), TensorValues::I8(0));

    let mut exported = Exported::new("a language model of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let settings = settings(original, &vocabulary, stack.norm_epsilon, &stack.special);
    exported.add_json(CONFIG, &settings);
    exported.add_text("generate.py", include_str!("scripts/generate.py"));
    exported.finish(original, contents("TransformerDecoderSpec", 8, exporter.finish(), aliases))
}

/// A masked language model: an encoder, with its head in a separate file.
pub(super) fn masked(original: &LoadedModel, config: &MaskedConfig) -> Result<Exported> {
    let (stack, d) = (&config.stack, config.stack.d_model);
    let shape = StackShape::single("encoder", stack);
    let mut unsupported = UnsupportedFeatures::of_layers(&stack.layer());
    let scalars = scalars(shape, stack, &mut unsupported);
    let vocabulary = Vocabulary::of_masked(original, &stack.special);
    unsupported.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut exporter = ParamExporter::new(&weights);
    exporter.map(head(d));
    exporter.matrix("embedding.weight", format!("{HEAD}.decoder.weight"), [stack.vocabulary, d]);
    if config.output_bias {
        let bias = exporter.values("output.bias").to_vec();
        exporter.add(format!("{HEAD}.bias"), &[stack.vocabulary], bias);
    }
    let head = exporter.take();
    put_single(&mut exporter, original, shape, stack, "encoder/embeddings_0/weight", scalars);

    let mut exported = Exported::new("an encoder of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let mut settings = settings(original, &vocabulary, stack.norm_epsilon, &stack.special);
    settings["mask_token"] = vocabulary.target_name(stack.special.mask).into();
    exported.add_json(CONFIG, &settings);
    exported.add_text("fill.py", include_str!("scripts/fill.py"));
    exported.add(huggingface::HEAD, Contents::Safetensors(head));
    exported.finish(original, contents("TransformerEncoderSpec", 1, exporter.finish(), Vec::new()))
}

/// The encoder or decoder of a translator as a single stack.
fn stack_of(config: &TransformerConfig, shape: StackShape) -> StackConfig {
    if shape.name == "encoder" { config.encoder() } else { config.decoder() }
}

/// Settings that CTranslate2 stores as variables.
fn scalars(
    shape: StackShape,
    stack: &StackConfig,
    unsupported: &mut UnsupportedFeatures,
) -> Vec<(&'static str, TensorValues)> {
    let activation = unsupported.expect(activations::to_ctranslate2(stack.activation), || {
        "feed-forward layers without an activation function (`activation`)".to_owned()
    });
    let heads = unsupported.expect(i16::try_from(stack.heads).ok(), || format!("{} heads", stack.heads));
    let mut scalars = vec![
        ("num_heads", TensorValues::I16(heads)),
        ("pre_norm", TensorValues::I8(i8::from(stack.norm == Norm::Pre))),
        ("activation", TensorValues::I8(activation)),
        ("scale_embeddings", TensorValues::I8(i8::from(stack.scale_embeddings))),
    ];
    match shape.name {
        "encoder" => {
            let off = ["embeddings_merge", "multi_query_attention"];
            scalars.extend(off.map(|name| (name, TensorValues::I8(0))));
        }
        _ => {
            let off = ["alibi", "alibi_use_positive_positions", "scale_alibi"];
            scalars.extend(off.map(|name| (name, TensorValues::I8(0))));
            scalars.extend([
                ("alignment_layer", TensorValues::I16(-1)),
                ("alignment_heads", TensorValues::I16(1)),
            ]);
        }
    }
    scalars
}

/// Exports blocks, norms and positions of a stack. The parameters before its blocks have the prefix `side`,
/// if it is not empty.
fn put_stack(
    exporter: &mut ParamExporter<'_>,
    original: &LoadedModel,
    shape: StackShape,
    stack: &StackConfig,
    side: &str,
) {
    let named = |what: &str| if side.is_empty() { what.to_owned() } else { format!("{side}_{what}") };
    let d = stack.d_model;
    let length = original.longest(stack.positions);
    let encodings =
        exporter.positions(&format!("{}.weight", named("position")), stack.positions, [length, d]);
    exporter.add(format!("{}/position_encodings/encodings", shape.name), &[length, d], encodings);
    if stack.embedding_norm {
        exporter.map(names::embedding_norm(&named("embedding_norm"), shape.name, d));
    }
    exporter.map(names::stack(shape));
}

/// Exports a model of one stack.
fn put_single(
    exporter: &mut ParamExporter<'_>,
    original: &LoadedModel,
    shape: StackShape,
    stack: &StackConfig,
    table: &str,
    scalars: Vec<(&'static str, TensorValues)>,
) {
    exporter.matrix("embedding.weight", table, [stack.vocabulary, stack.d_model]);
    for (name, number) in scalars {
        exporter.scalar(format!("{}/{name}", shape.name), number);
    }
    put_stack(exporter, original, shape, stack, "");
}

/// `config.json`. The suppressed tokens are for the caller's use: CTranslate2 takes them with each request.
fn settings(
    original: &LoadedModel,
    vocabulary: &Vocabulary<'_>,
    epsilon: f32,
    special: &SpecialTokens,
) -> Value {
    let suppressed = special.suppressed.iter().map(|&id| vocabulary.target_name(id));
    json!({
        "bos_token": vocabulary.target_name(special.bos),
        "eos_token": vocabulary.target_name(special.eos),
        "unk_token": vocabulary.unknown_name(special.eos),
        "suppressed_tokens": suppressed.collect::<Vec<_>>(),
        "layer_norm_epsilon": shortest(epsilon),
        "multi_query_attention": false,
        KEY: EmbeddedSettings::of(&original.config).to_json(),
    })
}

fn contents(
    specification: &'static str,
    revision: u32,
    variables: Vec<OutputTensor>,
    aliases: Vec<(String, String)>,
) -> (&'static str, Contents) {
    (WEIGHTS, Contents::Ctranslate2(Ctranslate2Contents { specification, revision, variables, aliases }))
}
