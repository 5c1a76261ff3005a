//! Recomputes checksums after a mutation: otherwise hardly any input would pass the checksum test. The
//! checksum test itself is fuzzed with inputs that are not sealed.

use serde_json::Value;
use twox_hash::XxHash3_64;

const BEFORE_DIGITS: &[u8] = br#"{"__metadata__":{"checksum":""#;

/// Corrects the length field of a safetensors header that is still JSON but has changed its length.
fn with_header_length(bytes: &[u8]) -> Vec<u8> {
    let mut corrected = bytes.to_vec();
    let Some((length, rest)) = corrected.split_first_chunk_mut::<8>() else { return corrected };
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<serde::de::IgnoredAny>();
    if let Some(Ok(_)) = values.next() {
        let json = values.byte_offset();
        let padding = rest[json..].iter().take_while(|byte| **byte == b' ').count();
        *length = ((json + padding) as u64).to_le_bytes();
    }
    corrected
}

/// Recomputes the checksum at the end of a checkpoint.
pub(super) fn checkpoint(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = with_header_length(bytes);
    if let Some((rest, end)) = sealed.split_last_chunk_mut::<8>() {
        *end = XxHash3_64::oneshot(rest).to_le_bytes();
    }
    sealed
}

/// Recomputes the checksum in the metadata of a model's weights.
pub(super) fn weights(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = with_header_length(bytes);
    let start = 8 + BEFORE_DIGITS.len();
    if sealed.len() >= start + 16 && sealed[8..].starts_with(BEFORE_DIGITS) {
        sealed[start..start + 16].copy_from_slice(b"0000000000000000");
        let digits = format!("{:016x}", XxHash3_64::oneshot(&sealed));
        sealed[start..start + 16].copy_from_slice(digits.as_bytes());
    }
    sealed
}

/// A model's weights whose metadata has the checksum of another file of the model with these bytes.
pub(super) fn weights_with(model: &[u8], name: &str, bytes: &[u8]) -> Vec<u8> {
    let length = u64::from_le_bytes(model[..8].try_into().expect("eight bytes")) as usize;
    let mut header: Value = serde_json::from_slice(&model[8..8 + length]).expect("our own header");
    header["__metadata__"][name] =
        format!("{} bytes, xxh3 {:016x}", bytes.len(), XxHash3_64::oneshot(bytes)).into();
    let json = header.to_string();
    let padded = json.len().next_multiple_of(8);
    let mut changed = (padded as u64).to_le_bytes().to_vec();
    changed.extend(json.as_bytes());
    changed.resize(8 + padded, b' ');
    changed.extend(&model[8 + length..]);
    weights(&changed)
}

/// Recomputes the checksums of a file of token ids: of its blocks, if its footer is JSON that lists them, and
/// of the footer.
pub(super) fn token_ids(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    let Some(tail) = sealed.len().checked_sub(24) else { return sealed };
    let begin = br#"{"fingerprint""#;
    let Some(start) = sealed[..tail].windows(begin.len()).rposition(|found| found == begin) else {
        return sealed;
    };
    let mut footer = sealed[start..tail].to_vec();
    if let Ok(mut value) = serde_json::from_slice::<Value>(&footer) {
        for block in value.get_mut("blocks").and_then(Value::as_array_mut).into_iter().flatten() {
            let number = |name: &str| block.get(name).and_then(Value::as_u64).map(|number| number as usize);
            let range = number("offset").zip(number("bytes"));
            let range = range.and_then(|(start, length)| Some(start..start.checked_add(length)?));
            if let Some(content) = range.and_then(|range| sealed.get(range)) {
                block["checksum"] = XxHash3_64::oneshot(content).into();
            }
        }
        footer = value.to_string().into_bytes();
    }
    let magic = sealed[tail + 16..].to_vec();
    sealed.truncate(start);
    sealed.extend(&footer);
    sealed.extend((footer.len() as u64).to_le_bytes());
    sealed.extend(XxHash3_64::oneshot(&footer).to_le_bytes());
    sealed.extend(magic);
    sealed
}

/// Recomputes the checksums of the first two headers of an .xz file: of the stream, and of its first block.
pub(super) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    let mut seal = |content: std::ops::Range<usize>| {
        let mut sum = flate2::Crc::new();
        let Some(found) = sealed.get(content.clone()) else { return };
        sum.update(found);
        if let Some(checksum) = sealed.get_mut(content.end..content.end + 4) {
            checksum.copy_from_slice(&sum.sum().to_le_bytes());
        }
    };
    seal(6..8);
    if let Some(&size) = bytes.get(12) {
        seal(12..12 + 4 * usize::from(size));
    }
    sealed
}
