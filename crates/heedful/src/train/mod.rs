//! From gradients to better parameters.

pub mod log;
mod schedule;

mod optimizer;
mod trainer;

pub use optimizer::{Optimizer, Update};
pub use schedule::Schedule;
pub use trainer::{StepReport, Trainer, TrainerOptions};
