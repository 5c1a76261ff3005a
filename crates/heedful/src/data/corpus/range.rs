//! A range of bytes in a plain file, cut at line ends: what one of several processes reads of it.
//!
//! ```text
//! shard i of n   bytes ⌊size · (i − 1) / n⌋ to ⌊size · i / n⌋, both moved forward to the next beginning of a line
//! ```
//!
//! Every line is in exactly one shard, and a shard is found without reading the others. A line that is longer than a shard
//! leaves the next ones empty.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::error::CorpusError;
use super::input::{Input, Packing};
use crate::store::seal::RunningHash;

const BUFFER: usize = 1 << 16;

/// One of several equal parts of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    count: u32,
}

impl Shard {
    /// Part `number`, counted from 1, of `count`; `None` if there is no such part.
    pub fn new(number: u32, count: u32) -> Option<Shard> {
        (1..=count).contains(&number).then_some(Shard { number, count })
    }

    /// Counted from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.count
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.number, self.count)
    }
}

/// Whole lines of a plain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRange {
    path: PathBuf,
    bytes: Range<u64>,
    size: u64,
}

/// What a range holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeContents {
    /// How many lines; one that no line end follows counts.
    pub lines: u64,
    /// Number and hash of the bytes, in the words of a seal.
    pub hash: String,
}

impl FileRange {
    /// The lines of a file that are a shard's.
    pub fn of_shard(path: &Path, shard: Shard) -> Result<FileRange, CorpusError> {
        let (file, size) = open_plain(path)?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut cut = |part: u32| -> io::Result<u64> {
            let near = (u128::from(size) * u128::from(part) / u128::from(shard.count)) as u64;
            if near == 0 || part == shard.count {
                return Ok(near);
            }
            // A cut behind a line end stays where it is.
            file.seek(SeekFrom::Start(near - 1))?;
            Ok(size.min(near - 1 + file.skip_until(b'\n')? as u64))
        };
        let cuts = cut(shard.number - 1).and_then(|begin| Ok(begin..cut(shard.number)?));
        let bytes = cuts.map_err(|error| unreadable(path, error))?;
        Ok(FileRange { path: path.to_owned(), bytes, size })
    }

    /// The lines of another file that stand beside these, by their numbers: both files are read up to there. Beside the last
    /// lines of a file stands all that is left.
    pub fn beside(&self, other: &Path) -> Result<FileRange, CorpusError> {
        let (file, size) = open_plain(other)?;
        let (before, lines) = (self.lines_before()?, self.contents()?.lines);
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let mut skip = |lines: u64| -> Result<u64, CorpusError> {
            let mut bytes = 0;
            for _ in 0..lines {
                let skipped = reader.skip_until(b'\n').map_err(|error| unreadable(other, error))?;
                if skipped == 0 {
                    return Err(CorpusError::FewerLines {
                        file: other.display().to_string(),
                        other: self.path.display().to_string(),
                    });
                }
                bytes += skipped as u64;
            }
            Ok(bytes)
        };
        let begin = skip(before)?;
        let end = if self.bytes.end == self.size { size } else { begin + skip(lines)? };
        Ok(FileRange { path: other.to_owned(), bytes: begin..end, size })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the range begins and ends.
    pub fn bytes(&self) -> Range<u64> {
        self.bytes.clone()
    }

    /// The bytes of the whole file, when the range was found.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The lines of the file before the range, all of which are read for it.
    pub fn lines_before(&self) -> Result<u64, CorpusError> {
        let before = FileRange { bytes: 0..self.bytes.start, ..self.clone() };
        Ok(before.contents()?.lines)
    }

    /// Reads the range.
    pub fn contents(&self) -> Result<RangeContents, CorpusError> {
        let read = || -> io::Result<RangeContents> {
            let (mut reader, mut buffer) = (self.open()?, vec![0; BUFFER]);
            let (mut hash, mut lines, mut last) = (RunningHash::default(), 0, b'\n');
            loop {
                let count = reader.read(&mut buffer)?;
                let Some(&end) = buffer[..count].last() else { break };
                hash.add(&buffer[..count]);
                lines += buffer[..count].iter().filter(|&&byte| byte == b'\n').count() as u64;
                last = end;
            }
            Ok(RangeContents { lines: lines + u64::from(last != b'\n'), hash: hash.to_string() })
        };
        read().map_err(|error| unreadable(&self.path, error))
    }

    /// The bytes, unbuffered.
    pub(super) fn open(&self) -> io::Result<io::Take<File>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.bytes.start))?;
        Ok(file.take(self.bytes.end - self.bytes.start))
    }
}

