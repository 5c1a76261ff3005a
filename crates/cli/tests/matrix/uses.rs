//! Uses of a model: every command that takes one, with every option. Both lists come from the command line,
//! so new commands and options are included automatically.
//!
//! The input files that a command needs for a kind of model are found by trying: the first set that works
//! with the f32 model.

use clap::{Arg, ArgAction, Command};
use heedful::tasks::Task;

use crate::kinds::INPUTS;
use crate::numbers::Texts;

/// A command that takes a model.
pub(crate) struct Use {
    /// `explain heads`.
    pub(crate) path: String,
    command: Command,
}

/// The part of a use that changes: inputs or an option, as arguments.
pub(crate) type Extra = Vec<String>;

/// Every command that takes a model and ends by itself.
pub(crate) fn all() -> Vec<Use> {
    let mut found = Vec::new();
    let mut command = heedful_commands::command_line();
    command.build();
    walk("", &command, &mut found);
    assert!(found.len() >= 12, "commands that take a model: {}", found.len());
    found
}

fn walk(path: &str, command: &Command, found: &mut Vec<Use>) {
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        let path = format!("{path} {}", child.get_name()).trim().to_owned();
        walk(&path, child, found);
        // `serve` does not end: see `routes`. Other commands that train do it like `train`.
        if child.get_arguments().any(takes_a_model)
            && !["serve", "compare variations"].contains(&path.as_str())
        {
            found.push(Use { path, command: child.clone() });
        }
    }
}

/// Whether it is an input model: the first argument, `--model`, or the model to fine-tune.
fn takes_a_model(argument: &Arg) -> bool {
    match value_name(argument) {
        "MODEL" => argument.is_positional(),
        "FOLDER" => argument.get_id() == "model",
        "PATH" => argument.get_long() == Some("init-from"),
        _ => false,
    }
}

/// Whether it takes more models, which form an ensemble with the first.
fn takes_more_models(argument: &Arg) -> bool {
    argument.is_positional() && value_name(argument).starts_with("MODEL|")
}

/// Whether it is the folder of a new model. It is always given, because a model changed in place would differ
/// in its next use.
fn writes_a_model(argument: &Arg) -> bool {
    value_name(argument) == "MODEL" && !argument.is_positional()
}

fn value_name(argument: &Arg) -> &str {
    argument.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str())
}

impl Use {
    /// Whether the number type of the products can be chosen.
    pub(crate) fn has_compute(&self) -> bool {
        self.command.get_arguments().any(|argument| argument.get_id() == "compute")
    }

    /// Whether it trains, which takes longer than other uses and has every key of a recipe as an option.
    pub(crate) fn trains(&self) -> bool {
        self.path == "train"
    }

    /// Which texts of its results may differ.
    pub(crate) fn texts(&self, extra: &Extra) -> Texts {
        match self.path.as_str() {
            "score" | "evaluate" => Texts::Same,
            "explain" if extra.iter().any(|argument| argument == "--target") => Texts::Same,
            "classify" | "fill" => Texts::Ranked,
            _ => Texts::Found,
        }
    }

    /// The arguments of this use, with `extra` at the end.
    pub(crate) fn arguments(&self, model: &str, extra: &Extra) -> Vec<String> {
        let mut arguments: Vec<String> = self.path.split(' ').map(str::to_owned).collect();
        if self.trains() {
            arguments.extend("--steps 1 --batch-tokens 64 --quiet --out {out}".split(' ').map(str::to_owned));
        }
        let (more_models, extra): (Extra, Extra) =
            extra.iter().cloned().partition(|value| value == "{model}");
        let is_extra =
            |argument: &Arg| argument.get_long().is_some_and(|long| extra.contains(&format!("--{long}")));
        let mut is_given = false;
        for argument in self.command.get_arguments() {
            if takes_a_model(argument) {
                // A model may be the first of several positional values.
                if argument.is_positional() || !is_given {
                    arguments.extend(argument.get_long().map(|long| format!("--{long}")));
                    arguments.push(model.to_owned());
                    is_given = true;
                }
                continue;
            }
            let is_needed =
                argument.is_required_set() || argument.is_positional() || writes_a_model(argument);
            if is_needed && !is_extra(argument) && !self.trains() {
                if takes_more_models(argument) {
                    arguments.extend(more_models.iter().map(|_| model.to_owned()));
                }
                arguments.extend(self.value(argument, 0).into_iter().flatten());
            }
        }
        arguments.extend(self.as_json(&extra));
        arguments.extend(extra);
        arguments
    }

    /// The arguments for JSON results: a flag, or the extension of a file.
    fn as_json(&self, extra: &Extra) -> Extra {
        let find = |id: &str| self.command.get_arguments().find(|argument| argument.get_id() == id);
        let output =
            find("output").filter(|output| value_name(output) == "FILE" && !output.is_required_set());
        let is_given = extra.iter().any(|argument| argument == "--output" || argument == "--json");
        match (find("json"), output) {
            _ if is_given => Extra::new(),
            (Some(_), _) => vec!["--json".to_owned()],
            (None, Some(_)) => vec!["--output".to_owned(), "{out}.json".to_owned()],
            (None, None) => Extra::new(),
        }
    }

