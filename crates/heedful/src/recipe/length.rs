//! Defaults that depend on the length of a run: the keys of [`Recipe::automatic`], which were not set.
//!
//! ```text
//! training.warmup     at most a tenth of the steps
//! training.cooldown   at most 40 % of the steps
//! training.factor     keeps noam's peak, which is proportional to factor · warmup^-0.5
//! validation.every    at most a tenth of the steps
//! checkpoint.every    at most a tenth of the steps
//! output.log_every    at most a twentieth of the steps
//! ```

use super::{Recipe, ScheduleKind};

const TENTH: u64 = 10;
const TWENTIETH: u64 = 20;

impl Recipe {
    /// The keys that depend on the length of the run unless they are set: on `training.steps`, or else on the
    /// steps that fit into `training.time`.
    pub const AUTOMATIC_KEYS: [&'static str; 7] = [
        "training.steps",
        "training.warmup",
        "training.cooldown",
        "training.factor",
        "validation.every",
        "checkpoint.every",
        "output.log_every",
    ];

    /// The keys that a translator with only a time limit chooses for its text and machine
    /// ([`crate::train`]'s module `fit`), if neither they nor a preset are set.
    pub(crate) const FITTED_KEYS: [&'static str; 11] = [
        "model.d_model",
        "model.d_ff",
        "model.heads",
        "model.encoder_layers",
        "model.decoder_layers",
        "model.norm",
        "training.batch_tokens",
        "training.dropout",
        "training.schedule",
        "training.lr",
        "checkpoint.average",
    ];

    /// Whether the run chooses keys for its text and machine.
    pub(crate) fn is_fitted(&self) -> bool {
        Recipe::FITTED_KEYS.iter().any(|path| self.is_automatic(path))
    }

    /// Whether this key is chosen for the run.
    pub(crate) fn is_automatic(&self, path: &str) -> bool {
        self.automatic.contains(&path)
    }

    /// Whether the run has a time limit and no number of steps: then it measures how many steps fit.
    #[doc(hidden)]
    pub(crate) fn has_only_time_limit(&self) -> bool {
        self.automatic.contains(&"training.steps")
    }

    /// Lowers the automatic keys to suit a run of this many steps; never raises them.
    pub(crate) fn scale_to_steps(&mut self, steps: u64) {
        let Recipe { training, validation, checkpoint, output, automatic, .. } = self;
        let limit = |path: &'static str, value: &mut u64, most: u64| {
            if automatic.contains(&path) {
                *value = (*value).min(most.max(1));
            }
        };
        let before = training.warmup.max(1);
        limit("training.warmup", &mut training.warmup, steps / TENTH);
        limit("training.cooldown", &mut training.cooldown, steps * 2 / 5);
        limit("validation.every", &mut validation.every, steps / TENTH);
        limit("checkpoint.every", &mut checkpoint.every, steps / TENTH);
        limit("output.log_every", &mut output.log_every, steps / TWENTIETH);
        if automatic.contains(&"training.factor") {
            training.factor *= (training.warmup as f64 / before as f64).sqrt();
        }
    }

    /// A warning if the warmup is longer than a run of this many steps, with the share of the peak that the
    /// learning rate reaches.
    pub(crate) fn unfinished_warmup_warning(&self, steps: u64) -> Option<String> {
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

    fn fitted(preset: Preset, steps: u64, automatic: &[&'static str]) -> Recipe {
        let mut recipe = Recipe::preset(preset);
        recipe.training.steps = Some(steps);
        recipe.automatic = automatic.to_vec();
        recipe.scale_to_steps(steps);
        recipe
    }

    #[test]
    fn short_runs_have_smaller_defaults_and_long_runs_those_of_the_preset() {
        let automatic = &Recipe::AUTOMATIC_KEYS[1..];
        let values = |recipe: &Recipe| {
            (
                recipe.training.warmup,
                recipe.validation.every,
                recipe.checkpoint.every,
                recipe.output.log_every,
            )
        };
        for (steps, expected) in [
            (1, (1, 1, 1, 1)),
            (5, (1, 1, 1, 1)),
            (400, (40, 40, 40, 20)),
            (8000, (800, 500, 800, 50)),
            (50_000, (2000, 500, 1000, 50)),
        ] {
            assert_eq!(values(&fitted(Preset::Small, steps, automatic)), expected, "{steps}");
        }
        assert_eq!(values(&fitted(Preset::Small, 400, &["validation.every"])), (2000, 40, 1000, 50));
        for preset in [Preset::Tiny, Preset::Small, Preset::Iwslt, Preset::Base, Preset::Big] {
            let whole = Recipe::preset(preset);
            let again = fitted(preset, whole.training.steps.expect("a number of steps"), automatic);
            assert_eq!(Recipe { automatic: Vec::new(), ..again }, whole);
        }
    }

    #[test]
    fn noam_keeps_its_peak_in_a_short_run() {
        let [long, short] =
            [100_000, 500].map(|steps| fitted(Preset::Base, steps, &Recipe::AUTOMATIC_KEYS[1..]));
        let peak = |recipe: &Recipe| recipe.training.factor * (recipe.training.warmup as f64).powf(-0.5);
        assert_eq!(short.training.warmup, 50);
        assert!((peak(&short) / peak(&long) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_warmup_longer_than_the_run_gives_a_warning() {
        let warning = |steps| Recipe::default().unfinished_warmup_warning(steps);
        assert!(warning(5).expect("2000 are more than 5").contains("to 0.250 % of its peak"));
        assert!(warning(1999).is_some() && warning(2000).is_none(), "the last of 2000 steps has the peak");
        let mut constant = Recipe::default();
        constant.training.schedule = ScheduleKind::Constant;
        assert_eq!(constant.unfinished_warmup_warning(5), None);
        assert_eq!(fitted(Preset::Small, 1, &["training.warmup"]).unfinished_warmup_warning(1), None);
    }
}
