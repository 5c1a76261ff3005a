//! A minimal Protocol Buffers reader for SentencePiece models: fields by number, each a number or bytes.
//!
//! ```text
//! varint (number << 3 | kind) · kind 0: varint · 1: 8 bytes · 2: varint length, bytes · 5: 4 bytes
//! ```

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    Number(u64),
    Float(f32),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order; an error is the byte offset of a malformed field.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, at: 0 }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Float(f32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((key >> 3, field))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), usize>;

    fn next(&mut self) -> Option<Result<(u64, Field<'a>), usize>> {
        if self.at == self.bytes.len() {
            return None;
        }
        let start = self.at;
        let field = self.field();
        if field.is_none() {
            // The rest cannot be parsed after an error.
            self.at = self.bytes.len();
        }
        Some(field.ok_or(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind_are_read() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1D, 0, 0, 0x80, 0x3F, 0x21, 1, 0, 0, 0, 0, 0, 0, 0];
        let fields: Result<Vec<_>, usize> = Fields::of(&bytes).collect();
        let expected = vec![
            (1, Field::Number(150)),
            (2, Field::Bytes(b"hi")),
            (3, Field::Float(1.0)),
            (4, Field::Number(1)),
        ];
        assert_eq!(fields, Ok(expected));
        let ends = [0, 3, 7, 12, 21];
        for end in 0..bytes.len() {
            let read: Result<Vec<_>, usize> = Fields::of(&bytes[..end]).collect();
            assert_eq!(read.is_ok(), ends.contains(&end), "{end}");
        }
        for bad in [&[0xFF; 11][..], &[0x0B], &[0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]] {
            assert!(Fields::of(bad).any(|field| field.is_err()), "{bad:?}");
        }
    }
}
