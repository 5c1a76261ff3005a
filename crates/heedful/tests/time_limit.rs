//! Runs with only a time limit: they fit into it, report their plan, and are reproduced by their number of
//! steps. The clock is simulated: a step takes one second.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heedful::models::DeviceChoice;
use heedful::recipe::{Author, Overrides, Recipe};
use heedful::tasks;
use heedful::train::TimePlan;
use heedful::train::checkpoint::{self, Checkpoint, Checkpoints};
use heedful::train::run::{Clock, Ending, Event, Outcome, Start, Watcher, train_by};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

/// A clock that advances only when a run reports an event.
#[derive(Default)]
struct SimulatedClock {
    now: Cell<Duration>,
}

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        self.now.get()
    }
}

/// Advances the clock, and stops the run after a given step.
struct ClockDriver<'a> {
    clock: &'a SimulatedClock,
    /// Seconds per step, after the steps that are measured.
    step: u64,
    stop_after: Option<u64>,
    reached: u64,
    plans: Vec<TimePlan>,
    prepared: u32,
}

impl<'a> ClockDriver<'a> {
    fn new(clock: &'a SimulatedClock) -> ClockDriver<'a> {
        ClockDriver { clock, step: 1, stop_after: None, reached: 0, plans: Vec::new(), prepared: 0 }
    }
}

impl Watcher for ClockDriver<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        let seconds = match event {
            Event::Measuring { .. } => 1,
            Event::Step(pace) => {
                self.reached = pace.step;
                self.step
            }
            Event::Validating => 1,
            Event::Planned(plan) => {
                self.plans.push((*plan).clone());
                0
            }
            Event::LearningVocabulary { .. } | Event::Encoding { .. } if self.prepared < 3 => {
                self.prepared += 1;
                1
            }
            _ => 0,
        };
        self.clock.now.set(self.clock.now.get() + Duration::from_secs(seconds));
    }

    fn should_stop(&self) -> bool {
        self.stop_after.is_some_and(|step| self.reached >= step)
    }
}

/// A folder with sentences of a few words and their translations: the same words reversed.
fn corpus() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["a", "bc", "d", "ef", "gh", "i"];
    let line = |number: usize| -> Vec<&str> {
        (0..2 + number % 4).map(|i| words[(number * 7 + i * 5 + number / 6) % words.len()]).collect()
    };
    for (name, lines) in [("train", 0..240), ("valid", 300..320)] {
        let source: String = lines.clone().map(|i| line(i).join(" ") + "\n").collect();
        let target: String =
            lines.map(|i| line(i).into_iter().rev().collect::<Vec<_>>().join(" ") + "\n").collect();
        fs::write(folder.path().join(format!("{name}.src")), source).expect("room on the disk");
        fs::write(folder.path().join(format!("{name}.tgt")), target).expect("room on the disk");
    }
    folder
}

fn settings(folder: &Path, out: &str, more: &str) -> Vec<String> {
    let mut sets: Vec<String> = ["src", "tgt"]
        .iter()
        .flat_map(|side| {
            let file = |name: &str| folder.join(format!("{name}.{side}")).display().to_string();
            [format!("{side}={}", file("train")), format!("valid_{side}={}", file("valid"))]
        })
        .collect();
    sets.push(format!("out={}", folder.join(out).display()));
    let fixed = "preset=tiny vocabulary.kind=character vocabulary.size=300 batch_tokens=200 dropout=0.1 tensorboard=false";
    sets.extend(fixed.split_whitespace().chain(more.split_whitespace()).map(str::to_owned));
    sets
}

fn recipe(sets: &[String]) -> Recipe {
    let mut overrides = Overrides::new();
    sets.iter().for_each(|set| overrides.set(set).expect("a good setting"));
    tasks::resolve(overrides).expect("a good recipe")
}

