//! Defaults that follow the length of a run: the keys of [`Recipe::open`], which nobody set.
//!
//! ```text
//! training.warmup     at most a tenth of the steps
//! training.factor     noam's peak stays: it is proportional to factor · warmup^-0.5
//! validation.every    at most a tenth of the steps
//! checkpoint.every    at most a tenth of the steps
//! output.log_every    at most a twentieth of the steps
//! ```

use super::{Recipe, ScheduleKind};

const TENTH: u64 = 10;
const TWENTIETH: u64 = 20;

impl Recipe {
    /// The keys that a run chooses by its length, unless they are set: by `training.steps`, or else by what fits into
    /// `training.time`.
    pub const FITTED: [&'static str; 6] = [
        "training.steps",
        "training.warmup",
        "training.factor",
        "validation.every",
        "checkpoint.every",
        "output.log_every",
    ];

    /// Whether the run has a time and no number of steps: then it measures how many fit.
    #[doc(hidden)]
    pub(crate) fn fits_time(&self) -> bool {
        self.open.contains(&"training.steps")
    }

    /// Sets the open keys to what suits a run of this many steps; none of them grows.
    pub(crate) fn fit(&mut self, steps: u64) {
        let Recipe { training, validation, checkpoint, output, open, .. } = self;
        let fit = |path: &'static str, value: &mut u64, parts: u64| {
            if open.contains(&path) {
                *value = (*value).min((steps / parts).max(1));
            }
        };
        let before = training.warmup.max(1);
        fit("training.warmup", &mut training.warmup, TENTH);
        fit("validation.every", &mut validation.every, TENTH);
        fit("checkpoint.every", &mut checkpoint.every, TENTH);
        fit("output.log_every", &mut output.log_every, TWENTIETH);
        if open.contains(&"training.factor") {
            training.factor *= (training.warmup as f64 / before as f64).sqrt();
        }
    }

    /// Says of a warmup that is longer than the run of this many steps, how far the learning rate gets.
    pub(crate) fn endless_warmup(&self, steps: u64) -> Option<String> {
        let warmup = self.training.warmup;
        if self.training.schedule == ScheduleKind::Constant || warmup <= steps {
            return None;
        }
        let percent = 100.0 * steps as f64 / warmup as f64;
        Some(format!(
            "training.warmup is {warmup} and the run has {steps} steps: the learning rate only rises, to {percent:.3} % of its \
             peak; set a shorter warmup, or none: it is then a tenth of the steps"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Preset;

    fn fitted(preset: Preset, steps: u64, open: &[&'static str]) -> Recipe {
        let mut recipe = Recipe::preset(preset);
        recipe.training.steps = Some(steps);
        recipe.open = open.to_vec();
        recipe.fit(steps);
        recipe
    }

    #[test]
    fn short_runs_have_shorter_defaults_and_long_ones_those_of_the_preset() {
        let open = &Recipe::FITTED[1..];
        let values = |recipe: &Recipe| {
            (
                recipe.training.warmup,
                recipe.validation.every,
                recipe.checkpoint.every,
                recipe.output.log_every,
            )
        };
        for (steps, wanted) in [
            (1, (1, 1, 1, 1)),
            (5, (1, 1, 1, 1)),
            (400, (40, 40, 40, 20)),
            (8000, (800, 500, 800, 50)),
            (50_000, (2000, 500, 1000, 50)),
        ] {
            assert_eq!(values(&fitted(Preset::Small, steps, open)), wanted, "{steps}");
        }
        assert_eq!(values(&fitted(Preset::Small, 400, &["validation.every"])), (2000, 40, 1000, 50));
        for preset in [Preset::Tiny, Preset::Small, Preset::Iwslt, Preset::Base, Preset::Big] {
            let whole = Recipe::preset(preset);
            let again = fitted(preset, whole.training.steps.expect("a number of steps"), open);
            assert_eq!(Recipe { open: Vec::new(), ..again }, whole);
        }
    }

    #[test]
    fn noam_keeps_its_peak_in_a_short_run() {
        let [long, short] = [100_000, 500].map(|steps| fitted(Preset::Base, steps, &Recipe::FITTED[1..]));
        let peak = |recipe: &Recipe| recipe.training.factor * (recipe.training.warmup as f64).powf(-0.5);
        assert_eq!(short.training.warmup, 50);
        assert!((peak(&short) / peak(&long) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_warmup_that_is_longer_than_the_run_is_told() {
        let told = |steps| Recipe::default().endless_warmup(steps);
        assert!(told(5).expect("2000 are more than 5").contains("to 0.250 % of its peak"));
        assert!(told(1999).is_some() && told(2000).is_none(), "the last of 2000 steps has the peak");
        let mut constant = Recipe::default();
        constant.training.schedule = ScheduleKind::Constant;
        assert_eq!(constant.endless_warmup(5), None);
        assert_eq!(fitted(Preset::Small, 1, &["training.warmup"]).endless_warmup(1), None);
    }
}
