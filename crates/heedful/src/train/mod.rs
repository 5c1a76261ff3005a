//! From gradients to better parameters.

pub mod log;
mod schedule;

mod guard;
mod optimizer;
mod state;
mod trainer;

mod patience;
mod validate;

mod average;
pub mod checkpoint;

pub mod run;

pub use average::{Averaged, average};
pub use guard::Divergence;
pub use optimizer::{Optimizer, Update};
pub use patience::{Metric, Patience, Score, Verdict};
pub use schedule::Schedule;
pub use state::{StateError, TrainerState};
pub use trainer::{StepReport, TrainError, Trainer, TrainerOptions};
pub use validate::{Validation, validate};
