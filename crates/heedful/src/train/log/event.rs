//! TensorBoard's `Event` message, encoded by hand: the few fields that a training run needs.
//!
//! ```text
//! Event     1 wall_time double · 2 step int64 · 3 file_version string · 5 summary · 7 session_log
//! Summary   1 value*           Value     1 tag · 2 simple_value float · 8 tensor · 9 metadata
//! Metadata  1 plugin_data      Plugin    1 plugin_name
//! Tensor    1 dtype · 2 shape · 8 string_val*            Shape  2 dim*   Dim 1 size
//! Session   1 status (START = 1)
//! ```

use crate::metrics::Measure;

const STRINGS: u64 = 7;
const START: u64 = 1;

/// The first event of each file.
pub(super) fn version(wall_time: f64) -> Vec<u8> {
    Message::default().double(1, wall_time).bytes(3, b"brain.Event:2").finish()
}

/// A restart of the run: events of `step` and later in older files are void.
pub(super) fn restart(wall_time: f64, step: u64) -> Vec<u8> {
    let session = Message::default().integer(1, START).finish();
    event(wall_time, step).bytes(7, &session).finish()
}

/// Numbers of one step.
pub(super) fn scalars(wall_time: f64, step: u64, values: &[(Measure, f64)]) -> Vec<u8> {
    let mut summary = Message::default();
    for (tag, value) in values {
        let value = Message::default().bytes(1, tag.key().as_bytes()).float(2, *value as f32).finish();
        summary = summary.bytes(1, &value);
    }
    event(wall_time, step).bytes(5, &summary.finish()).finish()
}

/// A text, which TensorBoard reads as Markdown.
pub(super) fn text(wall_time: f64, step: u64, tag: &str, markdown: &str) -> Vec<u8> {
    let one = Message::default().integer(1, 1).finish();
    let shape = Message::default().bytes(2, &one).finish();
    let tensor =
        Message::default().integer(1, STRINGS).bytes(2, &shape).bytes(8, markdown.as_bytes()).finish();
    let plugin = Message::default().bytes(1, b"text").finish();
    let metadata = Message::default().bytes(1, &plugin).finish();
    let value = Message::default().bytes(1, tag.as_bytes()).bytes(8, &tensor).bytes(9, &metadata).finish();
    let summary = Message::default().bytes(1, &value).finish();
    event(wall_time, step).bytes(5, &summary).finish()
}

fn event(wall_time: f64, step: u64) -> Message {
    Message::default().double(1, wall_time).integer(2, step)
}

/// A protocol-buffers message under construction. Each field is a key (`number · 8 + wire type`) and a value.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    /// Seven bits per byte, the lowest first; the eighth bit is set if more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn integer(mut self, field: u64, value: u64) -> Message {
        self.key(field, 0);
        self.varint(value);
        self
    }

    fn double(mut self, field: u64, value: f64) -> Message {
        self.key(field, 1);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    fn float(mut self, field: u64, value: f32) -> Message {
        self.key(field, 5);
        self.bytes.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Message {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.bytes.extend(value);
        self
    }

    fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_event_byte_for_byte() {
        let event = scalars(0.5, 300, &[(Measure::Loss, 1.5)]);
        let expected = [
            &[0x09][..],
            &0.5_f64.to_le_bytes(),
            &[0x10, 0xAC, 0x02],
            &[0x2A, 13, 0x0A, 11, 0x0A, 4, b'l', b'o', b's', b's', 0x15, 0x00, 0x00, 0xC0, 0x3F],
        ]
        .concat();
        assert_eq!(event, expected);
    }

    #[test]
    fn a_restart_byte_for_byte() {
        let expected = [&[0x09][..], &2.0_f64.to_le_bytes(), &[0x10, 7, 0x3A, 2, 0x08, 1]].concat();
        assert_eq!(restart(2.0, 7), expected);
    }
}
