//! Zip archives, read strictly: the format lets two tables contradict each other, and people have used that.
//!
//! ```text
//! header · data · header · data · …          what the second table points to
//! name, sizes, checksum, offset · …          the central directory
//! number of members, offset of the directory the end
//! ```
//!
//! Members are named by the central directory alone; their headers must agree. Nothing is written to disk. A member that is
//! stored uncompressed is used where it lies, which no crate offers and which a model of gigabytes needs: so this is ours,
//! over `flate2`.

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
const LARGE_END: [u8; 4] = *b"PK\x06\x06";
const LARGE_LOCATOR: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_BYTES: usize = 20;
const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const HEADER: [u8; 4] = *b"PK\x03\x04";
const HEADER_BYTES: usize = 30;
const LARGE_EXTRA: u16 = 1;
const IS_ENCRYPTED: u16 = 1;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// A member may be this many times as large as its packed bytes, or [`SMALL`]. Weights shrink by a tenth, text to a tenth;
/// what grows a thousandfold was made to fill someone's memory.
const MOST_GROWTH: u64 = 100;
const SMALL: u64 = 1 << 20;

/// An archive whose directory has been read.
#[derive(Clone, Debug)]
pub struct Archive {
    file: String,
    bytes: FileBytes,
    members: BTreeMap<String, Member>,
}

#[derive(Clone, Debug)]
struct Member {
    packed: Range<usize>,
    size: u64,
    checksum: u32,
    method: u16,
}

/// What the central directory says of a member.
struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
    header: u64,
}

/// Whether bytes begin as a zip does.
pub(crate) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(&HEADER) || bytes.starts_with(&END)
}

impl Archive {
    /// Reads the directory of a file.
    pub fn open(path: &Path) -> Result<Archive, FormatError> {
        Archive::new(&path.display().to_string(), FileBytes::open(path)?)
    }

    /// As [`Archive::open`], for bytes that are called `file` in messages.
    pub fn new(file: &str, bytes: FileBytes) -> Result<Archive, FormatError> {
        let (count, directory) = end(file, &bytes)?;
        let entries = entries(file, &bytes, count, directory.clone())?;
        let mut members = BTreeMap::new();
        let mut folded = HashSet::new();
        let mut taken = Vec::new();
        for entry in entries {
            let packed = data(file, &bytes, &entry, directory.start)?;
            taken.push((entry.header, packed.end as u64));
            // Some systems do not tell `a` from `A`.
            if !folded.insert(entry.name.to_lowercase()) {
                return Err(refused(file, &entry.name, "it is there twice"));
            }
            let Entry { name, method, checksum, size, .. } = entry;
            members.insert(name, Member { packed, size, checksum, method });
        }
        // One stretch of packed bytes under many names unpacks to any size.
        taken.sort_unstable();
        if let Some(pair) = taken.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            let place = format!("byte {}", pair[1].0);
            return Err(FormatError::damaged(file, place, "two members of the archive overlap"));
        }
        Ok(Archive { file: file.to_owned(), bytes, members })
    }

    /// The name of the archive, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The names of the members, sorted; folders have none.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Reads a member from its beginning, if there is one of this name; nothing is verified.
    pub(crate) fn reader(&self, name: &str) -> Option<Box<dyn Read + '_>> {
        let member = self.members.get(name)?;
        let packed = &self.bytes[member.packed.clone()];
        Some(match member.method {
            STORED => Box::new(packed),
            // One more than there may be, so that more is noticed.
            _ => Box::new(DeflateDecoder::new(packed).take(member.size + 1)),
        })
    }

    /// The content of a member, if there is one of this name.
    pub fn read(&self, name: &str) -> Result<Option<FileBytes>, FormatError> {
        let Some(member) = self.members.get(name) else { return Ok(None) };
        let bytes: FileBytes = match member.method {
            STORED => self.bytes.slice(member.packed.clone()),
            _ => {
                let mut bytes = Vec::new();
                // Memory grows with what is there.
                let unpacked = self.reader(name).expect("it is a member").read_to_end(&mut bytes);
                unpacked
                    .map_err(|error| refused(&self.file, name, format!("it cannot be unpacked ({error})")))?;
                bytes.into()
            }
        };
        if bytes.len() as u64 != member.size {
            return Err(refused(&self.file, name, format!("it should unpack to {} bytes", member.size)));
        }
        let mut checksum = Crc::new();
        checksum.update(&bytes);
        match checksum.sum() == member.checksum {
            true => Ok(Some(bytes)),
            false => Err(refused(&self.file, name, "its checksum does not match")),
        }
    }
}

fn refused(file: &str, name: &str, problem: impl Into<String>) -> FormatError {
    FormatError::damaged(file, format!("member `{}`", name.escape_debug()), problem)
}

