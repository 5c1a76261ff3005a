//! A strict reader of zip archives: the format's two tables can contradict each other, which attacks have
//! exploited.
//!
//! ```text
//! header · data · header · data · …          local headers and data
//! name, sizes, checksum, offset · …          the central directory
//! number of members, offset of the directory the end record
//! ```
//!
//! Only the members of the central directory are read; their local headers must agree. Nothing is written to
//! disk. An uncompressed member is used in the mapped file without a copy, which models of gigabytes need.
//! Decompression uses `flate2`.

pub(crate) mod write;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use super::cursor::Cursor;
use super::{FileBytes, FormatError};

const END: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const ZIP64_END: [u8; 4] = *b"PK\x06\x06";
const ZIP64_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const HEADER: [u8; 4] = *b"PK\x03\x04";
const HEADER_BYTES: usize = 30;
const ZIP64_EXTRA: u16 = 1;
const IS_ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Limit against zip bombs: a member may have at most this many times its compressed size, or [`SMALL`]
/// bytes. Weights shrink by a tenth, text to a tenth; a ratio of a thousand is an attack.
const MAX_RATIO: u64 = 100;
const SMALL: u64 = 1 << 20;

/// An archive whose directory has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Archive {
    file: String,
    bytes: FileBytes,
    members: BTreeMap<String, Member>,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    packed: Range<usize>,
    size: u64,
    checksum: u32,
    method: u16,
}

/// An entry of the central directory.
struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    header: u64,
}

/// Whether bytes begin like a zip archive.
pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(&HEADER) || bytes.starts_with(&END)
}

impl Archive {
    /// Reads the directory of a file.
    pub fn open(path: &Path) -> Result<Archive, FormatError> {
        Archive::new(&path.display().to_string(), FileBytes::open(path)?)
    }

    /// As [`Archive::open`], for bytes; `file` is the name in error messages.
    pub fn new(file: &str, bytes: FileBytes) -> Result<Archive, FormatError> {
        let (count, directory) = end(file, &bytes)?;
        let entries = entries(file, &bytes, count, directory.clone())?;
        let mut members = BTreeMap::new();
        let mut folded = HashSet::new();
        let mut ranges = Vec::new();
        for entry in entries {
            let packed = data(file, &bytes, &entry, directory.start)?;
            ranges.push((entry.header, packed.end as u64));
            // Some file systems are case-insensitive.
            if !folded.insert(entry.name.to_lowercase()) {
                return Err(bad_member(file, &entry.name, "it is a duplicate"));
            }
            let Entry { name, method, checksum, size, .. } = entry;
            members.insert(name, Member { packed, size, checksum, method });
        }
        // Zip bombs use the same compressed bytes for many members.
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            let place = format!("byte {}", pair[1].0);
            return Err(FormatError::damaged(file, place, "two members of the archive overlap"));
        }
        Ok(Archive { file: file.to_owned(), bytes, members })
    }

    /// The name of the archive, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The sorted names of the members, without folders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Whether there is a member with this name.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A reader of a member, if it exists; size and checksum are not verified.
    pub(crate) fn reader(&self, name: &str) -> Option<Box<dyn Read + '_>> {
        let member = self.members.get(name)?;
        let packed = &self.bytes[member.packed.clone()];
        Some(match member.method {
            STORED => Box::new(packed),
            // One byte more than allowed, so that a larger member is detected.
            _ => Box::new(DeflateDecoder::new(packed).take(member.size + 1)),
        })
    }

    /// The content of a member, if it exists.
    pub fn read(&self, name: &str) -> Result<Option<FileBytes>, FormatError> {
        let Some(member) = self.members.get(name) else { return Ok(None) };
        let bytes: FileBytes = match member.method {
            STORED => self.bytes.slice(member.packed.clone()),
            _ => {
                let mut bytes = Vec::new();
                // Not preallocated, because the stated size is not trusted.
                let unpacked = self.reader(name).expect("it is a member").read_to_end(&mut bytes);
                unpacked.map_err(|error| {
                    bad_member(&self.file, name, format!("it cannot be unpacked ({error})"))
                })?;
                bytes.into()
            }
        };
        if bytes.len() as u64 != member.size {
            return Err(bad_member(&self.file, name, format!("it should unpack to {} bytes", member.size)));
        }
        let mut checksum = Crc::new();
        checksum.update(&bytes);
        match checksum.sum() == member.checksum {
            true => Ok(Some(bytes)),
            false => Err(bad_member(&self.file, name, "its checksum does not match")),
        }
    }
}

