//! Derives from a recipe the learning rate schedule, the trainer options, and the checkpoints to keep.

use heedful_tensor::ops::AdamOptions;

use super::checkpoint::Keep;
use super::{Schedule, TrainerOptions};
use crate::recipe::{Averaging, CheckpointKeys, KeptState, Recipe, ScheduleKind, TrainingKeys};

impl Recipe {
    /// The learning rate schedule. A cosine without [`TrainingKeys::steps`], which [`crate::tasks::resolve`]
    /// rejects, would never decay.
    pub fn schedule(&self) -> Schedule {
        let TrainingKeys { warmup, lr: peak, factor, min_lr: floor, cooldown, steps, .. } = self.training;
        match self.training.schedule {
            ScheduleKind::Noam => Schedule::Noam { d_model: self.model.d_model, warmup, factor },
            ScheduleKind::InverseSqrt => Schedule::InverseSqrt { peak, warmup },
            ScheduleKind::Cosine => {
                Schedule::Cosine { peak, floor, warmup, total: steps.unwrap_or(u64::MAX) }
            }
            ScheduleKind::Trapezoid => {
                Schedule::Trapezoid { peak, floor, warmup, cooldown, total: steps.unwrap_or(u64::MAX) }
            }
            ScheduleKind::Constant => Schedule::Constant { rate: peak },
        }
    }

    /// The options of the trainer.
    pub(crate) fn trainer_options(&self) -> TrainerOptions {
        let training = &self.training;
        TrainerOptions {
            compute: training.compute,
            seed: training.seed,
            r_drop: training.r_drop_alpha.map(|alpha| alpha as f32),
            schedule: self.schedule(),
            adam: AdamOptions {
                beta1: training.beta1 as f32,
                beta2: training.beta2 as f32,
                epsilon: training.adam_epsilon as f32,
                weight_decay: training.weight_decay as f32,
                decayed: training.decayed,
                clip_norm: training.clip_norm.map_or(f32::INFINITY, |norm| norm as f32),
            },
            average_decay: training.ema.map(|decay| decay as f32),
            max_grad_norm_ratio: training.max_grad_norm_ratio.map(|factor| factor as f32),
        }
    }

    /// The checkpoints to keep: at least those to average.
    pub fn keep(&self) -> Keep {
        let CheckpointKeys { keep_last, keep_best, keep_state, average, average_count, .. } = self.checkpoint;
        let averaged = |averaging| if average == averaging { average_count } else { 0 };
        Keep {
            last: keep_last.max(averaged(Averaging::Last)),
            best: keep_best.max(averaged(Averaging::Best)),
            // If the newest is damaged, the run resumes from the one before it.
            full: match keep_state {
                KeptState::Latest => 2,
                KeptState::All => usize::MAX,
            },
        }
    }

    /// The checkpoints to keep after the run has finished: the model is saved, and one checkpoint suffices to
    /// resume.
    pub(crate) fn keep_finished(&self) -> Keep {
        let keep = self.keep();
        match self.checkpoint.keep_state {
            KeptState::Latest => Keep { full: 1, ..keep },
            KeptState::All => keep,
        }
    }
}
