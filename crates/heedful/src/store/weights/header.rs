//! The header of a safetensors file.
//!
//! The `safetensors` crate stores metadata in a hash map and writes it in the map's order, so that two files
//! of the same weights could differ. This writer is deterministic.

use std::collections::BTreeMap;

use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The metadata of a file: keys and values.
pub type Metadata = BTreeMap<String, String>;

/// The bytes before the tensor data: the length of the header, and the header with the tensors in the order
/// of the slice.
pub fn header(metadata: &Metadata, tensors: &[(String, TensorInfo)]) -> Vec<u8> {
    let json = serde_json::to_vec(&Header { metadata, tensors }).expect("a serializable header");
    // Padded, so that the data is aligned for readers that map the file: int8 GEMM weights to cache lines.
    let has_int8 = tensors.first().is_some_and(|(_, info)| info.dtype == Dtype::I8);
    let length =
        if has_int8 { (json.len() + 8).next_multiple_of(64) - 8 } else { json.len().next_multiple_of(8) };
    let mut bytes = (length as u64).to_le_bytes().to_vec();
    bytes.extend(json);
    bytes.resize(8 + length, b' ');
    bytes
}

struct Header<'a> {
    metadata: &'a Metadata,
    tensors: &'a [(String, TensorInfo)],
}

impl Serialize for Header<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.tensors.len()))?;
        map.serialize_entry("__metadata__", self.metadata)?;
        for (name, info) in self.tensors {
            map.serialize_entry(name, info)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use safetensors::SafeTensors;

    use super::*;

    #[test]
    fn headers_are_deterministic_and_readable_by_the_safetensors_crate() {
        let metadata = ["b", "a", "d", "c"].map(|key| (key.to_owned(), format!("\"{key}\"")));
        let info =
            |start| TensorInfo { dtype: Dtype::F32, shape: vec![2, 1], data_offsets: (start, start + 8) };
        let tensors = [("z".to_owned(), info(0)), ("y".to_owned(), info(8))];
        let bytes = header(&metadata.clone().into(), &tensors);
        for _ in 0..8 {
            assert_eq!(header(&metadata.clone().into_iter().rev().collect(), &tensors), bytes);
        }
        assert_eq!(bytes.len() % 8, 0);

        let whole = [&bytes[..], &[0; 16]].concat();
        let (_, header) = SafeTensors::read_metadata(&whole).expect("a header");
        let read: Metadata = header.metadata().clone().expect("metadata").into_iter().collect();
        assert_eq!(read, metadata.into());
        assert_eq!(header.offset_keys(), ["z", "y"]);
    }
}
