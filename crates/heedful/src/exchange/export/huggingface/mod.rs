//! Export to Hugging Face's transformers, as the class with the same computation:
//!
//! | model | class | differences |
//! |---|---|---|
//! | post-norm translator | `MarianMTModel` | sines before cosines: features are reordered (`feature_order`) |
//! | pre-norm translator | `PegasusForConditionalGeneration` | the same |
//! | pre-norm language model | `GPT2LMHeadModel` | positions are a table; √d is multiplied into the embedding matrix |
//! | post-norm language model | `OPTForCausalLM` | the same |
//! | post-norm masked model with a norm on its embeddings | `BertForMaskedLM` | the same |
//! | pre-norm masked model without one | `MegatronBertForMaskedLM` | the same |
//!
//! The last four classes do not scale embeddings. A model that multiplies them by √d is exported with a
//! scaled embedding matrix and an untied, unscaled output projection; an import recognizes this by the
//! values.

mod language;
mod masked;
mod readme;
mod translator;

use serde_json::{Value, json};

pub(super) use self::language::language;
pub(super) use self::masked::masked;
pub(super) use self::translator::translator;

use super::exporter::ParamExporter;
use super::loaded_model::LoadedModel;
use super::unsupported::UnsupportedFeatures;
use super::{Contents, Exported, shortest};
use crate::Result;
use crate::data::SpecialTokens;
use crate::exchange::embedded_settings::{EmbeddedSettings, KEY};
use crate::exchange::names::activations;
use crate::exchange::names::tables::embedding_scale;
use crate::models::transformer::{LayerConfig, StackConfig};
use crate::store::formats::huggingface::{CONFIG, WEIGHTS};

const REMEDY: &str = "Export it with --to ctranslate2, or train a model without it";

/// ε of the classes that have no setting for it.
const FIXED_EPSILON: f32 = 1e-5;

/// The settings that every `config.json` has.
fn settings(original: &LoadedModel, class: &str, model_type: &str, special: &SpecialTokens) -> Value {
    json!({
        "architectures": [class],
        "model_type": model_type,
        "dtype": "float32",
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
        "pad_token_id": special.pad,
        KEY: EmbeddedSettings::of(&original.config).to_json(),
    })
}

/// Adds settings.
fn extend(settings: &mut Value, more: Value) {
    if let (Value::Object(settings), Value::Object(more)) = (settings, more) {
        settings.extend(more);
    }
}

/// The name of the activation function.
fn activation(layer: &LayerConfig, unsupported: &mut UnsupportedFeatures) -> &'static str {
    unsupported.expect(activations::to_hugging_face(layer.activation), || {
        format!("the activation function {:?} (`activation`)", layer.activation)
    })
}

fn check_epsilon(layer: &LayerConfig, unsupported: &mut UnsupportedFeatures) {
    let epsilon = layer.norm_epsilon;
    unsupported.add(epsilon != FIXED_EPSILON, || {
        format!(
            "an ε of {} in its norms (`norm_epsilon`; it must be {})",
            shortest(epsilon),
            shortest(FIXED_EPSILON)
        )
    });
}

/// Exports the embedding matrix of a model with one vocabulary: tied to the output projection, or scaled by
/// √d and untied.
fn put_table(exporter: &mut ParamExporter<'_>, stack: &StackConfig, [inputs, outputs]: [&str; 2]) {
    let shape = [stack.vocabulary, stack.d_model];
    if !stack.scale_embeddings {
        return exporter.matrix("embedding.weight", inputs, shape);
    }
    let scale = embedding_scale(stack.d_model);
    let scaled = exporter.values("embedding.weight").iter().map(|value| value * scale).collect();
    exporter.add(inputs, &shape, scaled);
    exporter.matrix("embedding.weight", outputs, shape);
}

/// Adds the settings and the weights.
fn finish(
    mut exported: Exported,
    original: &LoadedModel,
    settings: &Value,
    exporter: ParamExporter<'_>,
) -> Result<Exported> {
    exported.add_json(CONFIG, settings);
    exported.finish(original, (WEIGHTS, Contents::Safetensors(exporter.finish())))
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
