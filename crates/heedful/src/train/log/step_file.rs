//! JSON Lines files with one object per step, flushed after every line.
//!
//! If the process is killed, the file may end with a partial line, which is dropped. A resumed run repeats
//! the steps after its checkpoint, so their records are removed first: no step occurs twice.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{AttentionRecord, LogError, Record, append};

/// A record of one step.
pub trait StepLine: Sized {
    /// Updates so far.
    fn step(&self) -> u64;

    /// One line, without its newline.
    fn to_json(&self) -> String;

    /// Parses one line; the error names what is wrong with it.
    fn from_json(line: &str) -> Result<Self, String>;
}

/// An open file of such lines.
#[derive(Debug)]
pub struct StepFile<L> {
    file: File,
    path: PathBuf,
    lines: PhantomData<L>,
}

/// An open `metrics.jsonl`.
pub type MetricsFile = StepFile<Record>;

/// An open `attention.jsonl`.
pub type AttentionFile = StepFile<AttentionRecord>;

impl<L: StepLine> StepFile<L> {
    /// A new file; an existing one is truncated.
    pub fn create(path: &Path) -> Result<StepFile<L>, LogError> {
        let file = File::create(path).map_err(LogError::io("create", path))?;
        drop(file);
        let file = OpenOptions::new().append(true).open(path).map_err(LogError::io("open", path))?;
        Ok(StepFile { file, path: path.to_owned(), lines: PhantomData })
    }

    /// Continues after step `step`: removes later records and returns the others. A missing file is created.
    pub fn resume(path: &Path, step: u64) -> Result<(StepFile<L>, Vec<L>), LogError> {
        let (records, ends) = parse(path, &bytes(path)?, L::from_json)?;
        let kept = records.iter().position(|record| record.step() > step).unwrap_or(records.len());
        let length = if kept == 0 { 0 } else { ends[kept - 1] };
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(path).map_err(LogError::io("open", path))?;
        file.set_len(length as u64).map_err(LogError::io("shorten", path))?;
        let records = records.into_iter().take(kept).collect();
        Ok((StepFile { file, path: path.to_owned(), lines: PhantomData }, records))
    }

    /// Appends a line and flushes it.
    pub fn write(&mut self, record: &L) -> Result<(), LogError> {
        let line = record.to_json() + "\n";
        append(&mut self.file, line.as_bytes()).map_err(LogError::io("write", &self.path))
    }
}

/// All records of a file. A partial last line is not an error: killing a run can leave one.
pub fn read_metrics(path: &Path) -> Result<Vec<Record>, LogError> {
    let bytes = fs::read(path).map_err(LogError::io("read", path))?;
    Ok(parse(path, &bytes, Record::from_json)?.0)
}

/// As [`read_metrics`] for `attention.jsonl`; empty if the file does not exist.
pub fn read_attention(path: &Path) -> Result<Vec<AttentionRecord>, LogError> {
    Ok(parse(path, &bytes(path)?, AttentionRecord::from_json)?.0)
}

/// The records of `metrics.jsonl` or `attention.jsonl` after step `step`, as JSON. A run may be writing the
/// file: an incomplete line is left for the next call, and a missing file has no records.
pub fn records_after(path: &Path, step: u64) -> Result<Vec<Value>, LogError> {
    let later = |line: &str| {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let found = value.get("step").and_then(Value::as_u64);
        let found = found.ok_or("\"step\" is missing or not a whole number")?;
        Ok((found > step).then_some(value))
    };
    Ok(parse(path, &bytes(path)?, later)?.0.into_iter().flatten().collect())
}

/// The bytes of the file; empty if it does not exist.
fn bytes(path: &Path) -> Result<Vec<u8>, LogError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(LogError::io("read", path)),
    }
}

