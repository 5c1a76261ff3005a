//! Plans a run with `training.time` and without `training.steps`: the steps, warmup and validations that fit
//! into the time.
//!
//! ```text
//! n   validations        at most 20, and at most a twentieth of the time
//! N   steps              (remaining time − closing time − n validations) / seconds per step
//! w   warmup             as in a run of N steps: at most a tenth; noam's factor keeps the peak
//!     validation.every   N / n
//! ```
//!
//! The cosine schedule ends at step N, with a margin of 5 % of the time. The other schedules do not depend on
//! N and run until the time is over.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::recipe::{Averaging, Recipe, ScheduleKind, TrainingKeys};

const MAX_VALIDATIONS: f64 = 20.0;
const VALIDATION_SHARE: f64 = 0.05;
/// The share of the estimated steps that a cosine schedule uses, so that it reaches its end.
const COSINE_SHARE: f64 = 0.95;

/// Measured durations in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Seconds per update.
    pub step: f64,
    /// Seconds per validation; 0 without a validation set.
    pub(crate) validation: f64,
}

/// The plan of a run with a time limit only. It is part of every checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimePlan {
    /// Measured seconds per update.
    pub seconds_per_step: f64,
    /// An upper estimate of the seconds per validation; 0 without a validation set.
    pub(crate) seconds_per_validation: f64,
    /// The estimated number of updates.
    pub steps: u64,
    /// Whether the schedule ends at `steps`. A trapezoid is open until its cooldown begins; other schedules run
    /// until the time is over.
    pub is_last: bool,
    /// [`crate::recipe::TrainingKeys::warmup`]; none if the schedule has no warmup.
    pub warmup: Option<u64>,
    /// [`crate::recipe::TrainingKeys::cooldown`]; none if the schedule is not a trapezoid.
    #[serde(default)]
    pub cooldown: Option<u64>,
    /// [`crate::recipe::TrainingKeys::factor`]; none if the schedule is not noam.
    pub factor: Option<f64>,
    /// [`crate::recipe::ValidationKeys::every`]; none if validation is by time, or there is none.
    pub validation_every: Option<u64>,
}

impl TimePlan {
    /// Chooses the automatic keys of a recipe for the remaining seconds.
    pub fn new(recipe: &Recipe, costs: Costs, left: f64) -> TimePlan {
        let Recipe { training, validation, .. } = recipe;
        let is_automatic = |path: &str| recipe.automatic.contains(&path);
        let limit = training.time.map_or(left, |time| time.as_secs_f64());
        let left =
            (left - closing_seconds(limit, costs.validation, closing_validations(recipe, false))).max(0.0);
        let by_time = validation.every_time.map(|every| left / every.as_secs_f64().max(1e-9));
        let validation_count =
            (VALIDATION_SHARE * left / costs.validation.max(1e-9)).floor().clamp(1.0, MAX_VALIDATIONS);
        let is_every_automatic = is_automatic("validation.every");
        let seconds = match by_time {
            _ if costs.validation == 0.0 => left / costs.step,
            Some(count) => (left - count * costs.validation) / costs.step,
            None if is_every_automatic => (left - validation_count * costs.validation) / costs.step,
            None => left / (costs.step + costs.validation / validation.every as f64),
        };
        let is_last = training.schedule == ScheduleKind::Cosine;
        let steps = (seconds * if is_last { COSINE_SHARE } else { 1.0 }).max(1.0) as u64;
        let mut fitted = recipe.clone();
        fitted.scale_to_steps(steps);
        let TrainingKeys { warmup, cooldown, factor, .. } = fitted.training;
        let every = match is_every_automatic {
            true => (steps / validation_count as u64).max(1),
            false => validation.every,
        };
        TimePlan {
            seconds_per_step: costs.step,
            seconds_per_validation: costs.validation,
            steps,
            is_last,
            warmup: (training.schedule != ScheduleKind::Constant).then_some(warmup),
            cooldown: (training.schedule == ScheduleKind::Trapezoid).then_some(cooldown),
            factor: (training.schedule == ScheduleKind::Noam).then_some(factor),
            validation_every: (costs.validation > 0.0 && by_time.is_none()).then_some(every),
        }
    }

    /// Sets the planned keys of a recipe; afterwards no key is automatic.
    pub(crate) fn apply(&self, recipe: &mut Recipe) {
        recipe.scale_to_steps(self.steps);
        let is_interval_automatic = recipe.automatic.contains(&"checkpoint.every");
        recipe.automatic.clear();
        recipe.training.steps = self.is_last.then_some(self.steps);
        recipe.training.warmup = self.warmup.unwrap_or(recipe.training.warmup);
        recipe.training.cooldown = self.cooldown.unwrap_or(recipe.training.cooldown);
        recipe.training.factor = self.factor.unwrap_or(recipe.training.factor);
        recipe.validation.every = self.validation_every.unwrap_or(recipe.validation.every);
        if recipe.checkpoint.average == Averaging::Last {
            // Checkpoints by time would make the average depend on the clock.
            recipe.checkpoint.every_time = None;
            if is_interval_automatic {
                recipe.checkpoint.every = self.validation_every.unwrap_or(self.steps.div_ceil(20));
            }
        }
    }

    /// Sets the last step and the cooldown of a recipe without a last step, if they are fixed.
    pub(crate) fn complete(&self, recipe: &mut Recipe) {
        if self.is_last && recipe.training.schedule.has_end() && recipe.training.steps.is_none() {
            recipe.training.steps = Some(self.steps);
            // Or the saved recipe would not have it.
            recipe.automatic.retain(|&path| path != "training.steps");
            recipe.training.cooldown = self.cooldown.unwrap_or(recipe.training.cooldown);
        }
    }
}

