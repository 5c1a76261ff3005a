//! The products of `few` on cards with products of warpgroups, in tiles that all have the same order of summation.

use super::few::Job;
use super::many;
use crate::cuda::{Blocks, Card, Module, card};
use crate::params::Orientation;

pub(crate) static MODULE: Module = Module::early(
    "hopper",
    concat!(
        include_str!("../../cuda/mma.cu"),
        include_str!("activations.cu"),
        include_str!("job.cu"),
        include_str!("../../cuda/marks.cu"),
        include_str!("wgmma.cu"),
        include_str!("hopper.cu"),
    ),
)
.only_for("sm_90a");

/// Whether the card has the instructions. A newer one does not: they are Hopper's alone.
pub(super) fn is_present() -> bool {
    card().is_ok_and(|card| card.capability() == (9, 0))
}

/// Computes a product of bf16 matrices whose widths are multiples of eight.
pub(super) fn multiply(job: Job, weight: Orientation) {
    let processors = card().map_or(1, Card::processors);
    let [rows, inputs, outputs] = [job.rows, job.inputs, job.outputs].map(|n| n as usize);
    if let Some(tile) = many::Tile::for_shape([rows, inputs, outputs], processors)
        && let Some(function) = tile.function(weight)
    {
        tile.multiply(function, job, weight, processors);
    } else {
        Tile::for_shape(rows, outputs, processors).multiply(job, weight);
    }
}

/// A kernel by what one block of it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tile {
    outputs: usize,
    rows: usize,
    /// How many pieces of 64 inputs have room.
    stages: usize,
    /// For `W` as it is, and turned.
    names: [&'static str; 2],
}

/// As in the kernels' source, from the smallest to the largest. A tile of 128 outputs and 256 rows, filled by copies as these, was
/// slower than those of 128 and 128, of which two fit a multiprocessor: one stores its sums while the other multiplies.
const TILES: [Tile; 6] = [
    Tile { outputs: 64, rows: 8, stages: 9, names: ["product_64x8", "product_64x8_turned"] },
    Tile { outputs: 64, rows: 16, stages: 9, names: ["product_64x16", "product_64x16_turned"] },
    Tile { outputs: 64, rows: 32, stages: 4, names: ["product_64x32", "product_64x32_turned"] },
    Tile { outputs: 64, rows: 64, stages: 4, names: ["product_64x64", "product_64x64_turned"] },
    Tile { outputs: 128, rows: 64, stages: 4, names: ["product_128x64", "product_128x64_turned"] },
    LARGEST,
];
const LARGEST: Tile =
    Tile { outputs: 128, rows: 128, stages: 3, names: ["product_128x128", "product_128x128_turned"] };

impl Tile {
    /// The smallest of which every block has a multiprocessor to itself. `rates_of_all_tiles` on an H200: together with those of
    /// `many` this is within 2 % of the fastest tile on average, and within 17 % always.
    fn for_shape(rows: usize, outputs: usize, processors: usize) -> Tile {
        let is_at_work = |tile: &Tile| {
            let [x, y, _] = tile.blocks(rows, outputs).grid;
            x * y <= processors
        };
        TILES.into_iter().find(is_at_work).unwrap_or(LARGEST)
    }

    fn multiply(&self, job: Job, weight: Orientation) {
        let name = match weight {
            Orientation::AsIs => self.names[0],
            Orientation::Transposed => self.names[1],
        };
        let function = MODULE.function_with_shared(name, self.shared());
        launch!(function, self.blocks(job.rows as usize, job.outputs as usize), job);
    }

    /// Warpgroups: each has 64 outputs.
    fn groups(&self) -> usize {
        self.outputs / 64
    }

    /// Bytes of shared memory: for each stage, 64 numbers of the outputs and of the rows.
    fn shared(&self) -> usize {
        self.stages * (self.outputs + self.rows) * 64 * 2
    }

