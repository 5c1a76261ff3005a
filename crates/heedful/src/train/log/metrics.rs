//! `metrics.jsonl`: one JSON object a line, complete on disk as far as the process came.
//!
//! A kill may leave half a line at the end; it is dropped. A resumed run goes back to the checkpoint's step and writes
//! what comes after it again, so records beyond that step are cut off first: the file never tells a step twice.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{LogError, Record};

/// An open `metrics.jsonl`.
#[derive(Debug)]
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// A new file; an old one of that name is emptied.
    pub fn create(path: &Path) -> Result<MetricsFile, LogError> {
        let file = File::create(path).map_err(LogError::io("create", path))?;
        Ok(MetricsFile { file, path: path.to_owned() })
    }

    /// Goes on after step `step`: later records are cut off, the others returned. A file that is missing is made.
    pub fn resume(path: &Path, step: u64) -> Result<(MetricsFile, Vec<Record>), LogError> {
        let (records, ends) = match fs::read(path) {
            Ok(bytes) => parse(path, &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => (Vec::new(), Vec::new()),
            Err(error) => return Err(LogError::io("read", path)(error)),
        };
        let kept = records.iter().position(|record| record.step > step).unwrap_or(records.len());
        let length = if kept == 0 { 0 } else { ends[kept - 1] };
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).open(path).map_err(LogError::io("open", path))?;
        file.set_len(length as u64).map_err(LogError::io("shorten", path))?;
        let records = records.into_iter().take(kept).collect();
        Ok((MetricsFile { file, path: path.to_owned() }, records))
    }

    /// Adds a line and hands it to the system at once, whole.
    pub fn write(&mut self, record: &Record) -> Result<(), LogError> {
        let line = record.to_json() + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(LogError::io("write", &self.path))
    }
}

/// All records of a file. Half a line at the end, as a kill leaves it, is no error.
pub fn read_metrics(path: &Path) -> Result<Vec<Record>, LogError> {
    let bytes = fs::read(path).map_err(LogError::io("read", path))?;
    Ok(parse(path, &bytes)?.0)
}

/// The records and where each one's line ends.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Vec<Record>, Vec<usize>), LogError> {
    let (mut records, mut ends) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        start += line.len();
        let complete = line.ends_with(b"\n");
        let text = str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"));
        let last = start == bytes.len();
        match text.and_then(Record::from_json) {
            Ok(record) if complete => {
                records.push(record);
                ends.push(start);
            }
            // Torn, or never followed by its newline: the run will write it again.
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
    use super::super::Sample;
    use super::*;

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
            let mut record = Record::new(step, step as f64 / 8.0).with("loss", 1.0 / step as f64);
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
    fn what_is_written_is_read() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        written(&path, &[1, 2, 3]);
        let text = fs::read_to_string(&path).expect("text");
        assert!(text.starts_with("{\"step\":1,\"seconds\":0.125,\"loss\":1.0}\n"), "{text}");
        let records = read_metrics(&path).expect("records");
        assert_eq!(steps(&records), [1, 2, 3]);
        assert_eq!(records[1].samples, [sample()]);
        assert_eq!(records[2].value("loss"), Some(1.0 / 3.0));
        assert_eq!(super::super::series(&records, "loss")[1], (2.0, 0.5));
    }

    #[test]
    fn not_a_number_survives_as_null() {
        let folder = folder();
        let path = folder.path().join("metrics.jsonl");
        let mut file = MetricsFile::create(&path).expect("a new file");
        file.write(&Record::new(1, 0.0).with("loss", f64::NAN).with("norm", f64::INFINITY)).expect("written");
        assert!(fs::read_to_string(&path).expect("text").contains("\"loss\":null,\"norm\":null"));
        let records = read_metrics(&path).expect("records");
        assert!(records[0].value("loss").is_some_and(f64::is_nan));
    }

    #[test]
    fn resuming_cuts_off_what_the_checkpoint_does_not_know() {
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