/// The recipe that a run saved in its folder, with changes.
fn saved_recipe(run: &Path, author: Author, sets: &[String]) -> Recipe {
    let mut overrides = Overrides::new();
    overrides.written_by(author);
    overrides.file(&run.join("recipe.toml")).expect("a recipe");
    overrides.written_by(Author::User);
    sets.iter().for_each(|set| overrides.set(set).expect("a good setting"));
    tasks::resolve(overrides).expect("a good recipe")
}

fn train(clock: &SimulatedClock, recipe: &Recipe, start: Start, driver: &mut ClockDriver<'_>) -> Outcome {
    train_by(clock, DeviceChoice::Cpu, recipe, start, driver).expect("a good run")
}

fn last_checkpoint(run: &Path) -> Checkpoint {
    let checkpoints = Checkpoints::read_only(&run.join("checkpoints"));
    let step = checkpoints.last(1).expect("a checkpoint")[0];
    checkpoint::read(&checkpoints.path(step)).expect("a whole checkpoint")
}

fn model(run: &Path) -> Vec<u8> {
    fs::read(run.join("model.safetensors")).expect("a model")
}

#[test]
fn a_run_fits_into_its_time_and_is_reproduced_by_its_steps() {
    for (schedule, ending) in [
        ("inverse-sqrt", Ending::AllTime),
        ("noam", Ending::AllTime),
        ("constant", Ending::AllTime),
        ("cosine", Ending::AllSteps),
        ("trapezoid", Ending::AllSteps),
    ] {
        let folder = corpus();
        let clock = SimulatedClock::default();
        let mut driver = ClockDriver::new(&clock);
        let fitted = recipe(&settings(folder.path(), "run", &format!("time=2m schedule={schedule}")));
        let outcome = train(&clock, &fitted, Start::Fresh, &mut driver);
        assert_eq!(outcome.ending, ending, "{schedule}");
        let spent = clock.now();
        assert!(spent <= LIMIT && spent >= LIMIT * 3 / 4, "{schedule}: {spent:?}");
        let plan = outcome.plan.clone().expect("it had only a time");
        let reports = if schedule == "trapezoid" { 2 } else { 1 };
        assert_eq!(driver.plans.len(), reports, "{schedule}: again when the cooldown begins");
        assert_eq!(driver.plans.last(), Some(&plan), "{schedule}");
        assert_eq!(driver.plans[0].seconds_per_step, 1.0);
        assert_eq!(plan.is_last, ["cosine", "trapezoid"].contains(&schedule));
        assert!(plan.steps.abs_diff(outcome.step) <= 8, "{schedule}: {plan} and {}", outcome.step);

        let run = folder.path().join("run");
        let report = fs::read_to_string(run.join("report.html")).expect("a report");
        assert!(report.contains(&plan.to_string()), "{schedule}: the report contains the plan");
        let other = folder.path().join("other");
        let sets =
            ["time=none".to_owned(), format!("steps={}", outcome.step), format!("out={}", other.display())];
        let again = saved_recipe(&run, Author::User, &sets);
        assert!(again.automatic.is_empty(), "{schedule}");
        assert_eq!(again.validation.every, plan.validation_every.expect("there is a validation set"));
        let again = train(&clock, &again, Start::Fresh, &mut ClockDriver::new(&clock));
        assert_eq!((again.step, again.ending), (outcome.step, Ending::AllSteps));
        assert_eq!(
            last_checkpoint(&run).trainer,
            last_checkpoint(&other).trainer,
            "{schedule}: weights differ"
        );
        assert!(model(&run) == model(&other), "{schedule}: final models differ");
    }
}

