//! Kinds of models: rows of a covering array over the task, the family, the stored type and every recipe key
//! that changes the computation of a model. The keys and values come from the recipe, so new keys are
//! included automatically.

use std::fs;
use std::path::{Path, PathBuf};

use heedful::recipe::{Key, Literal, Overrides, Recipe};
use heedful::tasks::{Family, Task, resolve};

use crate::covering::{Factor, Row, pairwise};
use crate::process::Workplace;

/// Input files in every folder. Options of these names are inputs.
pub(crate) const INPUTS: [(&str, &str); 8] = [
    ("src", "the cat sees the dog\na dog runs\nmy cat sleeps here\nthe dog sleeps\n"),
    ("tgt", "die Katze sieht den Hund\nein Hund rennt\nmeine Katze schläft hier\nder Hund schläft\n"),
    ("ref", "die Katze sieht den Hund\nein Hund rennt\nmeine Katze schläft hier\nder Hund schläft\n"),
    ("text", "the cat sees the dog\na dog runs\n"),
    ("label-text", "cat\tthe cat sleeps\ndog\tthe dog sleeps\ncat\tmy cat runs\n"),
    ("prefix", "die\n\n\nder\n"),
    ("terms", "cat\tKatze\n"),
    ("alignments", "0-0 1-1\n0-0 1-1\n0-0 1-1\n0-0 1-1\n"),
];

/// The types in which weights are stored.
pub(crate) const STORED: [&str; 3] = ["f32", "bf16", "int8"];

/// A kind of model.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) name: String,
    /// The task, which determines the arguments of uses.
    pub(crate) task: String,
    pub(crate) stored: String,
    number: usize,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// Trained with these values of keys.
    Trained(Vec<(String, String)>),
    /// Imported from a folder of another project.
    Imported(PathBuf),
}

/// Kinds in which every pair of values occurs, followed by models of other projects; and the number of pairs.
pub(crate) fn all() -> (Vec<Kind>, usize) {
    let factors = factors();
    let value = |row: &Row, factor: usize| row[factor].map(|value| factors[factor].values[value].as_str());
    let settings = |row: &Row| -> Vec<(String, String)> {
        // The stored type is not a recipe key.
        let keys = (0..factors.len()).filter(|&factor| factors[factor].name != "stored");
        keys.filter_map(|factor| Some((factors[factor].name.clone(), value(row, factor)?.to_owned())))
            .collect()
    };
    let (rows, pairs) = pairwise(&factors, |row| is_allowed(&settings(row)));
    let trained = rows.iter().map(|row| {
        let task = value(row, 0).unwrap_or("translate").to_owned();
        let stored = value(row, 2).unwrap_or("int8").to_owned();
        Kind { name: String::new(), task, stored, number: 0, origin: Origin::Trained(settings(row)) }
    });
    let kinds = trained.chain(imported()).enumerate();
    (
        kinds
            .map(|(number, kind)| Kind { name: format!("{number:02}-{}", kind.task), number, ..kind })
            .collect(),
        pairs,
    )
}

/// One kind for each task and family, in int8 and with an output bias if supported.
pub(crate) fn few() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for task in Task::ALL {
        for family in Family::ALL {
            let settings = |more: &[(&str, &str)]| -> Vec<(String, String)> {
                let named = [("data.task", task.to_string()), ("model.family", family.to_string())];
                let more = more.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
                named.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(more).collect()
            };
            let wanted = [settings(&[("model.output_bias", "true")]), settings(&[])];
            let Some(settings) = wanted.into_iter().find(|settings| is_allowed(settings)) else { continue };
            kinds.push(Kind {
                name: format!("{task}-{family}"),
                task: task.to_string(),
                stored: "int8".to_owned(),
                number: kinds.len(),
                origin: Origin::Trained(settings),
            });
        }
    }
    kinds
}

impl Kind {
    /// Its index among all kinds.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Whether it uses hard attention, whose choice rounding may change.
    pub(crate) fn has_hard_attention(&self) -> bool {
        let Origin::Trained(settings) = &self.origin else { return false };
        settings.iter().any(|(key, value)| {
            key == "model.attention" && ["hard", "straight-through"].contains(&value.as_str())
        })
    }

