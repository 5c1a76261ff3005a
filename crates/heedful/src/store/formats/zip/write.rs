//! A deterministic writer of zip archives, without users and times: the same files give the same archive.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::{DEFLATED, END, ENTRY, HEADER, MAX_RATIO, STORED};

/// 1 January 1980, the epoch of the format.
const DATE: [u8; 4] = [0, 0, 0x21, 0];
/// Version 2.0 of the format; made on Unix, with the permissions of a regular file that everybody may read.
const VERSION: u8 = 20;
const UNIX: u8 = 3;
const PERMISSIONS: u32 = 0o100_644;

/// The contents exceed the limits of zip without zip64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an archive holds at most 4 GiB")]
pub(crate) struct TooLarge;

/// A compressed archive of these members, in this order.
pub(crate) fn archive(members: &[(&str, &[u8])]) -> Result<Vec<u8>, TooLarge> {
    written(members, |content| {
        let packed = deflated(content);
        // The reader would reject a higher ratio as a zip bomb.
        let is_plausible = content.len() as u64 / MAX_RATIO < packed.len() as u64;
        if is_plausible { (DEFLATED, packed) } else { (STORED, content.to_vec()) }
    })
}

/// As [`archive`]; `pack` returns the method and the compressed bytes of a content.
pub(in crate::store::formats) fn written(
    members: &[(&str, &[u8])],
    pack: impl Fn(&[u8]) -> (u16, Vec<u8>),
) -> Result<Vec<u8>, TooLarge> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut checksum = Crc::new();
        checksum.update(content);
        let (method, packed) = pack(content);
        let fields = [checksum.sum(), to_u32(packed.len())?, to_u32(content.len())?].map(u32::to_le_bytes);
        let middle = [&[VERSION, 0, 0, 0, method as u8, 0], &DATE[..], fields.as_flattened()].concat();
        let name_length = u16::try_from(name.len()).map_err(|_| TooLarge)?.to_le_bytes();
        let header = to_u32(out.len())?.to_le_bytes();
        let attributes = (PERMISSIONS << 16).to_le_bytes();
        directory.extend(
            [
                &ENTRY[..],
                &[VERSION, UNIX],
                &middle,
                &name_length,
                &[0; 8],
                &attributes,
                &header,
                name.as_bytes(),
            ]
            .concat(),
        );
        out.extend([&HEADER[..], &middle, &name_length, &[0; 2], name.as_bytes(), &packed].concat());
    }
    let count = u16::try_from(members.len()).map_err(|_| TooLarge)?.to_le_bytes();
    let position = [to_u32(directory.len())?, to_u32(out.len())?].map(u32::to_le_bytes);
    out.extend([&directory, &END[..], &[0; 4], &count, &count, position.as_flattened(), &[0; 2]].concat());
    Ok(out)
}

fn to_u32(bytes: usize) -> Result<u32, TooLarge> {
    // The maximum value is reserved: it indicates a zip64 field.
    u32::try_from(bytes).ok().filter(|&bytes| bytes < u32::MAX).ok_or(TooLarge)
}

pub(in crate::store::formats) fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect("writing to memory")
}