#[test]
fn a_resumed_run_keeps_its_plan_and_its_time() {
    for schedule in ["inverse-sqrt", "cosine"] {
        let folder = corpus();
        let start = |out: &str, stop_after| -> (Outcome, Duration, PathBuf) {
            let clock = SimulatedClock::default();
            let fitted = recipe(&settings(folder.path(), out, &format!("time=2m schedule={schedule}")));
            let mut driver = ClockDriver { stop_after, ..ClockDriver::new(&clock) };
            (train(&clock, &fitted, Start::Fresh, &mut driver), clock.now(), folder.path().join(out))
        };
        let (whole, _, whole_run) = start("whole", None);
        let (stopped, used, run) = start("stopped", Some(33));
        assert_eq!((stopped.step, stopped.ending), (33, Ending::Interrupted));

        // A new process, whose clock starts at zero.
        let clock = SimulatedClock::default();
        let mut driver = ClockDriver::new(&clock);
        let resumed = saved_recipe(&run, Author::Program, &[]);
        let resumed = train(&clock, &resumed, Start::Resume, &mut driver);
        assert_eq!(
            (&resumed.plan, &driver.plans[..]),
            (&whole.plan, &[whole.plan.clone().expect("a plan")][..])
        );
        assert!(
            clock.now() + used <= LIMIT + Duration::from_secs(2),
            "{schedule}: {:?} and {used:?}",
            clock.now()
        );
        assert!(resumed.step.abs_diff(whole.step) <= 6, "{schedule}: {} and {}", resumed.step, whole.step);
        if resumed.step == whole.step {
            assert_eq!(last_checkpoint(&run).trainer, last_checkpoint(&whole_run).trainer, "{schedule}");
        } else {
            assert_ne!(schedule, "cosine", "it ends at a step");
        }
    }
}

#[test]
fn a_run_that_slows_down_ends_in_time_with_its_best_model() {
    let folder = corpus();
    let clock = SimulatedClock::default();
    let fitted = recipe(&settings(folder.path(), "run", "time=2m schedule=cosine"));
    let mut driver = ClockDriver { step: 5, ..ClockDriver::new(&clock) };
    let outcome = train(&clock, &fitted, Start::Fresh, &mut driver);
    let plan = outcome.plan.expect("a plan");
    assert_eq!(outcome.ending, Ending::AllTime);
    assert!(outcome.step < plan.steps / 2, "{} of {}", outcome.step, plan.steps);
    // The step that was running when the time ended.
    assert!(clock.now() <= LIMIT + Duration::from_secs(5), "{:?}", clock.now());
    assert!(outcome.best.is_some() && !model(&folder.path().join("run")).is_empty());
}

#[test]
fn settings_that_the_user_left_open_are_derived_from_time_or_steps() {
    let folder = corpus();
    let set = |more: &str| recipe(&settings(folder.path(), "run", more)).automatic;
    let by_steps = ["training.warmup", "validation.every", "checkpoint.every", "output.log_every"];
    let by_time = [&["training.steps"], &by_steps[..]].concat();
    assert_eq!(set("time=2m"), by_time);
    assert!(set("time=2m schedule=noam").contains(&"training.factor"));
    assert_eq!(
        set("time=2m schedule=trapezoid")[..3],
        ["training.steps", "training.warmup", "training.cooldown"]
    );
    let others = ["training.steps", "checkpoint.every", "output.log_every"];
    assert_eq!(set("time=2m warmup=7 validation.every=3"), others);
    assert_eq!(set("time=2m steps=none schedule=cosine"), by_time);
    assert_eq!(set("time=2m steps=50"), by_steps);
    assert_eq!(set("schedule=constant"), by_steps[1..]);
    assert_eq!(set("steps=none"), [""; 0]);
}

