//! `heedful train`: trains a model from text files.

mod arguments;
mod distributed;
mod recipe_arguments;

mod dashboard;
mod progress;

use std::io::{self, Write};

use anyhow::Result;
use heedful::recipe::BestBy;
use heedful::recipe::Recipe;
use heedful::train::ValidationScore;
use heedful::train::run::{self, Ending, FinalModel, Outcome, Start};
use serde_json::{Value, json};

pub(crate) use self::arguments::Arguments;
use self::distributed::Role;
pub(crate) use self::progress::TrainingProgress;
pub(crate) use self::recipe_arguments::{PRECEDENCE, RecipeArguments};
use crate::interrupt::{Interrupt, Interrupted};
use crate::progress::{Verbosity, duration};

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.print_recipe {
        return Ok(io::stdout().lock().write_all(arguments.recipe()?.to_toml().as_bytes())?);
    }
    let team = match distributed::join(arguments)? {
        Role::Single => None,
        Role::Leader(team) => Some(team),
        Role::Done => return Ok(()),
    };
    let recipe = arguments.recipe()?;
    if team.is_none() {
        arguments.threads.set_up();
    }
    // Before the dashboard opens.
    let verbosity = arguments.quiet.verbosity();
    let device = arguments.device.set_up_training(verbosity)?;
    team.as_ref().map_or(Ok(()), |team| team.check(recipe.training.accumulate))?;
    let start = match (&arguments.resume, arguments.force.is_given()) {
        (Some(_), _) => Start::Resume,
        (None, true) => Start::Replace,
        (None, false) => Start::Fresh,
    };
    // Lives as long as the run: dropping the server stops it.
    let _dashboard = arguments.dashboard.map(|port| dashboard::open(&recipe, port)).transpose()?;
    let mut progress = TrainingProgress::new(verbosity, Interrupt::hold());
    let outcome = match &team {
        Some(team) => run::train_with(team, device, &recipe, start, &mut progress),
        None => run::train_on(device, &recipe, start, &mut progress),
    };
    progress.finish();
    let outcome = outcome?;
    if verbosity == Verbosity::Normal {
        eprintln!("{}", closing_message(&recipe, &outcome));
    }
    if arguments.json {
        writeln!(io::stdout().lock(), "{}", outcome_json(&recipe, &outcome))?;
    }
    if outcome.ending == Ending::Interrupted { Err(Interrupted::silent().into()) } else { Ok(()) }
}

/// How the run ended, and commands to continue with.
fn closing_message(recipe: &Recipe, outcome: &Outcome) -> String {
    let (folder, task) = (folder(recipe), recipe.data.task);
    let Outcome { step, ending, best, model, seconds, plan, .. } = outcome;
    let mut text =
        format!("{ending} after {step} steps, {} and {} FLOPs", duration(*seconds), outcome.flops_text());
    if let Some((ValidationScore { metric, value }, at)) = best {
        let metric = match metric {
            BestBy::Loss => "loss",
            BestBy::Bleu => "BLEU",
            BestBy::Accuracy => "accuracy",
        };
        text += &format!("; the best validation {metric} was {value:.3}, at step {at}");
    }
    text += &match model {
        FinalModel::Step(step) => format!("\nthe model of step {step} is in {folder}"),
        FinalModel::MeanOf(steps) => {
            let steps: Vec<String> = steps.iter().map(u64::to_string).collect();
            format!("\nthe average of the checkpoints of steps {} is in {folder}", steps.join(", "))
        }
    };
    text += &match ending {
        Ending::Interrupted => format!("\nresume it with:  heedful train --resume {folder}"),
        _ => format!("\nuse it with:     heedful {} {folder} {}", task.command(), task.command_input()),
    };
    // The recipe in the folder contains the settings that the run chose to fit its time limit.
    let again = |steps| format!("heedful train {folder}/recipe.toml --time none --steps {steps} --out OTHER");
    match plan {
        Some(plan) if *ending != Ending::Interrupted && plan.is_last && plan.steps > *step => {
            text +=
                &format!("\nplanned steps:   {}  (the time ended before the last one)", again(plan.steps));
        }
        Some(_) if *ending != Ending::Interrupted => text += &format!("\nreproduce it:    {}", again(*step)),
        _ => {}
    }
    text
}

fn outcome_json(recipe: &Recipe, outcome: &Outcome) -> Value {
    json!({
        "folder": folder(recipe),
        "step": outcome.step,
        "ending": outcome.ending.to_string(),
        "seconds": outcome.seconds,
        "flops": outcome.flops,
        "plan": outcome.plan,
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
