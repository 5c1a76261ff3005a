//! Training: schedule, optimizer, trainer, checkpoints, logs, and the run that combines them.

pub mod log;
mod schedule;
mod settings;

mod optimizer;
mod state;

mod largest_batch;
pub mod team;
mod trainer;

mod patience;

mod fit;
mod time_plan;

mod average;
pub mod checkpoint;

pub mod examples;

pub mod run;

pub use average::{Averaged, average};
pub use fit::Choice;
pub use heedful_tensor::ops::Divergence;
pub use optimizer::{Optimizer, Update};
pub use patience::{Patience, ValidationScore, Verdict};
pub use schedule::Schedule;
pub use state::{StateError, TrainerState};
pub use time_plan::TimePlan;
pub(crate) use trainer::JoinError;
pub use trainer::{StepReport, StepTrainer, TrainError, TrainerOptions};
