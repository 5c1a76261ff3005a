//! What a model has and a format does not. All of it is named at once, before anything is written.

use super::original::Original;
use crate::layers::{AttentionScore, NormKind};
use crate::models::transformer::LayerConfig;
use crate::{Error, Result};

/// Reasons against an export.
#[derive(Default)]
pub(super) struct Refusals {
    reasons: Vec<String>,
}

impl Refusals {
    /// What no format has that we write.
    pub(super) fn of_layers(layer: &LayerConfig) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.add(layer.key_width() != layer.d_model, || {
            format!("keys of another width than d_model (`key_width`: {})", layer.key_width())
        });
        refusals.add(layer.value_width() != layer.d_model, || {
            format!("values of another width than d_model (`value_width`: {})", layer.value_width())
        });
        refusals.add(layer.norm_kind != NormKind::Layer, || "batch norm (`norm_kind`)".to_owned());
        refusals.add(layer.score != AttentionScore::ScaledDot, || {
            format!("the attention score {} (`score`)", layer.score.name())
        });
        refusals.add(layer.window.is_some(), || "restricted self attention (`window`)".to_owned());
        refusals
    }

    /// Adds a reason, if it applies.
    pub(super) fn add(&mut self, applies: bool, reason: impl FnOnce() -> String) {
        if applies {
            self.reasons.push(reason());
        }
    }

    /// The value of what may be missing; if it is, the reason is added.
    pub(super) fn expect<T: Default>(&mut self, found: Option<T>, reason: impl FnOnce() -> String) -> T {
        self.add(found.is_none(), reason);
        found.unwrap_or_default()
    }

    /// An error that names all reasons, if there are any.
    pub(super) fn check(self, original: &Original, format: &'static str, remedy: &str) -> Result<()> {
        if self.reasons.is_empty() {
            return Ok(());
        }
        let (model, reasons) = (original.path.display(), self.reasons.join("; "));
        Err(Error::new(format!(
            "{model} cannot be exported as {format}, which does not have: {reasons}. {remedy}"
        )))
    }
}
