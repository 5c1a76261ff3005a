//! Texts to try a model with: those that its training run has shown samples of.

use heedful::train::log::{METRICS, read_metrics};

use super::Origin;

/// As many as fit below a field.
const MOST: usize = 4;
/// The most characters of an example.
const LONGEST: usize = 120;

/// The last lines of the sampled texts; none for a model that does not come from a run.
pub(super) fn of(origin: &Origin) -> Vec<String> {
    let Origin::Folder(folder) = origin else { return Vec::new() };
    let records = read_metrics(&folder.join(METRICS)).unwrap_or_default();
    let sampled = records.iter().rev().find(|record| !record.samples.is_empty());
    let mut examples: Vec<String> = Vec::new();
    for sample in sampled.iter().flat_map(|record| &record.samples) {
        let Some(line) = sample.source.lines().rfind(|line| !line.trim().is_empty()) else { continue };
        let line = line.trim().to_owned();
        if line.chars().count() <= LONGEST && !examples.contains(&line) && examples.len() < MOST {
            examples.push(line);
        }
    }
    examples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_last_lines_of_the_newest_samples() {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = Origin::Folder(folder.path().to_owned());
        assert!(of(&origin).is_empty(), "a folder without a log has none");
        let long = "x".repeat(LONGEST + 1);
        let lines = format!(
            r#"{{"step":1,"seconds":1.0,"samples":[{{"source":"old","reference":"","output":""}}]}}
{{"step":2,"seconds":2.0,"samples":[{{"source":"one","reference":"","output":""}},{{"source":"a\nb \n\n","reference":"","output":""}},{{"source":"one","reference":"","output":""}},{{"source":"{long}","reference":"","output":""}}]}}
{{"step":3,"seconds":3.0,"loss":1.0}}
"#
        );
        std::fs::write(folder.path().join(METRICS), lines).expect("room on the disk");
        assert_eq!(of(&origin), ["one", "b"]);
    }
}
