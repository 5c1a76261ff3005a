//! Layers whose blocks hand states to each other within clusters: as many units as 16 blocks have, on cards that have clusters.

use super::{Argument, Kind, ROWS, Rows, Way};
use crate::cuda::{Blocks, Function, Module, roomy};
use crate::ops::recurrent::Cell;
use crate::{Array, Device, Ragged};

pub(crate) static CLUSTERED: Module = Module::new(
    "recurrent_clustered",
    concat!(
        include_str!("../../attention/cuda/mma.cu"),
        include_str!("cell.cu"),
        include_str!("exchange.cu"),
        include_str!("layer.cu"),
        include_str!("unit.cu"),
        include_str!("held.cu"),
        include_str!("cluster.cu"),
        include_str!("clustered.cu"),
    ),
);

/// As in `clustered.cu`.
const UNITS: usize = 16;
const THREADS: usize = 128;
/// Blocks that a cluster can have at most.
const MOST: usize = 16;

/// How layers of one kind are done in clusters: one for every 16 rows of a layer.
pub(super) struct Clusters {
    function: Function,
    /// Bytes of shared memory that a block has.
    shared: usize,
    /// Blocks of a cluster.
    slices: usize,
    d: usize,
}

impl Kind {
    /// None where blocks hand states over through memory.
    pub(super) fn clusters(self, way: Way) -> Option<Clusters> {
        self.fast()?;
        let slices = self.d.div_ceil(UNITS);
        // Blocks alone cannot give to each other.
        if !(2..=MOST).contains(&slices) {
            return None;
        }
        // In times 32 units, as in `clustered.cu`.
        let parts = if self.d <= 128 { 4 } else { 8 };
        let shared = match way {
            Way::Forward => 2 * parts * 1024 + 16,
            Way::Backward => 2 * parts * self.cell.gates() * 1024 + 128 + 2 * parts * ROWS * UNITS * 4,
        };
        let name = name(self.cell, way, parts);
        let function = CLUSTERED.function_in_clusters(name, slices, THREADS, shared)?;
        Some(Clusters { function, shared, slices, d: self.d })
    }

    /// tokens × width: room for what blocks hand over. Where that goes through memory, it begins as zeros.
    pub(super) fn handed(self, way: Way, tokens: usize, width: usize) -> Array {
        match self.clusters(way) {
            Some(_) => Array::scratch_on(Device::Cuda, self.dtype, tokens, width),
            None => Array::zeros_on(Device::Cuda, self.dtype, tokens, width),
        }
    }
}

impl Clusters {
    /// All steps of one layer or two.
    pub(super) fn launch(&self, layers: &[Argument], sequences: &Ragged) {
        let (Some(first), Some(last)) = (layers.first(), layers.last()) else { return };
        let rows = Rows::of(sequences);
        let clusters = layers.len() * room_for(sequences.sequences().div_ceil(ROWS));
        let blocks = Blocks { grid: [clusters * self.slices, 1, 1], threads: THREADS, shared: self.shared };
        let sizes = [self.d, layers.len(), self.slices].map(|size| size as u32);
        launch!(
            self.function,
            blocks,
            *first,
            *last,
            rows.list(),
            rows.count(),
            sizes[0],
            sizes[1],
            sizes[2]
        );
    }
}

/// Groups of rows that a launch is for. Clusters without rows end at once; they come last.
fn room_for(groups: usize) -> usize {
    if groups < 8 { groups } else { roomy(groups) }
}

fn name(cell: Cell, way: Way, parts: usize) -> &'static str {
    let [small, large] = match (cell, way) {
        (Cell::Simple, Way::Forward) => ["simple_clustered_forward_4", "simple_clustered_forward_8"],
        (Cell::Simple, Way::Backward) => ["simple_clustered_backward_4", "simple_clustered_backward_8"],
        (Cell::Gru, Way::Forward) => ["gru_clustered_forward_4", "gru_clustered_forward_8"],
        (Cell::Gru, Way::Backward) => ["gru_clustered_backward_4", "gru_clustered_backward_8"],
        (Cell::Lstm, Way::Forward) => ["lstm_clustered_forward_4", "lstm_clustered_forward_8"],
        (Cell::Lstm, Way::Backward) => ["lstm_clustered_backward_4", "lstm_clustered_backward_8"],
    };
    if parts == 4 { small } else { large }
}
