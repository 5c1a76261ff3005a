//! `heedful compare variations`: the paper's table 3 on any corpus.

use std::io::{self, Write};

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use heedful::compare::variations::{self, Entry, Group, Plan, Variation};
use heedful::tensor::cpu::threads;
use heedful::train::run::{Event, Watcher};

use super::bar::Bar;
use crate::commands::train::{RecipeArguments, Voice, duration};
use crate::interrupt::Interrupt;

/// What `heedful compare variations` was asked for.
pub(crate) struct Arguments {
    recipe: RecipeArguments,
    only: Vec<Group>,
    threads: Option<u16>,
    voice: Voice,
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command
            .about("Train a recipe and variations of it: heads, widths, depth, dropout and more")
            .long_about(
                "Train a recipe and variations of it, each in a folder of its own below --out.\n\nEvery flag is one of heedful \
                 train and means the same for all of them; each is trained for the recipe's own --steps and --time. Stopped \
                 at any moment and started again with the same arguments, finished runs are not trained again, and the \
                 one that was stopped goes on.",
            )
            .args([
                Arg::new("only")
                    .long("only")
                    .value_name("GROUP,…")
                    .help("Vary only this, separated by commas [default: everything]")
                    .value_delimiter(',')
                    .action(ArgAction::Append)
                    .value_parser(PossibleValuesParser::new(Group::ALL.map(Group::name))),
                Arg::new("threads")
                    .long("threads")
                    .value_name("N")
                    .help("How many threads compute [default: all cores]")
                    .value_parser(value_parser!(u16).range(1..)),
                Arg::new("quiet")
                    .long("quiet")
                    .help("Say nothing but the result and errors")
                    .action(ArgAction::SetTrue),
            ]);
        RecipeArguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let named: Vec<&String> = matches.get_many("only").into_iter().flatten().collect();
        let is_wanted = |group: &Group| named.is_empty() || named.iter().any(|&name| name == group.name());
        Ok(Arguments {
            recipe: RecipeArguments::from_arg_matches(matches)?,
            only: Group::ALL.into_iter().filter(is_wanted).collect(),
            threads: matches.get_one("threads").copied(),
            voice: if matches.get_flag("quiet") { Voice::Silent } else { Voice::Talking },
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let base = arguments.recipe.recipe(None)?;
    let plan = variations::plan(&base, &arguments.only)?;
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let folder = base.output.out.expect("a plan needs a folder");
    let mut progress = Progress {
        bar: Bar::new(arguments.voice, plan.variations.len()),
        interrupt: Interrupt::listen()?,
        done: 0,
        name: String::new(),
    };
    for left_out in &plan.left_out {
        progress.bar.say(&format!("{} is left out: {}", left_out.name, left_out.reason));
    }
    let outcome = compare(&plan, &mut progress, |entries| {
        // After every run: whoever waits for the others can look at it.
        Ok(variations::files(&plan, entries).save(&folder)?)
    });
    progress.bar.finish();
    let entries = outcome?;
    if progress.interrupt.is_asked() && arguments.voice == Voice::Talking {
        eprintln!("interrupted: go on with the same command");
    }
    let files = variations::files(&plan, &entries);
    Ok(io::stdout().lock().write_all(files.markdown.as_bytes())?)
}

/// Trains what is not trained yet, one after the other, and shows all that are finished whenever one more is.
fn compare(
    plan: &Plan,
    progress: &mut Progress,
    show: impl Fn(&[Entry]) -> Result<()>,
) -> Result<Vec<Entry>> {
    // All of them first: the page of a comparison that goes on never shows less than before.
    let mut found: Vec<Option<Entry>> =
        plan.variations.iter().map(variations::finished).collect::<Result<_, _>>()?;
    let finished = |found: &[Option<Entry>]| found.iter().flatten().cloned().collect::<Vec<Entry>>();
    if found.iter().any(Option::is_some) {
        show(&finished(&found))?;
    }
    for (index, variation) in plan.variations.iter().enumerate() {
        if let Some(entry) = &found[index] {
            progress.bar.say(&format!("{:<22} was trained before: {}", entry.name, result(entry)));
        } else if progress.interrupt.is_asked() {
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

/// Watches all runs of a comparison for a person, who may press Ctrl-C.
struct Progress {
    bar: Bar,
    interrupt: Interrupt,
    done: usize,
    name: String,
}

impl Progress {
    fn train(&mut self, variation: &Variation) -> Result<Option<Entry>> {
        self.name.clone_from(&variation.name);
        self.bar.show(self.done, 0.0, || format!("{}: preparing", variation.name));
        let entry = variations::train(variation, self)?;
        if let Some(entry) = &entry {
            self.bar.say(&format!("{:<22} {}", entry.name, result(entry)));
        }
        Ok(entry)
    }
}

impl Watcher for Progress {
    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::Step(pace) => self.bar.show(self.done, pace.progress.unwrap_or(0.0), || {
                format!("{}: step {}, loss {:.3}", self.name, pace.step, pace.loss)
            }),
            Event::Warning(text) => self.bar.say(&format!("heedful: warning: {}: {text}", self.name)),
            _ => {}
        }
    }

    fn wants_end(&self) -> bool {
        self.interrupt.is_asked()
    }
}

/// A run in a few words.
fn result(entry: &Entry) -> String {
    let mut text = String::new();
    for (name, label) in [("valid_perplexity", "perplexity"), ("valid_bleu", "BLEU")] {
        if let Some(value) = entry.value(name) {
            text += &format!("{label} {value:.2}, ");
        }
    }
    format!("{text}{} steps in {}, {}", entry.step, duration(entry.seconds), entry.ending)
}
