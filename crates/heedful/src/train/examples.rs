//! Texts to try a model with: those that came with it, else those that its training run has shown samples of,
//! else the first of its validation text.

use std::path::Path;

use toml::de::DeTable;

use super::log::{METRICS, read_metrics};
use crate::data::Input;
use crate::data::corpus::{Lines, LongLines};
use crate::tasks::folder::read_model_file;
use crate::tasks::package::EXAMPLES;

/// As many as fit below a field.
const MOST: usize = 4;
/// The most characters of an example.
const LONGEST: usize = 120;
/// Bytes and lines of a validation text that are looked at.
const LONGEST_LINE: usize = 64 << 10;
const LOOKED_AT: usize = 1000;

/// Keys of a recipe with files of validation text, and in which column of a line the text is.
const TEXTS: [(&str, usize); 4] =
    [("valid_src", 0), ("valid_tsv", 0), ("valid_label_text", 1), ("valid_text", 0)];

/// The examples of a model, in its folder or its package; none if it has neither texts nor a run to take them
/// from.
pub fn examples(model: &Path) -> Vec<String> {
    if let Ok(Some(own)) = read_model_file(model, EXAMPLES) {
        return chosen(String::from_utf8_lossy(&own).lines());
    }
    let records = read_metrics(&model.join(METRICS)).unwrap_or_default();
    let sampled = records.iter().rev().find(|record| !record.samples.is_empty());
    let samples = sampled.iter().flat_map(|record| &record.samples);
    let last_lines = samples.filter_map(|sample| sample.source.lines().rfind(|line| !line.trim().is_empty()));
    let found = chosen(last_lines);
    if found.is_empty() { of_validation_text(model).unwrap_or_default() } else { found }
}

/// The first texts that are short enough, each once.
fn chosen<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut examples: Vec<String> = Vec::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty() && line.chars().count() <= LONGEST) {
        if examples.len() < MOST && !examples.iter().any(|known| known == line) {
            examples.push(line.to_owned());
        }
    }
    examples
}

/// The first lines of the validation text that the recipe beside a model names, if its files are still there.
fn of_validation_text(model: &Path) -> Option<Vec<String>> {
    let recipe = String::from_utf8(read_model_file(model, "recipe.toml").ok()??).ok()?;
    let recipe = DeTable::parse(&recipe).ok()?;
    let data = recipe.get_ref().get("data")?.get_ref().as_table()?;
    // Such a model fills gaps, which a plain text does not have.
    if data.get("task").is_some_and(|task| task.get_ref().as_str() == Some("mlm")) {
        return None;
    }
    let files =
        |key: &str| data.get(key)?.get_ref().as_array()?.first()?.get_ref().as_str().map(str::to_owned);
    let (file, column) = TEXTS.iter().find_map(|&(key, column)| Some((files(key)?, column)))?;
    let mut lines = Lines::open(&Input::new(file)).ok()?.bounded(LONGEST_LINE, LongLines::Refused);
    let mut texts = Vec::new();
    while texts.len() < LOOKED_AT
        && let Ok(Some(line)) = lines.next()
    {
        texts.extend(line.split('\t').nth(column).map(str::to_owned));
    }
    Some(chosen(texts.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn examples_come_with_the_model_or_from_its_run_or_from_its_validation_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("room");
        assert!(examples(folder.path()).is_empty(), "a folder without a run has none");
        let long = "x".repeat(LONGEST + 1);
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