    /// Its settings as text.
    pub(crate) fn description(&self) -> String {
        match &self.origin {
            Origin::Trained(settings) => {
                let settings = settings.iter().map(|(key, value)| {
                    let key = key.rsplit('.').next().unwrap_or(key);
                    format!("{key}={value}")
                });
                format!("{} stored={}", settings.collect::<Vec<_>>().join(" "), self.stored)
            }
            Origin::Imported(folder) => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                format!("import of {name} stored={}", self.stored)
            }
        }
    }

    /// Creates the folders `f32`, the reference, and `model`, in a folder with the inputs. Some translators
    /// get a shortlist.
    pub(crate) fn make(&self, place: &Workplace) -> Result<(), String> {
        let folder = place.folder.as_path();
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        for (name, text) in INPUTS {
            fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
        }
        let run = |arguments: &str| {
            let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
            let ended = place.run(&arguments);
            let about = |why: &str| format!("{}: {why}", arguments.join(" "));
            match ended.fault() {
                Some(fault) => Err(Failed::Fault(about(&fault))),
                None if ended.is_good() => Ok(()),
                None => Err(Failed::Refused(about(ended.stderr.trim()))),
            }
        };
        match &self.origin {
            Origin::Trained(settings) => {
                let set: Vec<String> =
                    settings.iter().map(|(key, value)| format!("--set {key}={value}")).collect();
                run(&format!("train {FIXED} {} {} --out f32", files_of(&self.task), set.join(" ")))?;
            }
            Origin::Imported(from) => run(&format!("import {} -o f32 --quiet", from.display()))?,
        }
        match self.stored.as_str() {
            "f32" => run("average f32 --last 1 --out model --quiet").or_else(|failed| match failed {
                Failed::Refused(_) => copy(folder),
                fault => Err(fault),
            })?,
            stored => run(&format!("quantize f32 --to {stored} -o model --quiet"))?,
        }
        for model in ["f32", "model"].iter().filter(|_| self.number % 5 < 2) {
            match run(&format!("shortlist {model} --src src --tgt tgt --quiet")) {
                Ok(()) | Err(Failed::Refused(_)) => {}
                Err(fault) => Err(fault)?,
            }
        }
        Ok(())
    }
}

/// Why a model was not made.
enum Failed {
    /// A regular error message.
    Refused(String),
    /// A crash, hang or missing message.
    Fault(String),
}

impl From<Failed> for String {
    fn from((Failed::Refused(why) | Failed::Fault(why)): Failed) -> String {
        why
    }
}

/// Copies a model. An imported model has no checkpoints.
fn copy(folder: &Path) -> Result<(), Failed> {
    let failed = |error: std::io::Error| Failed::Fault(error.to_string());
    fs::create_dir_all(folder.join("model")).map_err(failed)?;
    for entry in fs::read_dir(folder.join("f32")).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            fs::copy(&path, folder.join("model").join(path.file_name().unwrap_or_default()))
                .map_err(failed)?;
        }
    }
    Ok(())
}

const FIXED: &str =
    "--preset tiny --d-model 16 --steps 2 --warmup 1 --batch-tokens 64 --vocabulary-size 300 --quiet";

fn files_of(task: &str) -> &'static str {
    match task {
        "translate" => "--src src --tgt tgt",
        "classify" => "--label-text label-text",
        _ => "--text src",
    }
}

/// The task and the family come first, because they decide which keys apply.
fn factors() -> Vec<Factor> {
    let names = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let mut factors = vec![
        Factor { name: "data.task".to_owned(), values: Task::ALL.map(|task| task.to_string()).into() },
        Factor {
            name: "model.family".to_owned(),
            values: Family::ALL.map(|family| family.to_string()).into(),
        },
        Factor { name: "stored".to_owned(), values: names(&STORED) },
    ];
    let keys =
        Recipe::keys().filter(|key| ["model", "vocabulary"].contains(&key.section) || key.name == "block");
    for key in keys.filter(|key| !["preset", "family", "d_model", "d_ff"].contains(&key.name)) {
        let values = values(key);
        if !values.is_empty() {
            factors.push(Factor { name: key.path(), values });
        }
    }
    factors
}

/// Values of a key to test: all names, both booleans, or two small sizes. None for files and real numbers.
fn values(key: &Key) -> Vec<String> {
    let names: Vec<String> = key.expects.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let default = key.value(&Recipe::default());
    match key.value_name {
        "NAME" => names,
        "true|false" => vec!["false".to_owned(), "true".to_owned()],
        "N" => match default {
            Literal::Text(none) => vec![none, "8".to_owned()],
            Literal::Integer(size) if size < 16 => vec!["1".to_owned(), "2".to_owned()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether a recipe with these values is valid.
fn is_allowed(settings: &[(String, String)]) -> bool {
    let mut overrides = Overrides::new();
    let fixed = ["model.preset=tiny", "model.d_model=16", "vocabulary.size=300"].map(str::to_owned);
    let settings = settings.iter().map(|(key, value)| format!("{key}={value}"));
    let is_known = fixed.into_iter().chain(settings).all(|setting| overrides.set(&setting).is_ok());
    is_known && resolve(overrides).is_ok()
}

/// The tiny models of other projects from the library's tests, in each stored type.
fn imported() -> Vec<Kind> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heedful/tests/exchange/models");
    let mut folders: Vec<PathBuf> = fs::read_dir(&models)
        .expect("the models of the library's tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    let kind = |folder: PathBuf, stored: &str| Kind {
        name: String::new(),
        task: format!("import-{}", folder.file_name().unwrap_or_default().to_string_lossy()),
        stored: stored.to_owned(),
        number: 0,
        origin: Origin::Imported(folder),
    };
    folders.into_iter().flat_map(|folder| STORED.map(|stored| kind(folder.clone(), stored))).collect()
}
