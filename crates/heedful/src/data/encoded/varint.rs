//! LEB128: seven bits of a number in each byte, the lowest first. Most ids take one or two bytes.

pub(super) fn write(mut number: u32, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number from the front of `bytes`; `None` if they end too early or encode more than 32 bits.
pub(super) fn read(bytes: &mut &[u8]) -> Option<u32> {
    let mut number: u32 = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u32::from(byte & 0x7F);
        number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_size_round_trip() {
        let numbers = [0, 1, 127, 128, 16_383, 16_384, 1 << 21, 1 << 28, u32::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| write(number, &mut bytes));
        let mut rest = bytes.as_slice();
        for number in numbers {
            assert_eq!(read(&mut rest), Some(number));
        }
        assert_eq!(read(&mut rest), None);
    }

    #[test]
    fn more_than_32_bits_are_an_error() {
        assert_eq!(read(&mut [0xFF, 0xFF, 0xFF, 0xFF, 0x1F].as_slice()), None);
        assert_eq!(read(&mut [0x80; 9].as_slice()), None);
    }
}