#[test]
fn the_cooldown_of_a_slower_or_faster_run_still_ends_in_time() {
    for (step, per_step) in [(3, 3), (1, 1)] {
        let folder = corpus();
        let clock = SimulatedClock::default();
        // Trial steps take a second.
        let fitted = recipe(&settings(folder.path(), "run", "time=10m schedule=trapezoid"));
        let mut driver = ClockDriver { step, ..ClockDriver::new(&clock) };
        let outcome = train(&clock, &fitted, Start::Fresh, &mut driver);
        let plan = outcome.plan.expect("a plan");
        assert_eq!((outcome.ending, outcome.step), (Ending::AllSteps, plan.steps), "{per_step}");
        let limit = Duration::from_secs(600);
        assert!(clock.now() <= limit && clock.now() >= limit * 9 / 10, "{per_step}: {:?}", clock.now());
        let saved = saved_recipe(&folder.path().join("run"), Author::Program, &[]);
        assert_eq!(saved.training.steps, Some(plan.steps));
        assert!(saved.schedule().rate(plan.steps) == 0.0 && saved.schedule().rate(plan.steps - 1) > 0.0);
    }
}

#[test]
fn a_run_that_is_stopped_before_or_in_its_cooldown_has_the_weights_of_its_recipe() {
    for stop_after in [20, 85] {
        let folder = corpus();
        let clock = SimulatedClock::default();
        let fitted = recipe(&settings(folder.path(), "run", "time=2m schedule=trapezoid"));
        let mut driver = ClockDriver { stop_after: Some(stop_after), ..ClockDriver::new(&clock) };
        let stopped = train(&clock, &fitted, Start::Fresh, &mut driver);
        assert_eq!(stopped.ending, Ending::Interrupted);
        let run = folder.path().join("run");
        let clock = SimulatedClock::default();
        let resumed = saved_recipe(&run, Author::Program, &[]);
        assert_eq!(resumed.training.steps.is_some(), stop_after > 80, "the cooldown has begun");
        let resumed = train(&clock, &resumed, Start::Resume, &mut ClockDriver::new(&clock));
        assert_eq!(resumed.ending, Ending::AllSteps);
        let other = folder.path().join("other");
        let sets = ["time=none".to_owned(), format!("out={}", other.display())];
        let again = saved_recipe(&run, Author::User, &sets);
        train(&clock, &again, Start::Fresh, &mut ClockDriver::new(&clock));
        assert_eq!(last_checkpoint(&run).trainer, last_checkpoint(&other).trainer, "{stop_after}");
    }
}

#[test]
fn a_translator_with_only_a_time_limit_chooses_its_size_and_training() {
    let folder = corpus();
    let all = settings(folder.path(), "run", "time=2m");
    let is_open =
        |set: &&String| !set.starts_with("preset=") && !set.starts_with("batch") && !set.starts_with("drop");
    let open: Vec<String> = all.iter().filter(is_open).cloned().collect();
    let fitted = recipe(&[&open[..], &["lr=0.001".to_owned()]].concat());
    assert!(fitted.automatic.contains(&"model.d_model") && !fitted.automatic.contains(&"training.lr"));
    let clock = SimulatedClock::default();
    let outcome = train(&clock, &fitted, Start::Fresh, &mut ClockDriver::new(&clock));
    assert!(clock.now() <= LIMIT, "{:?}", clock.now());
    let run = folder.path().join("run");
    let saved = saved_recipe(&run, Author::User, &["time=none".to_owned()]);
    let training = &saved.training;
    // A text of 240 short sentences, and time for some hundred steps: the smallest size, the strongest dropout.
    assert_eq!((saved.model.d_model, saved.model.encoder_layers, training.batch_tokens), (128, 4, 1024));
    assert_eq!((training.dropout, training.lr, training.steps), (0.3, 0.001, Some(outcome.step)));
    for set in ["preset=small", "task=lm", "family=recurrent", "steps=9"] {
        let sets: Vec<String> = match set {
            "task=lm" => vec!["task=lm".to_owned(), "text=x".to_owned(), "time=2m".to_owned()],
            set => [&open[..], &[set.to_owned()]].concat(),
        };
        assert!(!recipe(&sets).automatic.contains(&"training.lr"), "{set}");
    }
    let sized = recipe(&[&open[..], &["d_model=64".to_owned()]].concat()).automatic;
    assert!(!sized.contains(&"model.d_ff") && sized.contains(&"training.lr"), "{sized:?}");
}
