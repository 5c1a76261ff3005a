//! A training run: from a recipe to a model's folder.
//!
//! ```text
//! RUN/recipe.toml             every key, as it was trained with
//! RUN/config.json             ┐
//! RUN/model.safetensors       ├ the best model so far: a run's folder is a model's folder
//! RUN/tokenizer.json          ┘
//! RUN/corpus.bin              the training text as tokens
//! RUN/checkpoints/            what a stopped run goes on from
//! RUN/metrics.jsonl  attention.jsonl  events.out.tfevents.…  report.html
//! ```
//!
//! What decides the weights (the order of the data, dropout, Adam, the moving average) is a function of the recipe and
//! the step, or is in the checkpoint. So a run that was killed at any moment and resumed ends with the same weights, to
//! the bit, as one that never stopped.

mod error;
mod watcher;

mod prepare;

mod journal;
mod meter;
mod page;

mod conclude;
mod review;
mod session;

pub use error::RunError;
pub(crate) use page::{environment, settings};
pub use prepare::is_run;
pub(crate) use prepare::with_absolute_paths;
pub use review::report;
pub use watcher::{Ending, Event, FinalModel, Outcome, Pace, Ready, Watcher};

use crate::recipe::Recipe;

/// Whether a run begins or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In a folder that holds no run yet.
    Fresh,
    /// From the newest good checkpoint in the folder; from the beginning if the run did not come that far.
    Resume,
}

/// Trains as the recipe says, in the folder that it names, until its end or until the watcher wants an end.
pub fn train(recipe: &Recipe, start: Start, watcher: &mut dyn Watcher) -> Result<Outcome, RunError> {
    let mut recipe = recipe.clone();
    // A run that goes on has the pretrained model's sizes in its recipe.
    if start == Start::Fresh
        && let Some(pretrained) = recipe.model.init_from.clone()
    {
        recipe.data.task.definition().adopt(&mut recipe, &pretrained)?;
    }
    session::Session::begin(&recipe, start, watcher)?.run()
}
