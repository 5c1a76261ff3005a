//! The values of a recipe from the preset, a file, flags and `--set`, in order of increasing precedence.

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::error::Location;
use super::{BestBy, Family, Key, Literal, Recipe, RecipeError, SECTIONS, Task, TrainingKeys, print};
use crate::data::tokenizer::Sharing;
use crate::layers::Tying;

/// Values that override a preset, in the order in which they were given: the last value of a key wins.
#[derive(Debug, Default)]
pub struct Overrides {
    assignments: Vec<Assignment>,
    author: Author,
}

/// The author of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// A user: setting an unused key is an error.
    #[default]
    User,
    /// The program, for example in the folder of a run: values of unused keys are dropped.
    Program,
}

#[derive(Debug)]
struct Assignment {
    key: &'static Key,
    value: Literal,
    location: Location,
    author: Author,
}

/// A recipe with the keys that a user set.
pub(crate) struct Applied {
    pub(crate) recipe: Recipe,
    /// The keys that a user set.
    pub(crate) written: Vec<&'static Key>,
}

impl Overrides {
    /// No values.
    pub fn new() -> Overrides {
        Overrides::default()
    }

    /// Sets the author of the values added from now on.
    pub fn written_by(&mut self, author: Author) {
        self.author = author;
    }

    /// Adds a recipe file.
    pub fn file(&mut self, path: &Path) -> Result<(), RecipeError> {
        let text =
            fs::read_to_string(path).map_err(|cause| RecipeError::Read { path: path.to_owned(), cause })?;
        self.text(&text, path)
    }

