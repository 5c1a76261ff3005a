//! Example inputs of a model: the examples in its folder, else the samples logged by its training run, else
//! the first lines of its validation text.

use std::path::Path;

use toml::de::DeTable;

use super::log::{METRICS, read_metrics};
use crate::data::Input;
use crate::data::corpus::{Lines, LongLines};
use crate::tasks::folder::read_model_file;
use crate::tasks::package::EXAMPLES;

/// Maximum number of examples, as many as fit below an input field.
const MAX_EXAMPLES: usize = 4;
/// Maximum number of characters of an example.
const MAX_CHARACTERS: usize = 120;
/// Maximum number of bytes in a line, and of lines, that are read from validation text.
const MAX_LINE: usize = 64 << 10;
const MAX_LINES: usize = 1000;

/// Recipe keys of validation files, with the column that contains the text.
const VALIDATION_KEYS: [(&str, usize); 4] =
    [("valid_src", 0), ("valid_tsv", 0), ("valid_label_text", 1), ("valid_text", 0)];

/// The examples of a model in a folder or package; empty if there is no source of examples.
pub fn examples(model: &Path) -> Vec<String> {
    if let Ok(Some(own)) = read_model_file(model, EXAMPLES) {
        return packed(&own);
    }
    let records = read_metrics(&model.join(METRICS)).unwrap_or_default();
    let sampled = records.iter().rev().find(|record| !record.samples.is_empty());
    let samples = sampled.iter().flat_map(|record| &record.samples);
    let last_lines = samples.filter_map(|sample| sample.source.lines().rfind(|line| !line.trim().is_empty()));
    let found = short_distinct(last_lines);
    if found.is_empty() { from_validation_text(model).unwrap_or_default() } else { found }
}

/// The examples in the file [`EXAMPLES`] of a model.
pub fn packed(file: &[u8]) -> Vec<String> {
    short_distinct(String::from_utf8_lossy(file).lines())
}

/// The first distinct texts that are short enough.
fn short_distinct<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty() && line.chars().count() <= MAX_CHARACTERS)
    {
        if examples.len() < MAX_EXAMPLES && !examples.iter().any(|known| known == line) {
            examples.push(line.to_owned());
        }
    }
    examples
}

/// The first lines of the validation text named in the recipe of a model, if the files still exist.
fn from_validation_text(model: &Path) -> Option<Vec<String>> {
    let recipe = String::from_utf8(read_model_file(model, "recipe.toml").ok()??).ok()?;
    let recipe = DeTable::parse(&recipe).ok()?;
    let data = recipe.get_ref().get("data")?.get_ref().as_table()?;
    // Inputs of masked language models need a `<mask>`, which plain text does not have.
    if data.get("task").is_some_and(|task| task.get_ref().as_str() == Some("mlm")) {
        return None;
    }
    let files =
        |key: &str| data.get(key)?.get_ref().as_array()?.first()?.get_ref().as_str().map(str::to_owned);
    let (file, column) = VALIDATION_KEYS.iter().find_map(|&(key, column)| Some((files(key)?, column)))?;
    let mut lines = Lines::open(&Input::new(file)).ok()?.bounded(MAX_LINE, LongLines::Refused);
    let mut texts = Vec::new();
    while texts.len() < MAX_LINES
        && let Ok(Some(line)) = lines.next()
    {
        texts.extend(line.split('\t').nth(column).map(str::to_owned));
    }
    Some(short_distinct(texts.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn examples_come_from_the_model_or_its_run_or_its_validation_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("room");
        assert!(examples(folder.path()).is_empty(), "a folder without a run has none");
        let long = "x".repeat(MAX_CHARACTERS + 1);
        write("valid.tsv", &format!("first\t1\n{long}\t2\nsecond\t3\nfirst\t4\n\t5\n"));
        let valid = folder.path().join("valid.tsv");
        write(
            "recipe.toml",
            &format!("[data]\nvalid_src = []\nvalid_tsv = [{:?}]\n", valid.display().to_string()),
        );
        assert_eq!(examples(folder.path()), ["first", "second"]);
        let lines = format!(
            r#"{{"step":1,"seconds":1.0,"samples":[{{"source":"old","reference":"","output":""}}]}}
{{"step":2,"seconds":2.0,"samples":[{{"source":"one","reference":"","output":""}},{{"source":"a\nb \n\n","reference":"","output":""}},{{"source":"one","reference":"","output":""}},{{"source":"{long}","reference":"","output":""}}]}}
{{"step":3,"seconds":3.0,"loss":1.0}}
"#
        );
        write(METRICS, &lines);
        assert_eq!(examples(folder.path()), ["one", "b"]);
        write(EXAMPLES, "own\n\nwords\n");
        assert_eq!(examples(folder.path()), ["own", "words"]);
    }
}
