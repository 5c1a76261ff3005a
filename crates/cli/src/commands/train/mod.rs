//! `heedful train`: from text files to a model.

mod arguments;
mod dashboard;
mod recipe;
mod watcher;

use std::io::{self, Write};

use anyhow::Result;
use heedful::recipe::Recipe;
use heedful::tasks::Task;
use heedful::tensor::cpu::threads;
use heedful::train::Score;
use heedful::train::run::{self, Ending, FinalModel, Outcome, Start};
use serde_json::{Value, json};

pub(crate) use self::arguments::Arguments;
pub(crate) use self::recipe::RecipeArguments;
pub(crate) use self::watcher::{Terminal, Voice, duration};
use crate::interrupt::Interrupt;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let recipe = arguments.recipe()?;
    if arguments.print_recipe {
        return Ok(io::stdout().lock().write_all(recipe.to_toml().as_bytes())?);
    }
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let start = if arguments.resume.is_some() { Start::Resume } else { Start::Fresh };
    let voice = if arguments.quiet { Voice::Silent } else { Voice::Talking };
    // Until the end of the run: dropped, it ends.
    let _dashboard = arguments.dashboard.map(|port| dashboard::open(&recipe, port)).transpose()?;
    let mut watcher = Terminal::new(voice, Interrupt::listen()?);
    let outcome = run::train(&recipe, start, &mut watcher);
    watcher.finish();
    let outcome = outcome?;
    if voice == Voice::Talking {
        eprintln!("{}", farewell(&recipe, &outcome));
    }
    if arguments.json {
        writeln!(io::stdout().lock(), "{}", summary(&recipe, &outcome))?;
    }
    Ok(())
}

/// What happened, and what to do next.
fn farewell(recipe: &Recipe, outcome: &Outcome) -> String {
    let (folder, task) = (folder(recipe), recipe.data.task);
    let Outcome { step, ending, best, model, seconds } = outcome;
    let mut text = format!("{ending} after {step} steps and {}", duration(*seconds));
    if let Some((Score { metric, value }, at)) = best {
        let metric = serde_json::to_value(metric).unwrap_or_default();
        let metric = metric.as_str().unwrap_or_default();
        text += &format!("; the best validation {metric} was {value:.3}, at step {at}");
    }
    text += &match model {
        FinalModel::Step(step) => format!("\nthe model of step {step} is in {folder}"),
        FinalModel::MeanOf(steps) => {
            let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
            format!("\nthe mean of the models of steps {} is in {folder}", steps.join(", "))
        }
    };
    text += &match ending {
        Ending::Interrupted => format!("\ngo on with:      heedful train --resume {folder}"),
        _ => format!("\nuse it with:     heedful {} {folder} {}", task.command(), input(task)),
    };
    text
}

/// What the command of a task reads.
fn input(task: Task) -> &'static str {
    match task {
        Task::Translate | Task::Classify => "FILE",
        Task::Lm => "--prompt TEXT",
        Task::Mlm => "\"TEXT with <mask>\"",
    }
}

fn summary(recipe: &Recipe, outcome: &Outcome) -> Value {
    json!({
        "folder": folder(recipe),
        "step": outcome.step,
        "ending": outcome.ending.to_string(),
        "seconds": outcome.seconds,
        "best": outcome.best.map(|(score, step)| json!({ "step": step, "score": score })),
        "model": match &outcome.model {
            FinalModel::Step(step) => json!([step]),
            FinalModel::MeanOf(steps) => json!(steps),
        },
    })
}

fn folder(recipe: &Recipe) -> String {
    recipe.output.out.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
}