fn bad_member(file: &str, name: &str, problem: impl Into<String>) -> FormatError {
    FormatError::damaged(file, format!("member `{}`", name.escape_debug()), problem)
}

/// The number of members, and the range of the directory.
fn end(file: &str, bytes: &FileBytes) -> Result<(u64, Range<usize>), FormatError> {
    let damaged = |place: usize, problem: &str| FormatError::damaged(file, format!("byte {place}"), problem);
    // A comment of up to 65,535 bytes may follow; it must end at the end of the file.
    let first = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
    let is_end = |&at: &usize| {
        let comment = usize::from(u16::from_le_bytes([bytes[at + 20], bytes[at + 21]]));
        bytes[at..].starts_with(&END) && at + END_BYTES + comment == bytes.len()
    };
    let last = bytes.len().checked_sub(END_BYTES);
    let at = last.and_then(|last| (first..=last).rev().find(is_end)).ok_or_else(|| {
        damaged(bytes.len(), "there is no end record: it is truncated or not a zip archive")
    })?;
    let mut cursor = Cursor::new(file, &bytes[at + 4..]);
    let disks = [cursor.u16("the end")?, cursor.u16("the end")?];
    let _here = cursor.u16("the end")?;
    let mut count = u64::from(cursor.u16("the end")?);
    let mut length = u64::from(cursor.u32("the end")?);
    let mut start = u64::from(cursor.u32("the end")?);
    let mut limit = at;
    if count == u64::from(u16::MAX) || length == u64::from(u32::MAX) || start == u64::from(u32::MAX) {
        let locator =
            at.checked_sub(LOCATOR_BYTES).filter(|&locator| bytes[locator..].starts_with(&ZIP64_LOCATOR));
        if let Some(locator) = locator {
            let large = Cursor::new(file, &bytes[locator + 8..]).u64("the offset of the zip64 end record")?;
            let large = usize::try_from(large).ok().filter(|&large| large < locator);
            let large = large
                .filter(|&large| bytes[large..].starts_with(&ZIP64_END))
                .ok_or_else(|| damaged(locator, "there is no zip64 end record where it should be"))?;
            let mut cursor = Cursor::new(file, &bytes[large..]);
            cursor.take(32, "the zip64 end record")?;
            count = cursor.u64("the zip64 end record")?;
            length = cursor.u64("the zip64 end record")?;
            start = cursor.u64("the zip64 end record")?;
            limit = large;
        }
    }
    if disks != [0, 0] {
        return Err(FormatError::unsupported(file, "parts on several disks", "Join them into one zip file"));
    }
    let range = usize::try_from(start).ok().zip(usize::try_from(length).ok());
    let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
    match range.filter(|range| range.end <= limit) {
        Some(range) if count <= (range.len() / ENTRY_BYTES) as u64 => Ok((count, range)),
        _ => Err(damaged(at, "the central directory is not in front of it, or has fewer entries")),
    }
}