    /// Rows come first: blocks that are under way together then share their part of `W`.
    fn blocks(&self, rows: usize, outputs: usize) -> Blocks {
        let grid = [rows.div_ceil(self.rows), outputs.div_ceil(self.outputs), 1];
        Blocks { grid, threads: self.groups() * 128, shared: self.shared() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Buffer, Pointer, upload};

    #[test]
    fn tiles_fit_the_card_and_grow_with_the_rows() {
        for tile in TILES {
            assert!(tile.shared() <= 227 << 10, "{tile:?}");
            // Where an operand begins must be a multiple of 1024 bytes.
            assert!(tile.shared().is_multiple_of(tile.stages << 10), "{tile:?}");
        }
        // What tests/card_decoding multiplies takes every tile.
        let chosen = |rows, outputs| Tile::for_shape(rows, outputs, 132);
        let shapes = [(1, 512), (200, 512), (450, 512), (1000, 512), (2000, 512), (5000, 304)];
        let found = shapes.map(|(rows, outputs)| chosen(rows, outputs));
        assert_eq!(found, TILES);
        let is_many = |&(rows, outputs): &_| many::Tile::for_shape([rows, 512, outputs], 132).is_some();
        assert!(!shapes.iter().any(is_many));
    }

    #[test]
    #[ignore = "prints how fast every tile is, on a card"]
    fn rates_of_all_tiles() {
        if !is_present() {
            return;
        }
        let processors = card().map_or(1, Card::processors);
        for (inputs, outputs, is_wide) in
            [(512, 512, 0), (2048, 512, 0), (512, 2048, 0), (512, 8000, 0), (512, 32_000, 1)]
        {
            for rows in [320, 640, 1000, 2000, 5000, 10_000] {
                let numbers = |count| -> Vec<half::bf16> {
                    let number = |i: usize| i.wrapping_mul(0x9E37_79B9) >> 7 & 0xff;
                    (0..count).map(|i| half::bf16::from_f32(number(i) as f32 / 128.0 - 1.0)).collect()
                };
                let (x, weight) = (upload(&numbers(rows * inputs)), upload(&numbers(inputs * outputs)));
                let (bias, y) = (upload(&vec![0.0_f32; outputs]), Buffer::new(rows * outputs * 4));
                // Scores are marked.
                let marks = (is_wide == 1).then(|| Buffer::new(rows * outputs.div_ceil(64) * 8));
                let job = Job {
                    x: x.pointer(),
                    weight: weight.pointer(),
                    bias: bias.pointer(),
                    y: y.pointer(),
                    marks: marks.as_ref().map_or(Pointer::NULL, Buffer::pointer),
                    rows: rows as u32,
                    inputs: inputs as u32,
                    outputs: outputs as u32,
                    activation: 1,
                    is_wide,
                    unused: 0,
                };
                for orientation in [Orientation::AsIs, Orientation::Transposed] {
                    let report = |name: &str, multiply: &dyn Fn()| {
                        const TIMES: usize = 50;
                        let seconds = [(); 4].map(|()| {
                            card().expect("is present").wait();
                            let start = std::time::Instant::now();
                            (0..TIMES).for_each(|_| multiply());
                            card().expect("is present").wait();
                            start.elapsed().as_secs_f64() / TIMES as f64
                        });
                        let best = seconds.into_iter().fold(f64::MAX, f64::min);
                        let rate = (2 * rows * inputs * outputs) as f64 / best / 1e12;
                        println!(
                            "{rows:6} x {inputs} to {outputs}: {name:24} {:8.1} us {rate:6.1} TFLOP/s",
                            best * 1e6
                        );
                    };
                    let number = usize::from(orientation == Orientation::Transposed);
                    for tile in TILES {
                        report(tile.names[number], &|| tile.multiply(job, orientation));
                    }
                    for tile in many::TILES {
                        let Some(function) = tile.function(orientation) else { continue };
                        report(tile.names[number], &|| tile.multiply(function, job, orientation, processors));
                    }
                }
            }
        }
    }
}