/// The records, and the offset of the end of each line.
fn parse<R>(
    path: &Path,
    bytes: &[u8],
    read: impl Fn(&str) -> Result<R, String>,
) -> Result<(Vec<R>, Vec<usize>), LogError> {
    let (mut records, mut ends) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        start += line.len();
        let complete = line.ends_with(b"\n");
        let text = str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"));
        let last = start == bytes.len();
        match text.and_then(&read) {
            Ok(record) if complete => {
                records.push(record);
                ends.push(start);
            }
            // Partial, or without its newline: the run will write it again.
            _ if last => break,
            Ok(_) => unreachable!("only the last line can lack its newline"),
            Err(reason) => {
                return Err(LogError::Malformed { path: path.to_owned(), line: index + 1, reason });
            }
        }
    }
    Ok((records, ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Measure;
    use crate::tasks::validation::Sample;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn sample() -> Sample {
        Sample {
            source: "一辆车".to_owned(),
            reference: "a \"car\"\n".to_owned(),
            output: "a bus".to_owned(),
        }
    }

    fn written(path: &Path, steps: &[u64]) {
        let mut file = MetricsFile::create(path).expect("a new file");
        for &step in steps {
            let mut record = Record::new(step, step as f64 / 8.0).with(Measure::Loss, 1.0 / step as f64);
            if step.is_multiple_of(2) {
                record.samples.push(sample());
            }
            file.write(&record).expect("written");
        }
    }

    fn steps(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.step).collect()
    }

    #[test]
    fn records_round_trip() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        written(&path, &[1, 2, 3]);
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("{\"step\":1,\"seconds\":0.125,\"loss\":1.0}\n"), "{text}");
        let records = read_metrics(&path).expect("records");
        assert_eq!(steps(&records), [1, 2, 3]);
        assert_eq!(records[1].samples, [sample()]);
        assert_eq!(records[2].value(Measure::Loss), Some(1.0 / 3.0));
        assert_eq!(super::super::series(&records, Measure::Loss)[1], (2.0, 0.5));
        let ended = Record { ending: Some("all \"steps\"".to_owned()), ..Record::new(3, 1.0) };
        MetricsFile::resume(&path, 3).and_then(|(mut file, _)| file.write(&ended)).expect("written");
        assert_eq!(read_metrics(&path).expect("records")[3].ending, ended.ending);
    }

    #[test]
    fn not_a_number_survives_as_null() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        let mut file = MetricsFile::create(&path).expect("a new file");
        file.write(
            &Record::new(1, 0.0).with(Measure::Loss, f64::NAN).with(Measure::GradientNorm, f64::INFINITY),
        )
        .expect("written");
        assert!(fs::read_to_string(&path).expect("text").contains("\"loss\":null,\"gradient_norm\":null"));
        let records = read_metrics(&path).expect("records");
        assert!(records[0].value(Measure::Loss).is_some_and(f64::is_nan));
    }

    #[test]
    fn resuming_cuts_off_the_steps_after_the_checkpoint() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        written(&path, &[1, 2, 3, 4, 5]);
        let (mut file, records) = MetricsFile::resume(&path, 3).expect("resumed");
        assert_eq!(steps(&records), [1, 2, 3]);
        file.write(&Record::new(4, 1.0)).expect("written");
        assert_eq!(steps(&read_metrics(&path).expect("records")), [1, 2, 3, 4]);
        let (_, none) = MetricsFile::resume(&path, 0).expect("resumed");
        assert!(none.is_empty() && fs::read(&path).expect("bytes").is_empty());
        let (_, none) = MetricsFile::resume(&folder.path().join("new.jsonl"), 7).expect("made");
        assert!(none.is_empty());
    }

    #[test]
    fn a_file_torn_at_any_byte_resumes_from_its_whole_lines() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        written(&path, &[1, 2, 3]);
        let whole = fs::read(&path).expect("bytes");
        for length in 0..whole.len() {
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            fs::write(&path, &whole[..length]).expect("torn");
            assert_eq!(read_metrics(&path).expect("records").len(), lines);
            let (mut file, records) = MetricsFile::resume(&path, 9).expect("resumed");
            assert_eq!(records.len(), lines);
            file.write(&Record::new(9, 9.0)).expect("written");
            assert_eq!(read_metrics(&path).expect("records").len(), lines + 1);
        }
    }

    #[test]
    fn a_file_is_read_while_it_is_written() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        let steps_after = |step| -> Vec<u64> {
            let values = records_after(&path, step).expect("a readable file");
            values.iter().map(|value| value["step"].as_u64().expect("a number")).collect()
        };
        assert!(steps_after(0).is_empty(), "there is no file yet");
        written(&path, &[1, 2, 3]);
        let whole = fs::read(&path).expect("bytes");
        for length in 0..=whole.len() {
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            fs::write(&path, &whole[..length]).expect("torn");
            assert_eq!(steps_after(0).len(), lines);
        }
        assert_eq!(steps_after(1), [2, 3]);
        assert_eq!(records_after(&path, 1).expect("records")[0]["samples"][0]["source"], "一辆车");
    }

    #[test]
    fn a_bad_line_in_the_middle_is_named() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        for bad in ["{\"step\":", "[]", "{}", "{\"step\":1,\"seconds\":1,\"loss\":\"low\"}"] {
            let good = "{\"step\":1,\"seconds\":0}";
            fs::write(&path, format!("{good}\n{bad}\n{good}\n")).expect("written");
            let error = read_metrics(&path).expect_err("a bad line").to_string();
            assert!(error.contains("metrics.jsonl, line 2: "), "{error}");
        }
    }
}
