//! What a run is to train on, and what it trains on.

use heedful_tensor::{Device, cuda};

use super::RunError;
use crate::recipe::Recipe;

/// What a run is to train on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The processor.
    Cpu,
    /// The NVIDIA card; an error where there is none, or the model does not run there.
    Cuda,
    /// The card if there is one and the model runs there, else the processor.
    Auto,
}

/// What a run trains on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenDevice {
    /// The device.
    pub device: Device,
    /// Why it is not the card, if the choice was left to the program.
    pub why_not_card: Option<String>,
}

impl DeviceChoice {
    /// The device for a recipe, from its configuration alone: known before anything is read or written.
    pub fn resolve(self, recipe: &Recipe) -> Result<ChosenDevice, RunError> {
        let on = |device| ChosenDevice { device, why_not_card: None };
        match (self, check_card(recipe)) {
            (DeviceChoice::Cpu, _) => Ok(on(Device::Cpu)),
            (_, Ok(())) => Ok(on(Device::Cuda)),
            (DeviceChoice::Cuda, Err(refusal)) => Err(refusal.into()),
            (DeviceChoice::Auto, Err(refusal)) => {
                Ok(ChosenDevice { device: Device::Cpu, why_not_card: Some(refusal.to_string()) })
            }
        }
    }
}

/// Why a model is not trained on a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOnCard {
    /// It has operations without kernels for cards.
    #[error("recurrent models do not train on a card so far")]
    Model,
    /// There is no card.
    #[error(transparent)]
    NoCard(#[from] cuda::Unavailable),
}

/// Whether the model is trained on the card. A model that is not has no use for a card, so it is told first.
fn check_card(recipe: &Recipe) -> Result<(), NotOnCard> {
    // Sizes of vocabularies and the number of labels do not matter; a configuration that cannot be built is refused later.
    let config = recipe.model_config([recipe.vocabulary.size; 2], 2);
    if config.is_ok_and(|config| !config.trains_on(Device::Cuda)) {
        return Err(NotOnCard::Model);
    }
    cuda::card()?;
    Ok(())
}

/// The warning of a run that goes on elsewhere than it was; `before` is unknown in old checkpoints.
pub(super) fn warning(before: Option<&str>, now: &str) -> Option<String> {
    let before = before.filter(|&before| before != now)?;
    Some(format!(
        "the run goes on on another device or instruction set ({before} before, {now} now): its weights will differ in the last bits from those \
         of an uninterrupted run"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::NormKind;
    use crate::recipe::{DecoderLayer, Family, Task};

    fn refusal(change: impl FnOnce(&mut Recipe)) -> Option<NotOnCard> {
        let mut recipe = Recipe::default();
        change(&mut recipe);
        check_card(&recipe).err().filter(|refusal| *refusal == NotOnCard::Model)
    }

    #[test]
    fn models_without_kernels_for_cards_are_refused_by_their_recipe() {
        let trains: [fn(&mut Recipe); 9] = [
            |_| {},
            |recipe| recipe.start_from_family(Family::Convolutional),
            |recipe| recipe.data.task = Task::Classify,
            |recipe| recipe.data.task = Task::Language,
            |recipe| recipe.data.task = Task::Masked,
            |recipe| recipe.model.norm_kind = NormKind::Batch,
            |recipe| recipe.model.decoder_layer = DecoderLayer::Ssru,
            |recipe| (recipe.model.output_bias, recipe.model.embedding_norm) = (true, true),
            |recipe| (recipe.model.d_model, recipe.model.heads) = (2048, 2),
        ];
        for (number, change) in trains.into_iter().enumerate() {
            assert_eq!(refusal(change), None, "change {number}");
        }
        for task in [Task::Translate, Task::Classify, Task::Language] {
            let change = |recipe: &mut Recipe| {
                recipe.start_from_family(Family::Recurrent);
                recipe.data.task = task;
            };
            assert_eq!(refusal(change), Some(NotOnCard::Model), "{task}");
        }
    }

    #[test]
    fn what_does_not_train_on_a_card_is_an_error_or_trains_on_the_processor_with_a_reason() {
        let mut recipe = Recipe::default();
        recipe.start_from_family(Family::Recurrent);
        let resolve = |choice: DeviceChoice| choice.resolve(&recipe);
        let error = resolve(DeviceChoice::Cuda).expect_err("no kernels").to_string();
        assert!(error.contains("recurrent models") && error.contains("--device cpu"), "{error}");
        let chosen = resolve(DeviceChoice::Auto).expect("the processor");
        assert_eq!(chosen.device, Device::Cpu);
        assert!(chosen.why_not_card.is_some_and(|why| why.contains("recurrent models")));
        let chosen = resolve(DeviceChoice::Cpu).expect("the processor");
        assert_eq!(chosen, ChosenDevice { device: Device::Cpu, why_not_card: None });
    }

    #[test]
    fn another_device_is_warned_of_where_the_one_before_is_known() {
        assert_eq!(warning(None, "cpu (avx2)"), None);
        assert_eq!(warning(Some("cpu (avx2)"), "cpu (avx2)"), None);
        let text = warning(Some("cuda (NVIDIA H200)"), "cpu (avx2)").expect("a warning");
        assert!(text.contains("(cuda (NVIDIA H200) before, cpu (avx2) now)"), "{text}");
    }
}
