//! Hugging Face's folders, in the class that computes what the model computes:
//!
//! | model | class | and |
//! |---|---|---|
//! | post-norm translator | `MarianMTModel` | sinusoids in halves: ours are reordered (`stream`) |
//! | pre-norm translator | `PegasusForConditionalGeneration` | the same |
//! | pre-norm language model | `GPT2LMHeadModel` | positions are a table; √d is part of the token vectors |
//! | post-norm language model | `OPTForCausalLM` | the same |
//! | post-norm masked model with a norm over its embeddings | `BertForMaskedLM` | the same |
//! | pre-norm masked model without one | `MegatronBertForMaskedLM` | the same |
//!
//! The last four have no factor for token vectors. A model that multiplies them by √d gets vectors that are multiplied already, and an
//! output projection of its own that is not; an import finds out by the numbers.

mod language;
mod masked;
mod readme;
mod translator;

use serde_json::{Value, json};

pub(super) use self::language::language;
pub(super) use self::masked::masked;
pub(super) use self::translator::translator;

use super::original::Original;
use super::refusals::Refusals;
use super::spread::Spread;
use super::{Contents, Exported, shortest};
use crate::Result;
use crate::data::SpecialTokens;
use crate::exchange::kept::{KEY, Kept};
use crate::exchange::names::activations;
use crate::exchange::names::tables::embedding_scale;
use crate::models::transformer::{LayerConfig, StackConfig};
use crate::store::formats::huggingface::{CONFIG, WEIGHTS};

const REMEDY: &str = "Export it with --to ctranslate2, or train a model without it";

/// ε of classes that have no setting for it.
const FIXED_EPSILON: f32 = 1e-5;

/// What every `config.json` has.
fn settings(original: &Original, class: &str, model_type: &str, special: &SpecialTokens) -> Value {
    json!({
        "architectures": [class],
        "model_type": model_type,
        "dtype": "float32",
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
        "pad_token_id": special.pad,
        KEY: Kept::of(&original.config).to_json(),
    })
}

/// Adds settings to others.
fn extend(settings: &mut Value, more: Value) {
    if let (Value::Object(settings), Value::Object(more)) = (settings, more) {
        settings.extend(more);
    }
}

/// The name of the activation function.
fn activation(layer: &LayerConfig, refusals: &mut Refusals) -> &'static str {
    refusals.expect(activations::to_hugging_face(layer.activation), || {
        format!("the activation function {:?} (`activation`)", layer.activation)
    })
}

fn refuse_epsilon(layer: &LayerConfig, refusals: &mut Refusals) {
    let epsilon = layer.norm_epsilon;
    refusals.add(epsilon != FIXED_EPSILON, || {
        format!("{} in its norms (`norm_epsilon`; it has {})", shortest(epsilon), shortest(FIXED_EPSILON))
    });
}

/// How a model of one vocabulary has its table: multiplied by √d and apart from the output projection, or tied to it.
fn put_table(spread: &mut Spread<'_>, stack: &StackConfig, [inputs, outputs]: [&str; 2]) {
    let shape = [stack.vocabulary, stack.d_model];
    if !stack.scale_embeddings {
        return spread.table("embedding.weight", inputs, shape);
    }
    let scale = embedding_scale(stack.d_model);
    let scaled = spread.numbers("embedding.weight").iter().map(|number| number * scale).collect();
    spread.add(inputs, &shape, scaled);
    spread.table("embedding.weight", outputs, shape);
}

/// The files that all have: settings, what `generate` does by default, a page on how to run it, weights.
fn finish(
    mut exported: Exported,
    original: &Original,
    settings: &Value,
    spread: Spread<'_>,
) -> Result<Exported> {
    exported.add_json(CONFIG, settings);
    exported.finish(original, (WEIGHTS, Contents::Safetensors(spread.finish())))
}

/// `generation_config.json`.
fn generation(special: &SpecialTokens) -> Value {
    let mut generation = json!({
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
        "pad_token_id": special.pad,
    });
    if !special.suppressed.is_empty() {
        generation["suppress_tokens"] = json!(special.suppressed);
    }
    generation
}
