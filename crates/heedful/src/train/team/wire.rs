//! Binary encoding of the messages between ranks. All ranks have the same byte order.

/// Writes values one after the other.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn byte(mut self, byte: u8) -> Writer {
        self.0.push(byte);
        self
    }

    pub(super) fn u64(mut self, number: u64) -> Writer {
        self.0.extend(number.to_ne_bytes());
        self
    }

    pub(super) fn f64(self, number: f64) -> Writer {
        self.u64(number.to_bits())
    }

    pub(super) fn f32s(mut self, numbers: &[f32]) -> Writer {
        self = self.u64(numbers.len() as u64);
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        self
    }

    pub(super) fn u32s(mut self, numbers: &[u32]) -> Writer {
        self = self.u64(numbers.len() as u64);
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        self
    }

    pub(super) fn text(mut self, text: &str) -> Writer {
        self = self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
        self
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads them in the same order.
///
/// # Panics
/// Every function, if the bytes were not written by a [`Writer`]: both sides run the same program.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        self.0.split_off(..length).expect("a message of the same program")
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(*self.take(8).first_chunk().expect("eight bytes"))
    }

    pub(super) fn f64(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }

    fn words(&mut self) -> impl Iterator<Item = [u8; 4]> + use<'a> {
        let length = self.u64() as usize;
        self.take(4 * length).as_chunks().0.iter().copied()
    }

    pub(super) fn f32s(&mut self) -> Vec<f32> {
        self.words().map(f32::from_ne_bytes).collect()
    }

    pub(super) fn u32s(&mut self) -> Vec<u32> {
        self.words().map(u32::from_ne_bytes).collect()
    }

    pub(super) fn text(&mut self) -> String {
        let length = self.u64() as usize;
        String::from_utf8(self.take(length).to_vec()).expect("text of the same program")
    }
}
