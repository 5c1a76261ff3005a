//! CTranslate2's folders. Its settings can say all that ours can, so positions are written as a table and nothing is reordered.
//!
//! An encoder of CTranslate2 ends with its states: what a masked language model has after them is written into a file of its own,
//! under BERT's names.

use serde_json::{Value, json};

use super::original::Original;
use super::refusals::Refusals;
use super::spread::Spread;
use super::vocabulary::Vocabulary;
use super::{Contents, Exported, shortest};
use crate::Result;
use crate::data::SpecialTokens;
use crate::exchange::kept::{KEY, Kept};
use crate::exchange::names::bert::{HEAD, head};
use crate::exchange::names::{StackShape, activations, ctranslate2 as names, tables};
use crate::layers::Norm;
use crate::models::transformer::{StackConfig, TransformerConfig};
use crate::recipe::DecoderLayer;
use crate::store::formats::ctranslate2::{CONFIG, Ctranslate2Contents, WEIGHTS};
use crate::store::formats::huggingface;
use crate::store::formats::written::{Numbers, WrittenTensor};
use crate::tasks::language::LanguageConfig;
use crate::tasks::masked::MaskedConfig;

const FORMAT: &str = "a CTranslate2 model";
const REMEDY: &str = "Train a model without it";

/// A translator.
pub(super) fn translator(original: &Original, config: &TransformerConfig) -> Result<Exported> {
    let mut refusals = Refusals::of_layers(&config.layer());
    refusals.add(config.decoder_layer != DecoderLayer::Attention, || {
        "recurrent units in the decoder (`decoder_layer`)".to_owned()
    });
    let stacks = StackShape::both(config);
    let scalars = stacks.map(|shape| scalars(shape, &stack_of(config, shape), &mut refusals));
    let vocabulary = Vocabulary::of_translator(original, &config.special, &mut refusals);
    let ends = config.special.source_eos.map(|eos| vocabulary.source_name(eos));
    let eos = vocabulary.target_name(config.special.eos);
    refusals.add(ends.as_ref().is_some_and(|end| *end != eos), || {
        "another token after sources than after targets".to_owned()
    });
    refusals.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut spread = Spread::new(&weights);
    let mut aliases = Vec::new();
    let theirs = ["encoder/embeddings_0/weight", "decoder/embeddings/weight", "decoder/projection/weight"];
    let mut known: Vec<(&str, &str)> = Vec::new();
    for ((ours, shape), name) in tables::ours(config).into_iter().zip(theirs) {
        match known.iter().find(|(table, _)| *table == ours) {
            Some((_, first)) => aliases.push((name.to_owned(), (*first).to_owned())),
            None => spread.table(ours, name, shape),
        }
        known.push((ours, name));
    }
    if config.output_bias {
        let bias = spread.numbers("output.bias").to_vec();
        spread.add("decoder/projection/bias", &[config.target_vocabulary], bias);
    }
    for ((shape, side), scalars) in stacks.into_iter().zip(["source", "target"]).zip(scalars) {
        for (name, number) in scalars {
            spread.number(format!("{}/{name}", shape.name), number);
        }
        put_stack(&mut spread, original, shape, &stack_of(config, shape), side);
    }
    let start = i8::from(config.special.start_from_zero);
    spread.number("decoder/start_from_zero_embedding".to_owned(), Numbers::I8(start));

    let mut exported = Exported::new("a translator of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let mut settings = settings(original, &vocabulary, config.norm_epsilon, &config.special);
    settings["decoder_start_token"] = vocabulary.target_name(config.special.bos).into();
    settings["add_source_bos"] = false.into();
    settings["add_source_eos"] = ends.is_some().into();
    exported.add_json(CONFIG, &settings);
    exported.add_text("translate.py", include_str!("scripts/translate.py"));
    exported.finish(original, contents("TransformerSpec", 7, spread.finish(), aliases))
}

/// A decoder that generates.
pub(super) fn language(
    original: &Original,
    config: &LanguageConfig,
    stack: &StackConfig,
) -> Result<Exported> {
    let shape = StackShape::single("decoder", stack);
    let mut refusals = Refusals::of_layers(&stack.layer());
    let scalars = scalars(shape, stack, &mut refusals);
    let vocabulary = Vocabulary::of_language(original, config.text, &stack.special);
    refusals.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut spread = Spread::new(&weights);
    put_single(&mut spread, original, shape, stack, "decoder/embeddings/weight", scalars);
    let aliases = vec![("decoder/projection/weight".to_owned(), "decoder/embeddings/weight".to_owned())];
    if config.output_bias {
        let bias = spread.numbers("output.bias").to_vec();
        spread.add("decoder/projection/bias", &[stack.vocabulary], bias);
    }
    spread.number("decoder/start_from_zero_embedding".to_owned(), Numbers::I8(0));

    let mut exported = Exported::new("a language model of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let settings = settings(original, &vocabulary, stack.norm_epsilon, &stack.special);
    exported.add_json(CONFIG, &settings);
    exported.add_text("generate.py", include_str!("scripts/generate.py"));
    exported.finish(original, contents("TransformerDecoderSpec", 8, spread.finish(), aliases))
}

/// An encoder, with the head for masked tokens beside it.
pub(super) fn masked(original: &Original, config: &MaskedConfig) -> Result<Exported> {
    let (stack, d) = (&config.stack, config.stack.d_model);
    let shape = StackShape::single("encoder", stack);
    let mut refusals = Refusals::of_layers(&stack.layer());
    let scalars = scalars(shape, stack, &mut refusals);
    let vocabulary = Vocabulary::of_masked(original, &stack.special);
    refusals.check(original, FORMAT, REMEDY)?;

    let weights = original.weights()?;
    let mut spread = Spread::new(&weights);
    spread.put(head(d));
    spread.table("embedding.weight", format!("{HEAD}.decoder.weight"), [stack.vocabulary, d]);
    if config.output_bias {
        let bias = spread.numbers("output.bias").to_vec();
        spread.add(format!("{HEAD}.bias"), &[stack.vocabulary], bias);
    }
    let head = spread.take();
    put_single(&mut spread, original, shape, stack, "encoder/embeddings_0/weight", scalars);

    let mut exported = Exported::new("an encoder of CTranslate2", original);
    vocabulary.add_to_ctranslate2(&mut exported);
    let mut settings = settings(original, &vocabulary, stack.norm_epsilon, &stack.special);
    settings["mask_token"] = vocabulary.target_name(stack.special.mask).into();
    exported.add_json(CONFIG, &settings);
    exported.add_text("fill.py", include_str!("scripts/fill.py"));
    exported.add(huggingface::HEAD, Contents::Safetensors(head));
    exported.finish(original, contents("TransformerEncoderSpec", 1, spread.finish(), Vec::new()))
}

/// Encoder or decoder of a translator as a stack of its own.
fn stack_of(config: &TransformerConfig, shape: StackShape) -> StackConfig {
    if shape.name == "encoder" { config.encoder() } else { config.decoder() }
}

/// Settings that are kept among the variables.
fn scalars(shape: StackShape, stack: &StackConfig, refusals: &mut Refusals) -> Vec<(&'static str, Numbers)> {
    let activation = refusals.expect(activations::to_ctranslate2(stack.activation), || {
        "feed-forward layers without an activation function (`activation`)".to_owned()
    });
    let heads = refusals.expect(i16::try_from(stack.heads).ok(), || format!("{} heads", stack.heads));
    let mut scalars = vec![
        ("num_heads", Numbers::I16(heads)),
        ("pre_norm", Numbers::I8(i8::from(stack.norm == Norm::Pre))),
        ("activation", Numbers::I8(activation)),
        ("scale_embeddings", Numbers::I8(i8::from(stack.scale_embeddings))),
    ];
    match shape.name {
        "encoder" => {
            let off = ["embeddings_merge", "multi_query_attention"];
            scalars.extend(off.map(|name| (name, Numbers::I8(0))));
        }
        _ => {
            let off = ["alibi", "alibi_use_positive_positions", "scale_alibi"];
            scalars.extend(off.map(|name| (name, Numbers::I8(0))));
            scalars.extend([("alignment_layer", Numbers::I16(-1)), ("alignment_heads", Numbers::I16(1))]);
        }
    }
    scalars
}

/// Blocks, norms and positions of a stack. What is before its blocks is called after `side`, if it has one.
fn put_stack(
    spread: &mut Spread<'_>,
    original: &Original,
    shape: StackShape,
    stack: &StackConfig,
    side: &str,
) {
    let named = |what: &str| if side.is_empty() { what.to_owned() } else { format!("{side}_{what}") };
    let d = stack.d_model;
    let length = original.longest(stack.positions);
    let encodings = spread.positions(&format!("{}.weight", named("position")), stack.positions, [length, d]);
    spread.add(format!("{}/position_encodings/encodings", shape.name), &[length, d], encodings);
    if stack.embedding_norm {
        spread.put(names::embedding_norm(&named("embedding_norm"), shape.name, d));
    }
    spread.put(names::stack(shape));
}

/// A model of one stack.
fn put_single(
    spread: &mut Spread<'_>,
    original: &Original,
    shape: StackShape,
    stack: &StackConfig,
    table: &str,
    scalars: Vec<(&'static str, Numbers)>,
) {
    spread.table("embedding.weight", table, [stack.vocabulary, stack.d_model]);
    for (name, number) in scalars {
        spread.number(format!("{}/{name}", shape.name), number);
    }
    put_stack(spread, original, shape, stack, "");
}

/// `config.json`. Tokens that are never generated are for the caller: CTranslate2 takes them with each request.
fn settings(
    original: &Original,
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
        KEY: Kept::of(&original.config).to_json(),
    })
}

fn contents(
    specification: &'static str,
    revision: u32,
    variables: Vec<WrittenTensor>,
    aliases: Vec<(String, String)>,
) -> (&'static str, Contents) {
    (WEIGHTS, Contents::Ctranslate2(Ctranslate2Contents { specification, revision, variables, aliases }))
}