    /// Adds the text of a recipe; error messages call it `path`.
    pub fn text(&mut self, text: &str, path: &Path) -> Result<(), RecipeError> {
        let location = |span: Range<usize>| Location::File {
            path: path.to_owned(),
            line: 1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|&&b| b == b'\n').count(),
        };
        let table = DeTable::parse(text).map_err(|error| RecipeError::Syntax {
            location: location(error.span().unwrap_or(0..0)),
            message: error.message().to_owned(),
        })?;
        for (name, value) in table.get_ref() {
            let section = name.get_ref();
            let unknown = |message| RecipeError::Unknown { location: location(name.span()), message };
            let Some(keys) = value.get_ref().as_table() else {
                return Err(unknown(key_outside_section(section)));
            };
            if !SECTIONS.iter().any(|known| known.name == section.as_ref()) {
                return Err(unknown(unknown_section(section)));
            }
            for (name, value) in keys {
                let path = format!("{section}.{}", name.get_ref());
                // Old recipes have this key, with half of α; `none` still means `none`.
                if path == "training.r_drop" && value.get_ref().as_str() == Some("none") {
                    continue;
                }
                let key = find_key(&path)
                    .map_err(|message| RecipeError::Unknown { location: location(name.span()), message })?;
                let value = Literal::from_toml(value.get_ref()).map_err(|found| RecipeError::Value {
                    location: location(value.span()),
                    key: path,
                    message: format!("must be {}, not {found}", key.expects),
                });
                self.add(key, value?, location(name.span()));
            }
        }
        Ok(())
    }

    /// Adds a flag with its values; more than one only if the key is [`Key::many`].
    pub fn flag(&mut self, key: &'static Key, values: &[String]) {
        let value = match values {
            [one] => key.typed(one),
            many => Literal::List(many.iter().map(|value| Literal::Text(value.clone())).collect()),
        };
        self.add(key, value, Location::Argument(format!("--{}", key.flag())));
    }

    /// Adds the argument of `--set`: `training.dropout=0.3`, or `dropout=0.3` if no other key has that name.
    pub fn set(&mut self, text: &str) -> Result<(), RecipeError> {
        let location = Location::Argument(format!("--set {text}"));
        let unknown = |message| RecipeError::Unknown { location: location.clone(), message };
        let (name, value) = text.split_once('=').ok_or_else(|| unknown("write key=value".to_owned()))?;
        let key = find_key(name.trim()).map_err(unknown)?;
        self.add(key, key.typed(value.trim()), location);
        Ok(())
    }

    /// The last value of a key.
    pub fn last(&self, path: &str) -> Option<(&'static Key, &Literal)> {
        let found = self.assignments.iter().rfind(|assignment| assignment.key.path() == path)?;
        Some((found.key, &found.value))
    }

    /// The last value of a key, if a user wrote it.
    pub(crate) fn by_user(&self, path: &str) -> Option<(&'static Key, &Literal)> {
        let found = self.assignments.iter().rfind(|assignment| assignment.key.path() == path)?;
        (found.author == Author::User).then_some((found.key, &found.value))
    }

    fn add(&mut self, key: &'static Key, value: Literal, location: Location) {
        self.assignments.push(Assignment { key, value, location, author: self.author });
    }

    /// Applies the values to their preset. `start` sets the defaults of the family and task in the recipe.
    /// `why_unused` explains why a key is unused; the values of such keys are dropped, or are an error if a
    /// user set them.
    pub(crate) fn over_preset(
        &self,
        start: impl Fn(&mut Recipe),
        why_unused: impl Fn(&Key, &Location, &Recipe) -> Option<String>,
    ) -> Result<Applied, RecipeError> {
        // Every value is checked, even if a later one replaces it.
        let with_all = self.applied(&start, |_| true)?;
        let reason = |assignment: &Assignment, recipe: &Recipe| {
            why_unused(assignment.key, &assignment.location, recipe)
        };
        // An unused key does not make other keys ineffective.
        let without_unused = self.applied(&start, |assignment| reason(assignment, &with_all).is_none())?;
        let complaints = self.assignments.iter().filter(|assignment| assignment.author == Author::User);
        let complaints: Vec<(&Assignment, String)> = complaints
            .filter_map(|assignment| Some((assignment, reason(assignment, &without_unused)?)))
            .collect();
        if !complaints.is_empty() {
            // A flag can choose another family than the file: keys of the file's family are superseded.
            let files = self.applied(&start, Assignment::is_in_file)?;
            let is_superseded =
                |assignment: &Assignment| assignment.is_in_file() && reason(assignment, &files).is_none();
            let unused = complaints.into_iter().filter(|(assignment, _)| !is_superseded(assignment));
            let unused: Vec<(Location, String)> =
                unused.map(|(assignment, why)| (assignment.location.clone(), why)).collect();
            if !unused.is_empty() {
                return Err(RecipeError::Unused(unused));
            }
        }
        let mut recipe = self.applied(&start, |assignment| reason(assignment, &without_unused).is_none())?;
        recipe.automatic = self.automatic_keys(&recipe);
        if recipe.has_only_time_limit() {
            // The default of the preset does not limit a run that has a time limit.
            recipe.training.steps = None;
        }
        if let Some(steps) = recipe.training.steps {
            recipe.scale_to_steps(steps);
        }
        let users = self.assignments.iter().filter(|assignment| assignment.author == Author::User);
        Ok(Applied { recipe, written: users.map(|assignment| assignment.key).collect() })
    }

    /// The keys that depend on the length of the run: those that are used and were not set. They include the
    /// number of steps if there is only a time limit.
    fn automatic_keys(&self, recipe: &Recipe) -> Vec<&'static str> {
        let is_set = |path: &str| self.assignments.iter().any(|assignment| assignment.key.path() == path);
        let TrainingKeys { time, steps, .. } = recipe.training;
        let has_steps = steps.is_some() && (time.is_none() || is_set("training.steps"));
        if !has_steps && time.is_none() {
            return Vec::new();
        }
        let is_used = |path: &str| find_key(path).is_ok_and(|key| key.contradiction(recipe).is_none());
        let is_automatic = |path: &&str| match *path {
            "training.steps" => !has_steps,
            path => !is_set(path) && is_used(path),
        };
        let by_length = Recipe::AUTOMATIC_KEYS.into_iter().filter(is_automatic);
        if has_steps || !self.allows_fit(recipe) {
            return by_length.collect();
        }
        let sizes = |path: &str| path.starts_with("model.") && path != "model.norm";
        let has_size = Recipe::FITTED_KEYS.into_iter().any(|path| sizes(path) && is_set(path));
        let is_open = |path: &&str| is_automatic(path) && !(has_size && sizes(path));
        let mut keys: Vec<_> = by_length.chain(Recipe::FITTED_KEYS.into_iter().filter(is_open)).collect();
        // The schedule that is chosen has one.
        if keys.contains(&"training.schedule") && !is_set("training.cooldown") {
            keys.push("training.cooldown");
        }
        keys
    }

    /// Whether the run chooses its size and training for its text and machine.
    fn allows_fit(&self, recipe: &Recipe) -> bool {
        let has_preset = self.by_user("model.preset").is_some();
        let Recipe { data, model, .. } = recipe;
        data.task == Task::Translate
            && model.family == Family::Transformer
            && model.init_from.is_none()
            && !has_preset
    }

    /// The recipe with the values that `is_applied` selects.
    fn applied(
        &self,
        start: impl Fn(&mut Recipe),
        is_applied: impl Fn(&Assignment) -> bool,
    ) -> Result<Recipe, RecipeError> {
        let mut recipe = Recipe::default();
        let assignments: Vec<&Assignment> =
            self.assignments.iter().filter(|assignment| is_applied(assignment)).collect();
        let last = |path: &str| assignments.iter().rfind(|assignment| assignment.key.path() == path);
        if let Some(preset) = last("model.preset") {
            preset.apply(&mut recipe)?;
            recipe = Recipe::preset(recipe.model.preset);
        }
        for path in ["model.family", "data.task"] {
            last(path).map_or(Ok(()), |assignment| assignment.apply(&mut recipe))?;
        }
        start(&mut recipe);
        assignments.iter().try_for_each(|assignment| assignment.apply(&mut recipe))?;
        Ok(recipe)
    }
}