/// The number of members, and where the directory lies.
fn end(file: &str, bytes: &FileBytes) -> Result<(u64, Range<usize>), FormatError> {
    let nothing = |place: usize, problem: &str| FormatError::damaged(file, format!("byte {place}"), problem);
    // A comment of up to 65,535 bytes may follow; its length must lead to the end of the file.
    let first = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
    let is_end = |&at: &usize| {
        let comment = usize::from(u16::from_le_bytes([bytes[at + 20], bytes[at + 21]]));
        bytes[at..].starts_with(&END) && at + END_BYTES + comment == bytes.len()
    };
    let last = bytes.len().checked_sub(END_BYTES);
    let at = last
        .and_then(|last| (first..=last).rev().find(is_end))
        .ok_or_else(|| nothing(bytes.len(), "there is no end of a zip archive: it is cut off, or no zip"))?;
    let mut cursor = Cursor::new(file, &bytes[at + 4..]);
    let disks = [cursor.u16("the end")?, cursor.u16("the end")?];
    let _here = cursor.u16("the end")?;
    let mut count = u64::from(cursor.u16("the end")?);
    let mut length = u64::from(cursor.u32("the end")?);
    let mut start = u64::from(cursor.u32("the end")?);
    let mut limit = at;
    if count == u64::from(u16::MAX) || length == u64::from(u32::MAX) || start == u64::from(u32::MAX) {
        let locator =
            at.checked_sub(LOCATOR_BYTES).filter(|&locator| bytes[locator..].starts_with(&LARGE_LOCATOR));
        if let Some(locator) = locator {
            let large = Cursor::new(file, &bytes[locator + 8..]).u64("the place of the end")?;
            let large = usize::try_from(large).ok().filter(|&large| large < locator);
            let large = large
                .filter(|&large| bytes[large..].starts_with(&LARGE_END))
                .ok_or_else(|| nothing(locator, "there is no end of a large archive where it should be"))?;
            let mut cursor = Cursor::new(file, &bytes[large..]);
            cursor.take(32, "the end of a large archive")?;
            count = cursor.u64("the end of a large archive")?;
            length = cursor.u64("the end of a large archive")?;
            start = cursor.u64("the end of a large archive")?;
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
        _ => Err(nothing(at, "the list of members does not lie before it, or has not so many")),
    }
}

/// The members that the directory lists, without folders.
fn entries(
    file: &str,
    bytes: &FileBytes,
    count: u64,
    directory: Range<usize>,
) -> Result<Vec<Entry>, FormatError> {
    let mut cursor = Cursor::new(file, &bytes[..directory.end]);
    cursor.range(directory.start as u64, "what is before the list of members")?;
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
        let extra = cursor.take(u64::from(extra?), "a member's further fields")?;
        cursor.take(u64::from(comment?), "a member's comment")?;
        let name = str::from_utf8(name).map_err(|_| cursor.damaged("a member's name is not UTF-8"))?;
        large_sizes(file, extra, [&mut size, &mut packed, &mut header])?;
        check_name(file, name)?;
        const LINK: u32 = 0o120_000;
        const KIND: u32 = 0o170_000;
        if made_by >> 8 == 3 && mode & KIND == LINK {
            return Err(refused(file, name, "it is a link to another file"));
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
        if (method == STORED && packed != size) || size > packed.saturating_mul(MOST_GROWTH).max(SMALL) {
            return Err(refused(file, name, format!("its {packed} bytes do not become {size}")));
        }
        entries.push(Entry { name: name.to_owned(), method, checksum, packed, size, header });
    }
    Ok(entries)
}

const REPACK: &str = "Unpack it, and pack it again with `zip -r`";

/// Sizes beyond four gigabytes are in a field of their own, in this order, each only where the short one is full.
fn large_sizes(file: &str, extra: &[u8], sizes: [&mut u64; 3]) -> Result<(), FormatError> {
    let mut fields = Cursor::new(file, extra);
    while fields.left() >= 4 {
        let kind = fields.u16("a further field")?;
        let length = fields.u16("a further field")?;
        let field = fields.take(u64::from(length), "a further field")?;
        if kind == LARGE_EXTRA {
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

/// Refuses names that would lead out of a folder on any system.
fn check_name(file: &str, name: &str) -> Result<(), FormatError> {
    let parts = name.strip_suffix('/').unwrap_or(name).split('/');
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    let is_odd = |part: &str| {
        matches!(part, "" | "." | "..") || part.contains('\\') || part.chars().any(char::is_control)
    };
    match has_drive || parts.into_iter().any(is_odd) {
        true => Err(refused(file, name, "its name leads out of the archive's folder")),
        false => Ok(()),
    }
}

/// Where a member's packed bytes lie.
fn data(file: &str, bytes: &FileBytes, entry: &Entry, end: usize) -> Result<Range<usize>, FormatError> {
    let disagree = || refused(file, &entry.name, "its header is not where the list of members says");
    let start = usize::try_from(entry.header).ok().filter(|&start| start <= end).ok_or_else(disagree)?;
    let header = &bytes[start..end];
    if header.len() < HEADER_BYTES || !header.starts_with(&HEADER) {
        return Err(disagree());
    }
    let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let (name, extra) = (length(26), length(28));
    if header.get(HEADER_BYTES..HEADER_BYTES + name) != Some(entry.name.as_bytes()) {
        return Err(disagree());
    }
    let first = start + HEADER_BYTES + name + extra;
    let last = usize::try_from(entry.packed).ok().and_then(|packed| first.checked_add(packed));
    match last.filter(|&last| last <= end) {
        Some(last) => Ok(first..last),
        None => Err(refused(file, &entry.name, "it is cut off")),
    }
}

#[cfg(test)]
pub(super) mod tests;
