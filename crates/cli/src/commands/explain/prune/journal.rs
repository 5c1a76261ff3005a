//! Finished measurements in a file of one JSON object per line, so that a stopped command can continue.
//!
//! ```text
//! {"measured":"9f3a…"}                  fingerprint of model, texts and options
//! {"without":"encoder.0.self.3","bleu":37.91}
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::models::HeadName;
use serde_json::{Value, json};

/// What a journal begins with.
const FIRST: &str = "{\"measured\":";

/// BLEU scores by the name of the pruned head; also on disk, if there is a file.
pub(super) struct Journal {
    scores: Vec<(String, f64)>,
    file: Option<(PathBuf, File)>,
}

impl Journal {
    /// Reads the measurements of an earlier command. An incomplete last line, which a kill leaves, is cut off.
    pub(super) fn open(path: Option<&Path>, fingerprint: &str) -> Result<Journal> {
        let Some(path) = path else { return Ok(Journal { scores: Vec::new(), file: None }) };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        if !text.contains('\n') && !FIRST.starts_with(&text) && !text.starts_with(FIRST) {
            bail!("{} is not a pruning journal: name another file", path.display());
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let scores = read(&text[..whole], fingerprint).with_context(|| path.display().to_string())?;
        let cannot = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(cannot)?;
        file.set_len(whole as u64).with_context(cannot)?;
        let mut journal = Journal { scores, file: Some((path.to_owned(), file)) };
        if whole == 0 {
            journal.write(&json!({ "measured": fingerprint }))?;
        }
        Ok(journal)
    }

    /// The score under that name.
    pub(super) fn score(&self, name: &str) -> Option<f64> {
        self.scores.iter().find(|(known, _)| known == name).map(|&(_, score)| score)
    }

    /// Adds a score, and writes it to the file.
    pub(super) fn add(&mut self, name: &str, score: f64) -> Result<()> {
        self.scores.push((name.to_owned(), score));
        self.write(&json!({ "without": name, "bleu": score }))
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let written = file.write_all(format!("{line}\n").as_bytes()).and_then(|()| file.flush());
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn read(text: &str, fingerprint: &str) -> Result<Vec<(String, f64)>> {
    let mut scores = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        match (number, value["measured"].as_str(), value["without"].as_str(), value["bleu"].as_f64()) {
            (0, Some(known), ..) if known == fingerprint => {}
            (0, Some(_), ..) => bail!(
                "it was measured with another model, other texts or other options: delete the file or name another"
            ),
            (1.., None, Some(name), Some(score)) => {
                // Whatever spelling it was written in, a head has one name.
                let name = name.parse::<HeadName>().map_or(name.to_owned(), |head| head.to_string());
                scores.push((name, score));
            }
            _ => bail!(
                "line {} is not a line of a pruning journal: delete the file or name another",
                number + 1
            ),
        }
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_measurements_survive_wherever_the_file_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(Some(&path), "abc").expect("a new journal");
        journal.add("nothing", 30.5).expect("room on the disk");
        journal.add("enc.0.1", 29.0).expect("room on the disk");
        let whole = fs::read(&path).expect("bytes");
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).expect("torn");
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            let journal = Journal::open(Some(&path), "abc").expect("torn, not wrong");
            assert_eq!(journal.scores.len(), lines.saturating_sub(1));
            assert_eq!(journal.score("nothing").is_some(), lines > 1);
        }
        let journal = Journal::open(Some(&path), "abc").expect("still good");
        assert_eq!(journal.score("encoder.0.self.1"), Some(29.0));
    }

    #[test]
    fn the_journal_of_another_model_is_refused_and_so_is_any_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        drop(Journal::open(Some(&path), "abc").expect("a new journal"));
        let complaint = format!("{:#}", Journal::open(Some(&path), "xyz").err().expect("another model"));
        assert!(complaint.contains("another model"), "{complaint}");
        for other in ["my thesis\n", "my thesis"] {
            fs::write(&path, other).expect("room on the disk");
            assert!(Journal::open(Some(&path), "abc").is_err());
            assert_eq!(fs::read_to_string(&path).expect("untouched"), other);
        }
    }
}
