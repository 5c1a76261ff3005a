//! Writes the phrases of the demo to text files, which `heedful train` can also read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use heedful_grammar::{EXAMPLE, Grammar, Phrase};

use super::direction::Direction;
use super::plan::Plan;

const TRAIN: &str = "train";
const VALIDATION: &str = "valid";
const TEST: &str = "test";

/// A folder with `train`, `valid` and `test`, each with the extensions `zh` and `en`.
pub(super) struct TextFiles {
    folder: PathBuf,
}

impl TextFiles {
    /// Paths in a folder; nothing is written yet.
    pub(super) fn new(folder: &Path) -> TextFiles {
        TextFiles { folder: folder.to_owned() }
    }

    /// Samples phrases and writes them to the files. Returns the test set. Test and validation set share no
    /// phrase with the training set.
    pub(super) fn write(&self, plan: &Plan, seed: u64) -> Result<Vec<Phrase>> {
        let mut split = Grammar::new().split(seed, plan.train, plan.validation + plan.test);
        let mut test = split.test.split_off(plan.validation);
        for phrases in [&mut split.train, &mut split.test, &mut test] {
            phrases.retain(|phrase| phrase.length_class() <= plan.longest);
        }
        let folder = &self.folder;
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lines = |phrases: &[Phrase]| -> Vec<[String; 2]> {
            phrases.iter().map(|phrase| [phrase.chinese.clone(), phrase.english.clone()]).collect()
        };
        self.write_pairs(TRAIN, &lines(&split.train))?;
        // The example comes first: the run's report shows samples of the first lines.
        let mut validation = lines(&split.test);
        validation.insert(0, [EXAMPLE.0.to_owned(), EXAMPLE.1.to_owned()]);
        self.write_pairs(VALIDATION, &validation)?;
        self.write_pairs(TEST, &lines(&test))?;
        Ok(test)
    }

    /// Source and target of the training set.
    pub(super) fn train(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(TRAIN, direction)
    }

    /// Source and target of the validation set.
    pub(super) fn validation(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(VALIDATION, direction)
    }

    /// Source and target of the test set.
    pub(super) fn test(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(TEST, direction)
    }

    fn files(&self, name: &str, direction: Direction) -> [PathBuf; 2] {
        direction.extensions().map(|extension| self.folder.join(format!("{name}.{extension}")))
    }

    fn write_pairs(&self, name: &str, pairs: &[[String; 2]]) -> Result<()> {
        let files = self.files(name, Direction::ChineseToEnglish);
        for (side, path) in files.iter().enumerate() {
            let text: String = pairs.iter().flat_map(|pair| [pair[side].as_str(), "\n"]).collect();
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