impl Assignment {
    fn is_in_file(&self) -> bool {
        matches!(self.location, Location::File { .. })
    }

    fn apply(&self, recipe: &mut Recipe) -> Result<(), RecipeError> {
        (self.key.set)(recipe, &self.value).map_err(|message| RecipeError::Value {
            location: self.location.clone(),
            key: self.key.path(),
            message,
        })
    }
}

impl Recipe {
    /// Checks that the values are consistent, independently of the task.
    pub fn check(&self) -> Result<(), RecipeError> {
        let conflict = |message: &str| Err(RecipeError::Conflict(message.to_owned()));
        if self.training.schedule.has_end() && self.training.steps.is_none() && !self.has_only_time_limit() {
            return conflict(
                "the schedules cosine and trapezoid fall until the last step: set training.steps, or training.time without it",
            );
        }
        if self.validation.best_by == BestBy::Bleu && !self.validation.bleu {
            return conflict(
                "validation.best_by is \"bleu\", and validation.bleu is false: change one of them",
            );
        }
        self.check_r_drop()?;
        let tied = matches!(self.model.tying, Tying::All | Tying::SourceTarget);
        let two_files = self.vocabulary.source_file.is_some() || self.vocabulary.target_file.is_some();
        if tied && (self.vocabulary.sharing == Sharing::Separate || two_files) {
            return conflict(
                "separate vocabularies cannot share an embedding: set model.tying to \"target-output\" or \"none\", or \
                 vocabulary.sharing to \"joint\"",
            );
        }
        if self.vocabulary.source_file.is_some() != self.vocabulary.target_file.is_some() {
            return conflict("give both vocabulary.source_file and vocabulary.target_file, or neither");
        }
        if self.vocabulary.file.is_some() && two_files {
            return conflict("give vocabulary.file for both sides, or one file for each side, not both");
        }
        for (what, sources, targets) in [
            ("data.src and data.tgt", &self.data.src, &self.data.tgt),
            ("data.valid_src and data.valid_tgt", &self.data.valid_src, &self.data.valid_tgt),
        ] {
            let (sources, targets) = (sources.len(), targets.len());
            if sources != targets {
                return Err(RecipeError::Conflict(format!(
                    "{what} name {sources} and {targets} files: each source file needs a target file"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the two passes of R-Drop can differ.
    fn check_r_drop(&self) -> Result<(), RecipeError> {
        let TrainingKeys { r_drop_alpha, dropout, attention_dropout, feed_forward_dropout, .. } =
            self.training;
        // Only Transformers have separate rates.
        let inner = match self.model.family {
            Family::Transformer => [attention_dropout, feed_forward_dropout],
            _ => [0.0; 2],
        };
        if r_drop_alpha.is_none() || dropout > 0.0 || inner.iter().any(|&rate| rate > 0.0) {
            return Ok(());
        }
        Err(RecipeError::Conflict(
            "R-Drop compares two passes that differ in their dropout masks, and nothing is dropped: set training.dropout \
             above 0, or training.r_drop_alpha to \"none\""
                .to_owned(),
        ))
    }
}

/// Finds a key by its path, or by its name if that is unique; else returns an error message.
pub fn find_key(name: &str) -> Result<&'static Key, String> {
    let name = name.replace('-', "_");
    let is_former = |key: &Key| {
        key.former_name().is_some_and(|former| former == name || format!("{}.{former}", key.section) == name)
    };
    let same = |key: &&Key| key.path() == name || key.name == name || is_former(key);
    let found: Vec<&'static Key> = Recipe::keys().filter(same).collect();
    match found.as_slice() {
        [key] => Ok(key),
        [] => Err(unknown_key(&name)),
        several => {
            let paths: Vec<String> = several.iter().map(|key| key.path()).collect();
            Err(format!("`{name}` may mean {}: name the section too", paths.join(" or ")))
        }
    }
}

fn unknown_key(name: &str) -> String {
    let short = name.rsplit('.').next().unwrap_or(name);
    if short == "r_drop" {
        // As an alias of α, this key would change the meaning of old recipes.
        return format!(
            "`{name}` was half of the paper's α: write `training.r_drop_alpha` with twice the number"
        );
    }
    let section = name.split_once('.').map(|(section, _)| section);
    // A key of another section: most likely the section is wrong.
    if let Some(key) = Recipe::keys().find(|key| key.name == short) {
        return format!("there is no key `{name}`: `{short}` is in [{}]", key.section);
    }
    let distance = |key: &&'static Key| {
        let far = strsim::osa_distance(short, key.name);
        // In a tie, prefer the same section.
        2 * far + usize::from(section.is_some_and(|section| section != key.section))
    };
    let nearest = Recipe::keys().min_by_key(distance).expect("there are keys");
    if strsim::osa_distance(short, nearest.name) <= short.len().div_ceil(3) {
        format!("there is no key `{name}`: did you mean `{}`?", nearest.path())
    } else {
        format!("there is no key `{name}`: {}", print::HOW_TO_LIST)
    }
}

fn unknown_section(name: &str) -> String {
    let known: Vec<String> = SECTIONS.iter().map(|section| format!("[{}]", section.name)).collect();
    let nearest = SECTIONS.iter().min_by_key(|section| strsim::osa_distance(name, section.name));
    match nearest.filter(|section| strsim::osa_distance(name, section.name) <= name.len().div_ceil(3)) {
        Some(section) => format!("there is no section [{name}]: did you mean [{}]?", section.name),
        None => format!("there is no section [{name}]: there are {}", known.join(", ")),
    }
}

fn key_outside_section(name: &str) -> String {
    match Recipe::keys().find(|key| key.name == name) {
        Some(key) => format!("`{name}` is outside of any section: write it under [{}]", key.section),
        None => format!(
            "`{name}` is outside of any section, and no section has such a key: {}",
            print::HOW_TO_LIST
        ),
    }
}
