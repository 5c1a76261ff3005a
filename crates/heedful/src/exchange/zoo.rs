//! What can be imported, and from where: `zoo.json`. Nothing here downloads: people fetch models with tools of their own.

use serde::{Deserialize, Serialize};

/// The list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Zoo {
    /// Models that were imported and compared with their originals.
    #[serde(rename = "model")]
    pub models: Vec<ZooModel>,
    /// Kinds of models, each with many.
    #[serde(rename = "family")]
    pub families: Vec<ZooFamily>,
}

/// One model.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZooModel {
    /// What it is called here.
    pub name: String,
    /// What it is, for people.
    pub what: String,
    /// The task of the model that it becomes.
    pub task: String,
    /// Its languages; a translator's source comes first.
    pub languages: String,
    /// Its licence, as its authors state it.
    pub licence: String,
    /// How much is downloaded.
    pub bytes: u64,
    /// The file whose checksum is known.
    pub file: String,
    /// What `heedful import` is given.
    pub path: String,
    /// The file's SHA-256, in hexadecimal.
    pub sha256: String,
    /// Shell commands that leave the file below the working directory.
    pub fetch: Vec<String>,
}

/// Many models of one form.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZooFamily {
    /// What they are called here.
    pub name: String,
    /// What they are, for people.
    pub what: String,
    /// The task of the models that they become.
    pub task: String,
    /// Their licence.
    pub licence: String,
    /// What `heedful import` is given, with words in capitals for what is chosen.
    pub path: String,
    /// A shell command that fetches one.
    pub fetch: String,
}

impl Zoo {
    /// The list that is part of this program.
    pub fn known() -> Zoo {
        serde_json::from_str(include_str!("zoo.json")).expect("the list was tested")
    }

    /// The model of a name.
    pub fn model(&self, name: &str) -> Option<&ZooModel> {
        self.models.iter().find(|model| model.name == name)
    }
}

impl ZooModel {
    /// A shell script that fetches the model, checks it and imports it.
    pub fn script(&self) -> String {
        let ZooModel { name, what, licence, file, path, sha256, fetch, .. } = self;
        let fetch = fetch.join("\n");
        format!(
            "# {what}\n# licence: {licence}\nset -e\n{fetch}\necho \"{sha256}  {file}\" | sha256sum --check\n\
             heedful import {path} -o {name}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_entry_is_whole_and_has_a_name_of_its_own() {
        let zoo = Zoo::known();
        let mut names = BTreeSet::new();
        for model in &zoo.models {
            assert!(names.insert(&model.name), "{} is there twice", model.name);
            let is_hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(model.sha256.len() == 64 && model.sha256.chars().all(is_hexadecimal), "{}", model.name);
            assert!(model.file.starts_with(&model.path) && model.bytes > 0, "{}", model.name);
            assert!(
                crate::tasks::Task::ALL.iter().any(|task| task.to_string() == model.task),
                "{}",
                model.task
            );
        }
        for family in &zoo.families {
            assert!(names.insert(&family.name), "{} is there twice", family.name);
            assert!(
                crate::tasks::Task::ALL.iter().any(|task| task.to_string() == family.task),
                "{}",
                family.task
            );
        }
        assert!(zoo.model("bergamot-en-pt").is_some() && zoo.model("no such").is_none());
    }
}