/// Seconds to reserve for the end of a run of `limit` seconds: validations, and 1 % for the last checkpoint.
/// At most half of the time, so that some time is left for training.
pub(crate) fn closing_seconds(limit: f64, validation: f64, validations: u32) -> f64 {
    (f64::from(validations) * validation + 0.01 * limit).min(0.5 * limit)
}

/// The number of validations at the end of a run: after the last step, and of the checkpoint average.
pub(crate) fn closing_validations(recipe: &Recipe, is_validated: bool) -> u32 {
    let averages = recipe.checkpoint.average != Averaging::None && recipe.checkpoint.average_count > 1;
    u32::from(!is_validated) + u32::from(averages)
}

/// `about 2310 steps of 0.503 s: warmup 231, a validation every 115 steps`.
impl fmt::Display for TimePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimePlan { seconds_per_step, steps, is_last, warmup, cooldown, factor, validation_every, .. } =
            self;
        write!(f, "{}{steps} steps of {seconds_per_step:.3} s", if *is_last { "" } else { "about " })?;
        let warmup = warmup.map(|warmup| format!("warmup {warmup}"));
        let factor = factor.map(|factor| format!("factor {factor:.3}"));
        let every = validation_every.map(|every| format!("a validation every {every} steps"));
        let cooldown = cooldown.map(|cooldown| format!("cooldown {cooldown}"));
        let parts: Vec<String> = [warmup, cooldown, factor, every].into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { write!(f, ": {}", parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn recipe(change: impl FnOnce(&mut Recipe)) -> Recipe {
        let mut recipe = Recipe::default();
        recipe.training.time = Some(Duration::from_secs(1200));
        recipe.automatic = Recipe::AUTOMATIC_KEYS.to_vec();
        recipe.checkpoint.average = Averaging::None;
        change(&mut recipe);
        recipe
    }

    fn plan(change: impl FnOnce(&mut Recipe), step: f64, validation: f64, left: f64) -> TimePlan {
        TimePlan::new(&recipe(change), Costs { step, validation }, left)
    }

    #[test]
    fn steps_and_validations_fill_the_time_and_no_more() {
        for (step, validation, left) in [(0.5, 3.0, 1200.0), (0.01, 0.1, 1200.0), (2.0, 30.0, 1100.0)] {
            let plan = plan(|_| {}, step, validation, left);
            let every = plan.validation_every.expect("there is a validation set");
            let count = (plan.steps / every) as f64;
            let spent = plan.steps as f64 * step + count * validation;
            assert!(spent <= left - validation, "{plan}: {spent} of {left}");
            assert!(spent >= 0.75 * left, "{plan}: {spent} of {left}");
            assert!(count * validation <= 0.11 * left + validation, "{plan}");
            assert_eq!(plan.warmup, Some(2000.min(plan.steps / 10)));
        }
    }

    #[test]
    fn a_cosine_ends_at_its_last_step_and_other_schedules_with_the_time() {
        let mut cosine = recipe(|recipe| recipe.training.schedule = ScheduleKind::Cosine);
        let fitted = TimePlan::new(&cosine, Costs { step: 0.5, validation: 0.0 }, 1200.0);
        assert_eq!((fitted.steps, fitted.is_last, fitted.validation_every), (2257, true, None));
        fitted.apply(&mut cosine);
        assert_eq!((cosine.training.steps, cosine.training.warmup), (Some(2257), 225));
        assert!(cosine.automatic.is_empty());
        let mut root = recipe(|_| {});
        plan(|_| {}, 0.5, 0.0, 1200.0).apply(&mut root);
        assert_eq!((root.training.steps, root.training.warmup), (None, 237));
    }

    #[test]
    fn explicitly_set_keys_are_kept() {
        let set = |recipe: &mut Recipe| {
            recipe.automatic = vec!["training.steps"];
            (recipe.training.warmup, recipe.validation.every) = (700, 50);
        };
        let kept = plan(set, 0.5, 5.0, 1200.0);
        assert_eq!((kept.warmup, kept.validation_every), (Some(700), Some(50)));
        // A step with its share of a validation takes 0.6 s.
        assert_eq!(kept.steps, ((1200.0 - 12.0 - 5.0) / 0.6) as u64);
    }

    #[test]
    fn noam_keeps_its_peak() {
        let noam = recipe(|recipe| {
            recipe.training.schedule = ScheduleKind::Noam;
            recipe.training.warmup = 4000;
        });
        let mut fitted = noam.clone();
        TimePlan::new(&noam, Costs { step: 1.0, validation: 0.0 }, 1200.0).apply(&mut fitted);
        let peak = |recipe: &Recipe| recipe.schedule().rate(recipe.training.warmup);
        assert!(fitted.training.warmup < 200);
        assert!((peak(&fitted) / peak(&noam) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn too_little_time_is_one_step() {
        let plan = plan(|_| {}, 10.0, 100.0, 3.0);
        assert_eq!((plan.steps, plan.warmup, plan.validation_every), (1, Some(1), Some(1)));
    }

    #[test]
    fn a_plan_is_printed_in_one_line() {
        let plan = plan(|_| {}, 0.5, 3.0, 1200.0);
        assert_eq!(plan.to_string(), "about 2256 steps of 0.500 s: warmup 225, a validation every 118 steps");
    }
}
