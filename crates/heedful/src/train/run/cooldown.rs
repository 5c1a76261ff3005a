//! The end of a trapezoid in a run with a time limit only.
//!
//! The rate is constant until the cooldown, so the last step may stay open until then. The cooldown keeps its
//! planned share of the time; how many steps it has follows from the speed until then.

use super::session::Session;
use super::{Event, prepare};
use crate::Result;
use crate::recipe::ScheduleKind;
use crate::train::time_plan::{closing_seconds, closing_validations};

/// The share of the rest of the time that is planned: in one of three runs the cooldown was 5 % slower than the rest.
const MARGIN: f64 = 0.93;

/// The weight of the planned speed beside the measured one, in steps: a resumed run may have measured few.
const PLANNED_STEPS: f64 = 5.0;

impl Session<'_> {
    /// Fixes the steps when the cooldown is due: in a checkpoint first, then in the recipe of the run.
    pub(super) fn begin_cooldown_if_due(&mut self) -> Result<()> {
        let training = &self.recipe.training;
        let (Some(plan), Some(time)) = (&mut self.plan, training.time) else { return Ok(()) };
        if plan.is_last || training.schedule != ScheduleKind::Trapezoid || training.steps.is_some() {
            return Ok(());
        }
        let elapsed = self.timing.elapsed();
        let limit = time.as_secs_f64();
        let closing =
            closing_seconds(limit, self.timing.validation, closing_validations(&self.recipe, false));
        let left = limit - elapsed - closing;
        let share = training.cooldown as f64 / plan.steps.max(1) as f64;
        if left > share * (limit - closing) {
            return Ok(());
        }
        let steps = (self.step - self.start.step) as f64;
        let measured = elapsed - self.start.elapsed;
        plan.seconds_per_step = (PLANNED_STEPS * plan.seconds_per_step + measured) / (PLANNED_STEPS + steps);
        let cooldown = (MARGIN * left / plan.seconds_per_step).max(1.0) as u64;
        plan.steps = self.step + cooldown;
        plan.cooldown = Some(cooldown);
        plan.is_last = true;
        plan.complete(&mut self.recipe);
        self.trainer.set_schedule(self.recipe.schedule());
        self.watcher.observe(&Event::Planned(plan));
        if let Some(page) = self.journal.page() {
            (page.plan, page.recipe) = (self.plan.clone(), self.recipe.clone());
        }
        self.save(None)?;
        self.await_checkpoint();
        Ok(prepare::write_recipe(&self.recipe, &self.folder.path)?)
    }
}
