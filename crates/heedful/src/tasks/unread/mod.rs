//! Keys that nothing reads: of another family, of another task, or without effect beside the values of other keys.

use super::Task;
use crate::recipe::{Family, Key, Location, Recipe};

impl Recipe {
    /// Why no run by this recipe reads a key: a sentence that names who does. `None` if it is read.
    pub(crate) fn why_unread(&self, key: &Key) -> Option<String> {
        let (task, family) = (self.data.task, self.model.family);
        let path = key.path();
        if !key.scope.is_declared || task.reads(family, &path) {
            return key.contradiction(self);
        }
        let families: Vec<Family> =
            Family::ALL.into_iter().filter(|&other| task.reads(other, &path)).collect();
        if !families.is_empty() {
            let names = named("family", "families", &families);
            return Some(format!("{path} is for the {names}; the family {family} does not use it"));
        }
        let tasks: Vec<Task> = Task::ALL
            .into_iter()
            .filter(|task| Family::ALL.into_iter().any(|family| task.reads(family, &path)))
            .collect();
        let files = match key.many {
            true => format!(": it reads {}", task.definition().words().training_keys),
            false => String::new(),
        };
        let names = named("task", "tasks", &tasks);
        Some(format!("{path} is for the {names}; the task {task} does not use it{files}"))
    }

    /// As [`Recipe::why_unread`], for a value given there. Settings of the validation without a validation set are an error
    /// as arguments; in a file they may wait for one.
    pub(super) fn why_unread_at(&self, key: &Key, location: &Location) -> Option<String> {
        self.why_unread(key).or_else(|| {
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

    /// A complete recipe as TOML: every key with its meaning as a comment. Keys that nothing reads, and those that follow the
    /// length of the run, are comments themselves.
    pub fn to_toml(&self) -> String {
        self.to_toml_where(|key| self.why_unread(key).is_none() && !self.open.contains(&key.path().as_str()))
    }
}

impl Task {
    /// Whether a model of a family for this task reads a key that is not for all.
    fn reads(self, family: Family, path: &str) -> bool {
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
