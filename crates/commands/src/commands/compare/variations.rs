//! `heedful compare variations`: the paper's table 3 on any corpus.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use heedful::compare::variations::{self, Variation, VariationGroup, VariationPlan, VariationResult};
use heedful::metrics::Measure;
use heedful::models::DeviceChoice;
use heedful::recipe::Recipe;
use heedful::tensor::Device;
use heedful::train::run::{Event, Ready, Watcher};

use super::builtin;
use crate::commands::train::{PRECEDENCE, RecipeArguments};
use crate::interrupt::{Interrupt, Interrupted};
use crate::machine::{DeviceName, Threads};
use crate::output::Force;
use crate::progress::{Bar, Quiet, Verbosity, duration};

/// The arguments of `heedful compare variations`, built by hand like those of `heedful train`.
pub(crate) struct Arguments {
    recipe: RecipeArguments,
    groups: Vec<VariationGroup>,
    /// Number of seeds per variation.
    seeds: Option<u16>,
    force: Force,
    quiet: Quiet,
    device: DeviceName,
    threads: Threads,
}

const EXAMPLES: &str = "\
Examples:
  heedful compare variations norm
  heedful compare variations pooling
  heedful compare variations recipe.toml --steps 20000 --out table
  heedful compare variations recipe.toml --only norm --seeds 3 --out table
  heedful compare variations recipe.toml heads dropout --out table";

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command.arg(
            Arg::new("only")
                .long("only")
                .value_name("GROUP,…")
                .help("Groups of variations to train, separated by commas [default: those of table 3]")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(group_parser()),
        );
        let command = command.arg(
            Arg::new("seeds")
                .long("seeds")
                .value_name("N")
                .help("Train each variation with this many seeds, and show mean and standard deviation [default: 1; built-in text: 3]")
                .value_parser(clap::value_parser!(u16).range(1..=100)),
        );
        let command = Threads::augment_args(DeviceName::augment_args(Quiet::augment_args(
            Force::augment_args(command),
        )));
        let about = "Train a recipe and variations of it: heads, widths, depth, dropout and more (table 3)";
        // Last, because each flattened struct above overwrites the command's description.
        RecipeArguments::augment_args(command)
            .mut_arg("RECIPE", |argument| {
                argument
                    .value_name("GROUP|RECIPE")
                    .num_args(0..)
                    .action(ArgAction::Append)
                    .help("Groups of variations, and a recipe (a TOML file); without text of your own, groups are trained on built-in text")
            })
            .about(about)
            .long_about(format!(
                "{about}.\n\n{PRECEDENCE}\n\nEach variation is trained in a folder of its own below --out, for the recipe's \
                 --steps and --time. The table has perplexity and BLEU of the validation set. A stopped comparison continues \
                 with the same command: finished runs are kept, and the interrupted one is resumed.\n\nGroups: {}. If you name groups \
                 but no text, a small model is trained on phrases of the built-in grammar (pooling: a classifier), \
                 with three seeds (--seeds), in heedful-compare-GROUP unless --out names a folder; each group takes some minutes on two cores.",
                VariationGroup::ALL.map(VariationGroup::name).join(", ")
            ))
            .after_long_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let mut named: Vec<VariationGroup> =
            matches.get_many("only").into_iter().flatten().copied().collect();
        let mut files: Vec<PathBuf> = Vec::new();
        for word in matches.get_many::<PathBuf>("RECIPE").into_iter().flatten() {
            match word.to_str().and_then(VariationGroup::named) {
                Some(group) => named.push(group),
                None => files.push(word.clone()),
            }
        }
        if files.len() > 1 {
            let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let groups = VariationGroup::ALL.map(VariationGroup::name).join(", ");
            let message = format!(
                "{} are neither one recipe nor groups of variations ({groups})\n",
                names.join(" and ")
            );
            return Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, message));
        }
        if let Some(file) = files.first().filter(|file| file.extension().is_none() && !file.exists()) {
            let groups = VariationGroup::ALL.map(VariationGroup::name).join(", ");
            let message = format!(
                "{} is neither the file of a recipe nor a group of variations ({groups})\n",
                file.display()
            );
            return Err(clap::Error::raw(clap::error::ErrorKind::InvalidValue, message));
        }
        Ok(Arguments {
            recipe: RecipeArguments::from_arg_matches(matches)?.with_file(files.pop()),
            seeds: matches.get_one("seeds").copied(),
            groups: VariationGroup::ALL.into_iter().filter(|group| named.contains(group)).collect(),
            force: Force::from_arg_matches(matches)?,
            quiet: Quiet::from_arg_matches(matches)?,
            device: DeviceName::from_arg_matches(matches)?,
            threads: Threads::from_arg_matches(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

fn group_parser() -> impl TypedValueParser<Value = VariationGroup> {
    let names = PossibleValuesParser::new(VariationGroup::ALL.map(VariationGroup::name));
    names.map(|name| {
        VariationGroup::ALL
            .into_iter()
            .find(|group| group.name() == name)
            .expect("clap accepts only these names")
    })
}

impl Arguments {
    /// Whether the user named no text.
    fn is_on_builtin_text(&self) -> bool {
        !self.groups.is_empty() && !self.recipe.names_text()
    }

    /// The recipe that is varied: the user's, or one for the built-in text.
    fn base(&self) -> Result<Recipe> {
        if !self.is_on_builtin_text() {
            return self.recipe.recipe(None);
        }
        if self.recipe.sets("model.preset") || self.recipe.sets("data.task") {
            bail!(
                "the built-in text has its own recipe, which does not take --preset or --task: name your own text, or set single keys such as --d-model"
            );
        }
        let folder = match self.recipe.value("output.out") {
            Some(out) => PathBuf::from(out),
            None => builtin::folder(&self.groups),
        };
        self.force.check_folder(&folder, &[])?;
        let mut base = builtin::recipe(&self.groups, &folder)?;
        base.output.out = Some(folder);
        self.recipe.recipe_over(&base)
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let base = arguments.base()?;
    let groups = if arguments.groups.is_empty() { VariationGroup::PAPER } else { &arguments.groups };
    let seeds = arguments.seeds.unwrap_or(if arguments.is_on_builtin_text() { builtin::SEEDS } else { 1 });
    let plan = variations::plan(&base, groups)?.with_seeds(usize::from(seeds));
    let verbosity = arguments.quiet.verbosity();
    let device = arguments.device.set_up_training(verbosity)?;
    arguments.threads.set_up();
    let folder = base.output.out.expect("a plan needs a folder");
    arguments.force.check_folder(&folder, &[])?;
    let mut progress = ComparisonProgress {
        device,
        bar: Bar::with_time_left(verbosity, plan.variations.len()),
        interrupt: Interrupt::hold(),
        done: 0,
        name: String::new(),
    };
    for variation in &plan.skipped {
        progress.bar.println(&format!("{} is skipped: {}", variation.name, variation.reason));
    }
    let outcome = compare(&plan, &mut progress, |entries| {
        // After every run, so that the table can be read while the other variations train.
        Ok(variations::files(&plan, entries).save(&folder)?)
    });
    progress.bar.finish();
    let entries = outcome?;
    let is_whole = entries.len() == plan.variations.len();
    if !is_whole && verbosity == Verbosity::Normal {
        eprintln!("interrupted: repeat the command to continue");
    }
    let files = variations::files(&plan, &entries);
    io::stdout().lock().write_all(files.markdown.as_bytes())?;
    if is_whole { Ok(()) } else { Err(Interrupted::silent().into()) }
}

/// Trains the unfinished variations one after the other; after each, `show` gets all finished ones.
fn compare(
    plan: &VariationPlan,
    progress: &mut ComparisonProgress,
    show: impl Fn(&[VariationResult]) -> Result<()>,
) -> Result<Vec<VariationResult>> {
    // All finished runs are read first, so that a resumed comparison never shows fewer rows.
    let mut found: Vec<Option<VariationResult>> =
        plan.variations.iter().map(variations::finished).collect::<Result<_, _>>()?;
    let finished =
        |found: &[Option<VariationResult>]| found.iter().flatten().cloned().collect::<Vec<VariationResult>>();
    if found.iter().any(Option::is_some) {
        show(&finished(&found))?;
    }
    for (index, variation) in plan.variations.iter().enumerate() {
        if let Some(entry) = &found[index] {
            progress.bar.println(&format!("{:<22} is already trained: {}", entry.run, result(entry)));
        } else if progress.interrupt.is_requested() {
            break;
        } else {
            let Some(entry) = progress.train(variation)? else { break };
            found[index] = Some(entry);
            show(&finished(&found))?;
        }
        progress.done += 1;
    }
    Ok(finished(&found))
}

/// Reports the runs of a comparison, and stops them when Ctrl-C is pressed.
struct ComparisonProgress {
    device: DeviceChoice,
    bar: Bar,
    interrupt: Interrupt,
    done: usize,
    name: String,
}

impl ComparisonProgress {
    fn train(&mut self, variation: &Variation) -> Result<Option<VariationResult>> {
        self.name = variation.run();
        self.bar.show(self.done, 0.0, || format!("{}: preparing", variation.run()));
        let entry = variations::train(self.device, variation, self)?;
        if let Some(entry) = &entry {
            self.bar.println(&format!("{:<22} {}", entry.run, result(entry)));
        }
        Ok(entry)
    }
}

impl Watcher for ComparisonProgress {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Step(pace) => self.bar.show(self.done, pace.progress.unwrap_or(0.0), || {
                format!("{}: step {}, loss {:.3}", self.name, pace.step, pace.loss)
            }),
            Event::NotOnGpu { why } => {
                self.bar.println(&format!("heedful: {} uses the CPU: {why}", self.name));
            }
            Event::Ready(Ready { device, .. }) => match device {
                Device::Cpu => {}
                Device::Cuda => self.bar.println(&format!("heedful: {} uses {device}", self.name)),
            },
            Event::Warning(text) => self.bar.println(&format!("heedful: warning: {}: {text}", self.name)),
            _ => {}
        }
    }

    fn should_stop(&self) -> bool {
        self.interrupt.is_requested()
    }
}

/// The result of a run in one line.
fn result(entry: &VariationResult) -> String {
    let mut text = String::new();
    let measures = [
        (Measure::ValidPerplexity, "perplexity"),
        (Measure::ValidBleu, "BLEU"),
        (Measure::ValidAccuracy, "accuracy"),
    ];
    for (name, label) in measures {
        if let Some(value) = entry.value(name) {
            text += &format!("{label} {value:.2}, ");
        }
    }
    format!("{text}{} steps in {}, {}", entry.step, duration(entry.seconds), entry.ending)
}