/// A file that can be cut, with its size.
fn open_plain(path: &Path) -> Result<(File, u64), CorpusError> {
    let input = Input::File(path.to_owned());
    let name = || path.display().to_string();
    let metadata = path.metadata().map_err(|error| input.unreadable(error))?;
    if !metadata.is_file() {
        return Err(CorpusError::NoShards { file: name(), what: "is no ordinary file" });
    }
    match input.open()?.1 {
        Packing::Plain => {}
        packing => {
            let what = match packing {
                Packing::Gzip => "is compressed (gzip)",
                Packing::Xz => "is compressed (xz)",
                Packing::Zstd | Packing::Plain => "is compressed (zstd)",
            };
            return Err(CorpusError::NoShards { file: name(), what });
        }
    }
    let file = File::open(path).map_err(|error| input.unreadable(error))?;
    Ok((file, metadata.len()))
}

fn unreadable(path: &Path, error: io::Error) -> CorpusError {
    Input::File(path.to_owned()).unreadable(error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Lines;
    use super::*;

    fn texts(file: &Path, count: u32) -> Vec<String> {
        let bytes = fs::read(file).expect("a file");
        (1..=count)
            .map(|number| {
                let shard = Shard::new(number, count).expect("a shard");
                let range = FileRange::of_shard(file, shard).expect("a plain file").bytes();
                String::from_utf8(bytes[range.start as usize..range.end as usize].to_vec())
                    .expect("whole lines")
            })
            .collect()
    }

    #[test]
    fn shards_are_whole_lines_and_together_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("text");
        for text in [
            "",
            "a",
            "a\n",
            "\n\n\n",
            "a\nbb\nccc\ndddd\n",
            "one\r\ntwo\r\n\r\nthree",
            "ab\nä",
            "aaaaaaaaaa\nb\n",
        ] {
            fs::write(&file, text).expect("room enough");
            for count in 1..12 {
                let texts = texts(&file, count);
                assert_eq!(texts.concat(), text, "{count} shards");
                let ends = |part: &String| part.is_empty() || part.ends_with('\n');
                let (last, others) = texts.split_last().expect("one or more");
                assert!(others.iter().all(|part| ends(part) || (last.is_empty() && text.ends_with(part))));
            }
        }
        fs::write(&file, "a\nbb\nccc\ndddd\n").expect("room enough");
        assert_eq!(texts(&file, 2), ["a\nbb\nccc\n", "dddd\n"]);
        // Seven bytes are the middle, behind a line end.
        fs::write(&file, "aa\nbbb\ncc\nddd\n").expect("room enough");
        assert_eq!(texts(&file, 2), ["aa\nbbb\n", "cc\nddd\n"]);
    }

    #[test]
    fn lines_of_a_range_have_the_numbers_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("text");
        // U+FEFF is a byte order mark at the beginning of the file and nowhere else.
        fs::write(&file, b"\xEF\xBB\xBFa\nb\n\xEF\xBB\xBFc\nd\xFF\n").expect("room enough");
        let open = |number| {
            let shard = Shard::new(number, 2).expect("a shard");
            Lines::open(&Input::Range(FileRange::of_shard(&file, shard).expect("a file"))).expect("a range")
        };
        let mut first = open(1);
        assert_eq!(first.next().expect("text"), Some("a"));
        let mut second = open(2);
        assert_eq!(second.next().expect("text"), Some("\u{FEFF}c"));
        assert_eq!(second.number(), 3);
        let message = second.next().expect_err("not UTF-8").to_string();
        assert!(message.contains("text, line 4: byte 2"), "{message}");
    }

    #[test]
    fn another_file_is_cut_at_the_same_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, target] = ["source", "target"].map(|name| folder.path().join(name));
        fs::write(&source, "a\nbbbb\nc\nd\ne").expect("room enough");
        fs::write(&target, "1\n2\n3\n4\n5\n").expect("room enough");
        let beside = |number| {
            let shard = Shard::new(number, 2).expect("a shard");
            FileRange::of_shard(&source, shard).expect("a file").beside(&target)
        };
        assert_eq!(beside(1).expect("lines").bytes(), 0..4);
        assert_eq!(beside(2).expect("lines").bytes(), 4..10);
        fs::write(&target, "1\n").expect("room enough");
        for number in [1, 2] {
            let message = beside(number).expect_err("too few lines").to_string();
            assert!(message.contains("target has fewer lines than"), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_cut_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let packed = folder.path().join("text.gz");
        fs::write(&packed, [0x1F, 0x8B, 8, 0]).expect("room enough");
        let shard = Shard::new(1, 2).expect("a shard");
        for (path, expected) in [
            (packed, "compressed (gzip)"),
            (folder.path().to_owned(), "no ordinary file"),
            ("nowhere".into(), "nowhere"),
        ] {
            let message = FileRange::of_shard(&path, shard).expect_err("not a plain file").to_string();
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!((Shard::new(0, 2), Shard::new(3, 2), Shard::new(1, 0)), (None, None, None));
    }
}
