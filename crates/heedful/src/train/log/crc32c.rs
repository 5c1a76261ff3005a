//! CRC-32C (Castagnoli), as the TFRecord format requires it.

const POLYNOMIAL: u32 = 0x82F6_3B78;
const TABLE: [u32; 256] = table();

/// The checksum, rotated and offset: the CRC of data that contains its own CRC would be weak otherwise.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

fn crc32c(bytes: &[u8]) -> u32 {
    let rest = |crc: u32, &byte: &u8| (crc >> 8) ^ TABLE[((crc ^ u32::from(byte)) & 0xFF) as usize];
    !bytes.iter().fold(u32::MAX, rest)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[byte] = rest;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long division by the polynomial in its usual bit order, bit by bit.
    fn by_division(bytes: &[u8]) -> u32 {
        let mut rest = u32::MAX;
        for byte in bytes {
            rest ^= u32::from(byte.reverse_bits()) << 24;
            for _ in 0..8 {
                let carry = rest >> 31 == 1;
                rest <<= 1;
                if carry {
                    rest ^= 0x1EDC_6F41;
                }
            }
        }
        (!rest).reverse_bits()
    }

    #[test]
    fn the_published_vectors() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn the_table_agrees_with_long_division() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| ((i * i) >> 3) as u8).collect();
        for length in [1, 2, 7, 8, 64, 999] {
            assert_eq!(crc32c(&bytes[..length]), by_division(&bytes[..length]));
        }
    }
}
