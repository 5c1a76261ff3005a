//! A TensorBoard events file: messages in TFRecord frames.
//!
//! ```text
//! frame = length u64 · masked crc32c of length · bytes · masked crc32c of bytes          all little endian
//! ```

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{LogError, Record, crc32c, event};
use crate::system;
use crate::tasks::validation::Sample;

/// An open events file. TensorBoard reads the files of a folder in the order of their names, which is
/// chronological.
#[derive(Debug)]
pub(crate) struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// A file for the steps after `step`, which is 0 for a new run.
    pub(crate) fn open(folder: &Path, step: u64) -> Result<EventFile, LogError> {
        if step == 0 { EventFile::create(folder) } else { EventFile::resume(folder, step) }
    }

    /// The first file of a run.
    pub(crate) fn create(folder: &Path) -> Result<EventFile, LogError> {
        let mut file = open_new(folder)?;
        file.append(&event::version(now()))?;
        Ok(file)
    }

    /// A new file of a run resumed after `step`; later steps in older files are void.
    pub(crate) fn resume(folder: &Path, step: u64) -> Result<EventFile, LogError> {
        let mut file = EventFile::create(folder)?;
        file.append(&event::restart(now(), step + 1))?;
        Ok(file)
    }

    /// Its path.
    #[cfg(test)]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the values of a record as scalars, and its samples as one text.
    pub(crate) fn write(&mut self, record: &Record) -> Result<(), LogError> {
        if !record.values.is_empty() {
            self.append(&event::scalars(now(), record.step, &record.values))?;
        }
        if !record.samples.is_empty() {
            self.write_text(record.step, "samples", &table(&record.samples))?;
        }
        Ok(())
    }

    /// Adds a text in Markdown, such as the recipe.
    pub(crate) fn write_text(&mut self, step: u64, tag: &str, markdown: &str) -> Result<(), LogError> {
        self.append(&event::text(now(), step, tag, markdown))
    }

    fn append(&mut self, message: &[u8]) -> Result<(), LogError> {
        super::append(&mut self.file, &frame(message)).map_err(LogError::io("write", &self.path))
    }
}

/// A file named after the current second, or after the next free one.
fn open_new(folder: &Path) -> Result<EventFile, LogError> {
    let host = host_name();
    for second in now() as u64.. {
        let path = folder.join(format!("events.out.tfevents.{second:010}.{host}"));
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok(EventFile { file, path }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(LogError::io("create", &path)(error)),
        }
    }
    unreachable!("not every second has its file")
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut frame = Vec::with_capacity(message.len() + 16);
    frame.extend(length);
    frame.extend(crc32c::masked(&length).to_le_bytes());
    frame.extend(message);
    frame.extend(crc32c::masked(message).to_le_bytes());
    frame
}

fn now() -> f64 {
    // A system clock before 1970 must not stop training.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The host name, reduced to characters that are safe in a file name.
fn host_name() -> String {
    let fit = |c: &char| c.is_ascii_alphanumeric() || ['-', '.', '_'].contains(c);
    let name: String = system::host_name().unwrap_or_default().chars().filter(fit).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn table(samples: &[Sample]) -> String {
    // Backquoted so that sentences are not parsed as Markdown; a bar would end the cell.
    let cell =
        |text: &str| format!("`{}`", text.replace('`', "'").replace('|', "¦").replace(['\n', '\r'], " "));
    let mut table = "| source | reference | output |\n|---|---|---|\n".to_owned();
    for sample in samples {
        table += &format!(
            "| {} | {} | {} |\n",
            cell(&sample.source),
            cell(&sample.reference),
            cell(&sample.output)
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Measure;

    /// The messages of a file; checks all checksums.
    fn messages(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = bytes;
        let mut messages = Vec::new();
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(12);
            let length = u64::from_le_bytes(head[..8].try_into().expect("8 bytes"));
            assert_eq!(head[8..], crc32c::masked(&head[..8]).to_le_bytes());
            let (message, tail) = tail.split_at(length as usize);
            let (check, tail) = tail.split_at(4);
            assert_eq!(check, crc32c::masked(message).to_le_bytes());
            messages.push(message.to_vec());
            rest = tail;
        }
        messages
    }

    #[test]
    fn a_frame_byte_for_byte() {
        // Both checksums were computed by an independent bitwise script.
        let expected = [
            &[9, 0, 0, 0, 0, 0, 0, 0][..],
            &0x3971_F937_u32.to_le_bytes(),
            b"123456789",
            &0xC78A_B0E5_u32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(frame(b"123456789"), expected);
    }

    #[test]
    fn files_of_one_second_have_different_names_and_a_resumed_one_voids_later_steps() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = EventFile::create(folder.path()).expect("a file");
        let mut second = EventFile::resume(folder.path(), 4).expect("another");
        assert_ne!(first.path(), second.path());
        let mut record = Record::new(5, 1.0).with(Measure::Loss, 2.0);
        record.samples.push(Sample { source: "a|b".to_owned(), ..Sample::default() });
        second.write(&record).expect("written");
        let messages = messages(&std::fs::read(second.path()).expect("bytes"));
        assert_eq!(messages.len(), 4);
        assert!(messages[0].ends_with(b"brain.Event:2"));
        assert!(messages[1].ends_with(&[0x10, 5, 0x3A, 2, 0x08, 1]));
        let name = second.path().file_name().expect("a name").to_string_lossy().into_owned();
        assert!(name.starts_with("events.out.tfevents.") && name.split('.').count() >= 5, "{name}");
    }
}
