//! Features of a model that a format does not support. All of them are reported at once, before anything is
//! written.

use super::loaded_model::LoadedModel;
use crate::layers::{AttentionScore, NormKind};
use crate::models::transformer::LayerConfig;
use crate::{Error, Result};

/// The unsupported features.
#[derive(Default)]
pub(super) struct UnsupportedFeatures {
    features: Vec<String>,
}

impl UnsupportedFeatures {
    /// The features that no export format supports.
    pub(super) fn of_layers(layer: &LayerConfig) -> UnsupportedFeatures {
        let mut unsupported = UnsupportedFeatures::default();
        unsupported.add(layer.key_width() != layer.d_model, || {
            format!("keys with a width other than d_model (`key_width`: {})", layer.key_width())
        });
        unsupported.add(layer.value_width() != layer.d_model, || {
            format!("values with a width other than d_model (`value_width`: {})", layer.value_width())
        });
        unsupported.add(layer.norm_kind != NormKind::Layer, || "batch norm (`norm_kind`)".to_owned());
        unsupported.add(layer.score != AttentionScore::ScaledDot, || {
            format!("the attention score {} (`score`)", layer.score.name())
        });
        unsupported.add(layer.window.is_some(), || "sliding-window self attention (`window`)".to_owned());
        unsupported
    }

    /// Adds a feature, if the model has it.
    pub(super) fn add(&mut self, applies: bool, feature: impl FnOnce() -> String) {
        if applies {
            self.features.push(feature());
        }
    }

    /// The value, if there is one; otherwise adds the feature and returns the default.
    pub(super) fn expect<T: Default>(&mut self, value: Option<T>, feature: impl FnOnce() -> String) -> T {
        self.add(value.is_none(), feature);
        value.unwrap_or_default()
    }

    /// An error that names all features, if there are any.
    pub(super) fn check(self, original: &LoadedModel, format: &'static str, remedy: &str) -> Result<()> {
        if self.features.is_empty() {
            return Ok(());
        }
        let (model, features) = (original.path.display(), self.features.join("; "));
        Err(Error::new(format!(
            "{model} cannot be exported as {format}, which does not support: {features}. {remedy}"
        )))
    }
}
