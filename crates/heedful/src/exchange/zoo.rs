//! The list of models that can be imported, and where to get them: `zoo.json`. heedful itself downloads
//! nothing.

use serde::{Deserialize, Serialize};

/// The list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Zoo {
    /// Models whose import was compared with the original program.
    #[serde(rename = "model")]
    pub models: Vec<ZooModel>,
    /// Families of models, each with many members.
    #[serde(rename = "family")]
    pub families: Vec<ZooFamily>,
}

/// One model.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZooModel {
    /// Its name in this list.
    pub name: String,
    /// A description for people.
    pub what: String,
    /// The task of the imported model.
    pub task: String,
    /// Its languages; the source language of a translator comes first.
    pub languages: String,
    /// Its licence, as its authors state it.
    pub licence: String,
    /// Size of the download.
    pub bytes: u64,
    /// The file whose checksum is known.
    pub file: String,
    /// The argument of `heedful import`.
    pub path: String,
    /// The file's SHA-256, in hexadecimal.
    pub sha256: String,
    /// Shell commands that fetch the file into the working directory.
    pub fetch: Vec<String>,
}

/// Many models of one kind.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ZooFamily {
    /// The family's name in this list.
    pub name: String,
    /// A description for people.
    pub what: String,
    /// The task of the imported models.
    pub task: String,
    /// Their licence.
    pub licence: String,
    /// The argument of `heedful import`, with placeholders in capitals.
    pub path: String,
    /// A shell command that fetches one model.
    pub fetch: String,
}

impl Zoo {
    /// The built-in list.
    pub fn known() -> Zoo {
        serde_json::from_str(include_str!("zoo.json")).expect("the list was tested")
    }

    /// The model with this name.
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
    fn every_entry_is_complete_and_has_a_unique_name() {
        let zoo = Zoo::known();
        let mut names = BTreeSet::new();
        for model in &zoo.models {
            assert!(names.insert(&model.name), "duplicate name {}", model.name);
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
            assert!(names.insert(&family.name), "duplicate name {}", family.name);
            assert!(
                crate::tasks::Task::ALL.iter().any(|task| task.to_string() == family.task),
                "{}",
                family.task
            );
        }
        assert!(zoo.model("bergamot-en-pt").is_some() && zoo.model("no such").is_none());
    }
}