    /// Sets of inputs to try, the smallest first; then each with one named value of an option.
    pub(crate) fn inputs(&self) -> Vec<Extra> {
        let has = |name: &str| {
            self.command.get_arguments().any(|a| a.get_long() == Some(name) && !a.is_required_set())
        };
        let sets =
            [&[][..], &["text"], &["label-text"], &["src"], &["src", "tgt"], &["src", "ref"], &["sentence"]];
        let input = |name: &&str| [format!("--{name}"), format!("./{name}")];
        let sets: Vec<Extra> = sets
            .iter()
            .filter(|set| set.iter().all(|name| has(name)))
            .map(|set| set.iter().flat_map(input).collect())
            .collect();
        let choices = self.options().into_iter().filter(|option| option.is_choice).map(|option| option.extra);
        let tasks = Task::ALL.iter().filter(|_| self.trains());
        let choices = choices.chain(tasks.map(|task| vec!["--task".to_owned(), task.to_string()]));
        let with_choices: Vec<Extra> = choices
            .flat_map(|choice| sets.iter().map(move |set| [&set[..], &choice].concat()).collect::<Vec<_>>())
            .collect();
        sets.into_iter().chain(with_choices).collect()
    }

    /// Every option with every value.
    pub(crate) fn options(&self) -> Vec<OptionValue> {
        if self.trains() {
            return Vec::new();
        }
        let more_models = self.command.get_arguments().filter(|argument| takes_more_models(argument));
        let ensembles =
            more_models.map(|_| OptionValue { extra: vec!["{model}".to_owned()], is_choice: false });
        let arguments = self.command.get_arguments().filter(|argument| {
            let id = argument.get_id().as_str();
            let is_input =
                argument.get_long().is_some_and(|long| INPUTS.iter().any(|(name, _)| *name == long));
            !argument.is_positional()
                && !takes_a_model(argument)
                && !writes_a_model(argument)
                && (!argument.is_required_set() || is_choice(argument))
                && !argument.is_hide_set()
                && (!is_input || ["prefix", "terms", "alignments"].contains(&id))
                && !["help", "version", "device", "json"].contains(&id)
        });
        let values = arguments.flat_map(|argument| {
            // The first value of a required option is used in the run without options.
            let first = usize::from(argument.is_required_set());
            let is_choice = is_choice(argument) && first == 0;
            (first..).map_while(move |n| Some(OptionValue { extra: self.value(argument, n)?, is_choice }))
        });
        values.chain(ensembles).collect()
    }

    /// The n-th way to write an argument.
    fn value(&self, argument: &Arg, n: usize) -> Option<Extra> {
        let name = argument.get_long().map(|long| format!("--{long}"));
        let written = |value: String| Some(name.iter().cloned().chain([value]).collect());
        if matches!(argument.get_action(), ArgAction::SetTrue) {
            return (n == 0).then(|| name.into_iter().collect());
        }
        let choices = argument.get_possible_values();
        if !choices.is_empty() {
            return written(choices.get(n)?.get_name().to_owned());
        }
        let value_name = value_name(argument);
        let id = argument.get_id().as_str();
        let values: &[&str] = match value_name {
            "N" | "K" => &["2", "1"],
            "X" | "T" | "P" | "B" | "SHARE" => &["0.5"],
            "SEED" => &["7"],
            "N|auto" => &["2"],
            "I/N|auto" => &["1/2"],
            "HEAD" => &["cross.0.0", "enc.0.0", "dec.0.0"],
            "HEAD|mean" => &["mean", "0"],
            "LAYER" => &["encoder.0", "decoder.0"],
            "LIST" => &["all"],
            "[KIND=]FILE" => return MASKS.get(n).map(|mask| mask.split('|').map(str::to_owned).collect()),
            "TEXT" if id == "prompt" || id == "target" => &["der Hund"],
            "TEXT" if id == "corrupted" => &["the dog sees <mask>"],
            "TEXT" if id == "wrong" => &["a", "dog"],
            "TEXT" | "TEXT|FILE|-" | "PHRASE" => &["the cat sees <mask>", "the dog"],
            "HYP" => &["./tgt"],
            "OTHER_HYP" => &["./ref"],
            "REF" => &["./ref"],
            "CODE" => &["en"],
            "FILE" | "MODEL|FILE" if argument.is_positional() => &["./src"],
            "FILE" if INPUTS.iter().any(|(input, _)| argument.get_long() == Some(input)) => {
                return if n == 0 { written(format!("./{}", argument.get_long()?)) } else { None };
            }
            "FILE" if ["card", "license", "examples"].contains(&id) => &["./text"],
            "FILE" | "PATH" => &["{out}.json", "{out}.html", "{out}.safetensors", "{out}.zip"],
            "MODEL" | "FOLDER" => &["{out}"],
            "FORMAT" => &["huggingface"],
            _ => panic!("{} --{id}: tell tests/matrix/uses.rs what a {value_name} looks like", self.path),
        };
        written((*values.get(n)?).to_owned())
    }
}

/// Masks for models with one kind of attention, then for translators, which need a known translation. `main`
/// writes the files.
const MASKS: [&str; 5] = [
    "--mask|./mask.self",
    "--mask|pooling=./mask.pooling",
    "--target|der Hund|--mask|encoder=./mask.encoder",
    "--target|der Hund|--mask|decoder=./mask.decoder",
    "--target|der Hund|--mask|cross=./mask.cross",
];

/// Whether the values of an argument are a list of names.
fn is_choice(argument: &Arg) -> bool {
    !argument.get_possible_values().is_empty() && argument.get_action().takes_values()
}

/// An option with a value.
#[derive(Clone, Debug)]
pub(crate) struct OptionValue {
    pub(crate) extra: Extra,
    /// Whether the value is one of a list of names.
    is_choice: bool,
}
