//! The phrases, as text files that anybody can read and train with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use heedful_grammar::{EXAMPLE, Grammar, Phrase};

use super::direction::Direction;
use super::plan::Plan;

const TRAIN: &str = "train";
const VALIDATION: &str = "valid";
const EXAM: &str = "test";

/// A folder of `train`, `valid` and `test`, each with the ending `zh` and `en`.
pub(super) struct TextFiles {
    folder: PathBuf,
}

impl TextFiles {
    /// Draws phrases and writes them down. Returns those of the exam: none of them, and none of the validation set, is
    /// trained on.
    pub(super) fn write(plan: &Plan, seed: u64, folder: &Path) -> Result<(TextFiles, Vec<Phrase>)> {
        let mut split = Grammar::new().split(seed, plan.train, plan.validation + plan.exam);
        let mut exam = split.test.split_off(plan.validation);
        for phrases in [&mut split.train, &mut split.test, &mut exam] {
            phrases.retain(|phrase| phrase.length_class() <= plan.longest);
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let files = TextFiles { folder: folder.to_owned() };
        let lines = |phrases: &[Phrase]| -> Vec<[String; 2]> {
            phrases.iter().map(|phrase| [phrase.chinese.clone(), phrase.english.clone()]).collect()
        };
        files.write_pairs(TRAIN, &lines(&split.train))?;
        // The example first: the run's report shows what becomes of the first lines.
        let mut validation = lines(&split.test);
        validation.insert(0, [EXAMPLE.0.to_owned(), EXAMPLE.1.to_owned()]);
        files.write_pairs(VALIDATION, &validation)?;
        files.write_pairs(EXAM, &lines(&exam))?;
        Ok((files, exam))
    }

    /// Source and target to train with.
    pub(super) fn train(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(TRAIN, direction)
    }

    /// Source and target to validate with.
    pub(super) fn validation(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(VALIDATION, direction)
    }

    /// Source and target of the exam.
    pub(super) fn exam(&self, direction: Direction) -> [PathBuf; 2] {
        self.files(EXAM, direction)
    }

    fn files(&self, name: &str, direction: Direction) -> [PathBuf; 2] {
        direction.endings().map(|ending| self.folder.join(format!("{name}.{ending}")))
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
