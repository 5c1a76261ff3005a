//! Unused keys: those of another family or task, and those that the values of other keys make ineffective.

use super::Task;
use crate::recipe::{Family, Key, Location, Recipe};

impl Recipe {
    /// Why a run with this recipe does not use a key, with the families or tasks that do; `None` if it is
    /// used.
    pub(crate) fn why_unused(&self, key: &Key) -> Option<String> {
        let (task, family) = (self.data.task, self.model.family);
        let path = key.path();
        if !key.scope.is_declared || task.uses(family, &path) {
            return key.contradiction(self);
        }
        let families: Vec<Family> =
            Family::ALL.into_iter().filter(|&other| task.uses(other, &path)).collect();
        if !families.is_empty() {
            let names = named("family", "families", &families);
            return Some(format!("{path} is for the {names}; the family {family} does not use it"));
        }
        let tasks: Vec<Task> = Task::ALL
            .into_iter()
            .filter(|task| Family::ALL.into_iter().any(|family| task.uses(family, &path)))
            .collect();
        let files = match key.many {
            true => format!(": it reads {}", task.definition().words().training_keys),
            false => String::new(),
        };
        let names = named("task", "tasks", &tasks);
        Some(format!("{path} is for the {names}; the task {task} does not use it{files}"))
    }

    /// As [`Recipe::why_unused`], for a value given at `location`. Validation settings without a validation
    /// set are an error as command line arguments, but allowed in a file.
    pub(super) fn why_unused_at(&self, key: &Key, location: &Location) -> Option<String> {
        self.why_unused(key).or_else(|| {
            let (task, data) = (self.data.task, &self.data);
            let is_argument = matches!(location, Location::Argument(_));
            let is_of_validation = ["validation", "search"].contains(&key.section);
            let has_text = self.named_files().next().is_some();
            (is_argument && is_of_validation && has_text && !task.has_validation(data)).then(|| {
                let flags = task.validation_flags();
                format!("{} is for runs with a validation set, and none is named ({flags})", key.path())
            })
        })
    }

    /// A complete recipe as TOML: every key with its meaning as a comment. Unused keys, and keys whose
    /// defaults depend on the length of the run, are commented out.
    pub fn to_toml(&self) -> String {
        self.to_toml_where(|key| {
            self.why_unused(key).is_none() && !self.automatic.contains(&key.path().as_str())
        })
    }
}

impl Task {
    /// Whether a model of this family and task uses a key that is not common to all runs.
    fn uses(self, family: Family, path: &str) -> bool {
        self.definition().keys(family).iter().any(|keys| keys.contains(&path))
    }
}

/// `family transformer`, `families transformer and convolutional`.
fn named<T: ToString>(one: &str, several: &str, items: &[T]) -> String {
    let names: Vec<String> = items.iter().map(T::to_string).collect();
    match names.split_last() {
        Some((last, [])) => format!("{one} {last}"),
        Some((last, others)) => format!("{several} {} and {last}", others.join(", ")),
        None => format!("no {one}"),
    }
}

#[cfg(test)]
mod tests;
