//! The API to start a training run.

use std::path::PathBuf;

use super::{Event, Outcome, Start, Watcher, train_on};
use crate::Result;
use crate::models::DeviceChoice;
use crate::recipe::Recipe;

/// Trains a model with a recipe, like `heedful train` and with the same weights.
///
/// ```no_run
/// # fn main() -> heedful::Result<()> {
/// use heedful::{Event, Recipe, Trainer};
///
/// let recipe = Recipe::open_with("recipe.toml", ["training.steps = 1000"])?;
/// let outcome = Trainer::new(recipe).out("run").watch(|event| {
///     if let Event::Step(pace) = event {
///         println!("step {}: loss {:.3}", pace.step, pace.loss);
///     }
/// })?;
/// println!("{} steps in {:.0} s", outcome.step, outcome.seconds);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Trainer {
    recipe: Recipe,
    device: DeviceChoice,
    start: Start,
}

impl Trainer {
    /// A trainer for a new run on the CPU, in the output folder of the recipe.
    pub fn new(recipe: Recipe) -> Trainer {
        Trainer { recipe, device: DeviceChoice::default(), start: Start::Fresh }
    }

    /// Sets the folder of the run. It contains the best model so far at any time.
    pub fn out(mut self, folder: impl Into<PathBuf>) -> Trainer {
        self.recipe.output.out = Some(folder.into());
        self
    }

    /// Sets the device. Checkpoints can be resumed on any device.
    pub fn device(mut self, device: DeviceChoice) -> Trainer {
        self.device = device;
        self
    }

    /// Sets whether the run is new or resumes from its newest checkpoint.
    pub fn start(mut self, start: Start) -> Trainer {
        self.start = start;
        self
    }

    /// Trains until the recipe's limits are reached.
    pub fn run(&self) -> Result<Outcome> {
        self.watch(|_| ())
    }

    /// As [`Trainer::run`], calling `observe` for every event.
    pub fn watch(&self, observe: impl FnMut(&Event<'_>)) -> Result<Outcome> {
        self.run_with(&mut Observer(observe))
    }

    /// As [`Trainer::run`], with a watcher, which can also stop the run.
    pub(crate) fn run_with(&self, watcher: &mut dyn Watcher) -> Result<Outcome> {
        train_on(self.device, &self.recipe, self.start, watcher)
    }
}

struct Observer<F>(F);

impl<F: FnMut(&Event<'_>)> Watcher for Observer<F> {
    fn observe(&mut self, event: &Event<'_>) {
        (self.0)(event);
    }
}
