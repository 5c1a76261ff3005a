//! Zip archives, written without names, times and order of a machine: the same files are the same archive.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::{DEFLATED, END, ENTRY, HEADER, STORED};

/// 1 January 1980, with which the format's time begins.
const DATE: [u8; 4] = [0, 0, 0x21, 0];
/// Version 2.0 of the format; made on Unix.
const VERSION: u8 = 20;
const UNIX: u8 = 3;

/// More bytes than the plain format can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an archive holds at most 4 GiB")]
pub(crate) struct TooLarge;

/// An archive of these members, in their order, compressed.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Result<Vec<u8>, TooLarge> {
    written(members, DEFLATED)
}

/// As [`archive`], compressed or not.
pub(in crate::store::formats) fn written(
    members: &[(&str, &[u8])],
    method: u16,
) -> Result<Vec<u8>, TooLarge> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut checksum = Crc::new();
        checksum.update(content);
        let packed = if method == STORED { content.to_vec() } else { deflated(content) };
        let fields = [checksum.sum(), counted(packed.len())?, counted(content.len())?].map(u32::to_le_bytes);
        let middle = [&[VERSION, 0, 0, 0, method as u8, 0], &DATE[..], fields.as_flattened()].concat();
        let name_length = u16::try_from(name.len()).map_err(|_| TooLarge)?.to_le_bytes();
        let header = counted(out.len())?.to_le_bytes();
        directory.extend(
            [&ENTRY[..], &[VERSION, UNIX], &middle, &name_length, &[0; 12], &header, name.as_bytes()]
                .concat(),
        );
        out.extend([&HEADER[..], &middle, &name_length, &[0; 2], name.as_bytes(), &packed].concat());
    }
    let count = u16::try_from(members.len()).map_err(|_| TooLarge)?.to_le_bytes();
    let place = [counted(directory.len())?, counted(out.len())?].map(u32::to_le_bytes);
    out.extend([&directory, &END[..], &[0; 4], &count, &count, place.as_flattened(), &[0; 2]].concat());
    Ok(out)
}

fn counted(bytes: usize) -> Result<u32, TooLarge> {
    u32::try_from(bytes).map_err(|_| TooLarge)
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect("writing to memory")
}