/// The entries of the directory, without folders.
fn entries(
    file: &str,
    bytes: &FileBytes,
    count: u64,
    directory: Range<usize>,
) -> Result<Vec<Entry>, FormatError> {
    let mut cursor = Cursor::new(file, &bytes[..directory.end]);
    cursor.range(directory.start as u64, "the data before the central directory")?;
    let mut entries = Vec::new();
    for _ in 0..count {
        if cursor.take(4, "a member's entry")? != ENTRY {
            return Err(cursor.damaged("a member's entry should begin here"));
        }
        let made_by = cursor.u16("a member's entry")?;
        cursor.u16("a member's entry")?;
        let flags = cursor.u16("a member's entry")?;
        let method = cursor.u16("a member's entry")?;
        cursor.u32("a member's time")?;
        let checksum = cursor.u32("a member's checksum")?;
        let mut packed = u64::from(cursor.u32("a member's size")?);
        let mut size = u64::from(cursor.u32("a member's size")?);
        let lengths = [(); 3].map(|()| cursor.u16("a member's lengths"));
        cursor.u32("a member's entry")?;
        let mode = cursor.u32("a member's attributes")? >> 16;
        let mut header = u64::from(cursor.u32("a member's place")?);
        let [name, extra, comment] = lengths;
        let name = cursor.take(u64::from(name?), "a member's name")?;
        let extra = cursor.take(u64::from(extra?), "a member's extra fields")?;
        cursor.take(u64::from(comment?), "a member's comment")?;
        let name = str::from_utf8(name).map_err(|_| cursor.damaged("a member's name is not UTF-8"))?;
        read_zip64_sizes(file, extra, [&mut size, &mut packed, &mut header])?;
        check_name(file, name)?;
        const LINK: u32 = 0o120_000;
        const KIND: u32 = 0o170_000;
        if made_by >> 8 == 3 && mode & KIND == LINK {
            return Err(bad_member(file, name, "it is a link to another file"));
        }
        if name.ends_with('/') {
            continue;
        }
        if flags & IS_ENCRYPTED != 0 {
            return Err(FormatError::unsupported(file, format!("a member `{name}` with a password"), REPACK));
        }
        if ![STORED, DEFLATED].contains(&method) {
            let found = format!("a member `{name}` packed by method {method}");
            return Err(FormatError::unsupported(file, found, REPACK));
        }
        if (method == STORED && packed != size) || size > packed.saturating_mul(MAX_RATIO).max(SMALL) {
            return Err(bad_member(file, name, format!("its {packed} bytes do not unpack to {size}")));
        }
        entries.push(Entry { name: name.to_owned(), method, checksum, packed, size, header });
    }
    Ok(entries)
}

const REPACK: &str = "Unpack it, and pack it again with `zip -r`";

/// Sizes of 4 GiB or more are in the zip64 extra field, in this order, each only if its 32-bit field has the
/// maximum value.
fn read_zip64_sizes(file: &str, extra: &[u8], sizes: [&mut u64; 3]) -> Result<(), FormatError> {
    let mut fields = Cursor::new(file, extra);
    while fields.left() >= 4 {
        let kind = fields.u16("an extra field")?;
        let length = fields.u16("an extra field")?;
        let field = fields.take(u64::from(length), "an extra field")?;
        if kind == ZIP64_EXTRA {
            let mut large = Cursor::new(file, field);
            for size in sizes {
                if *size == u64::from(u32::MAX) {
                    *size = large.u64("a large size")?;
                }
            }
            return Ok(());
        }
    }
    Ok(())
}

/// Rejects names that lead out of the folder on any operating system.
fn check_name(file: &str, name: &str) -> Result<(), FormatError> {
    let parts = name.strip_suffix('/').unwrap_or(name).split('/');
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    let is_unsafe = |part: &str| {
        matches!(part, "" | "." | "..") || part.contains('\\') || part.chars().any(char::is_control)
    };
    match has_drive || parts.into_iter().any(is_unsafe) {
        true => Err(bad_member(file, name, "its name leads out of the archive's folder")),
        false => Ok(()),
    }
}

/// The range of a member's compressed bytes.
fn data(file: &str, bytes: &FileBytes, entry: &Entry, end: usize) -> Result<Range<usize>, FormatError> {
    let wrong_header = || bad_member(file, &entry.name, "its header is not where the central directory says");
    let start = usize::try_from(entry.header).ok().filter(|&start| start <= end).ok_or_else(wrong_header)?;
    let header = &bytes[start..end];
    if header.len() < HEADER_BYTES || !header.starts_with(&HEADER) {
        return Err(wrong_header());
    }
    let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let (name, extra) = (length(26), length(28));
    if header.get(HEADER_BYTES..HEADER_BYTES + name) != Some(entry.name.as_bytes()) {
        return Err(wrong_header());
    }
    let first = start + HEADER_BYTES + name + extra;
    let last = usize::try_from(entry.packed).ok().and_then(|packed| first.checked_add(packed));
    match last.filter(|&last| last <= end) {
        Some(last) => Ok(first..last),
        None => Err(bad_member(file, &entry.name, "it is truncated")),
    }
}

#[cfg(test)]
pub(super) mod tests;
