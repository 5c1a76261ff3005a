//! Layers whose blocks hand states to each other within clusters: as many units as 16 blocks have, on cards that have clusters.

use super::{Argument, Kind, ROWS, Rows, Way};
use crate::cuda::{Blocks, Card, Function, Module, card, clusters_at_once, roomy};
use crate::ops::recurrent::Cell;
use crate::{Array, Device, Ragged};

pub(crate) static CLUSTERED: Module = Module::new(
    "recurrent_clustered",
    concat!(
        include_str!("../../../cuda/mma.cu"),
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("../../../cuda/rnn/layer.cu"),
        include_str!("../../../cuda/rnn/unit.cu"),
        include_str!("../../../cuda/rnn/held.cu"),
        include_str!("../../../cuda/cluster.cu"),
        include_str!("clustered.cu"),
    ),
);

/// Blocks that a cluster can have at most.
const MOST: usize = 16;

/// What follows from a layer's width, as in `clustered.cu`.
#[derive(Clone, Copy)]
struct Form {
    /// The width is at most 32 times this.
    size: usize,
    /// Of a block.
    units: usize,
    threads: usize,
    /// Of a sum, as many as warps of the kernel through memory have one.
    parts: usize,
}

impl Form {
    const SMALL: Form = Form { size: 4, units: 16, threads: 128, parts: 4 };
    const MIDDLE: Form = Form { size: 8, units: 16, threads: 128, parts: 8 };
    const WIDE: Form = Form { size: 16, units: 32, threads: 256, parts: 8 };

    fn of(d: usize) -> Form {
        match d {
            0..=128 => Form::SMALL,
            129..=256 => Form::MIDDLE,
            _ => Form::WIDE,
        }
    }

    /// Bytes of shared memory that a block needs.
    fn shared(self, cell: Cell, way: Way) -> usize {
        match way {
            Way::Forward => 2 * self.size * 1024 + 16,
            Way::Backward => {
                2 * self.size * cell.gates() * 1024 + 128 + 2 * self.parts * ROWS * self.units * 4
            }
        }
    }

    fn name(self, cell: Cell, way: Way) -> &'static str {
        let [small, middle, wide] = match (cell, way) {
            (Cell::Simple, Way::Forward) => {
                ["simple_clustered_forward_4", "simple_clustered_forward_8", "simple_clustered_forward_16"]
            }
            (Cell::Simple, Way::Backward) => {
                ["simple_clustered_backward_4", "simple_clustered_backward_8", "simple_clustered_backward_16"]
            }
            (Cell::Gru, Way::Forward) => {
                ["gru_clustered_forward_4", "gru_clustered_forward_8", "gru_clustered_forward_16"]
            }
            (Cell::Gru, Way::Backward) => {
                ["gru_clustered_backward_4", "gru_clustered_backward_8", "gru_clustered_backward_16"]
            }
            (Cell::Lstm, Way::Forward) => {
                ["lstm_clustered_forward_4", "lstm_clustered_forward_8", "lstm_clustered_forward_16"]
            }
            (Cell::Lstm, Way::Backward) => {
                ["lstm_clustered_backward_4", "lstm_clustered_backward_8", "lstm_clustered_backward_16"]
            }
        };
        match self.size {
            4 => small,
            8 => middle,
            _ => wide,
        }
    }
}

/// How layers of one kind are done in clusters: one for every 16 rows of a layer.
pub(super) struct Clusters {
    function: Function,
    threads: usize,
    /// Bytes of shared memory that a block has.
    shared: usize,
    /// Blocks of a cluster.
    slices: usize,
    d: usize,
}

impl Kind {
    /// None where blocks hand states over through memory.
    pub(super) fn clusters(self, way: Way) -> Option<Clusters> {
        let (_, units) = self.fast()?;
        let form = Form::of(self.d);
        let slices = self.d.div_ceil(form.units);
        // Blocks alone cannot give to each other.
        if !(2..=MOST).contains(&slices) {
            return None;
        }
        let (threads, shared) = (form.threads, form.shared(self.cell, way));
        let function = CLUSTERED.function_in_clusters(form.name(self.cell, way), slices, threads, shared)?;
        // Clusters for which there is no room follow when others are done, as through memory a group of blocks takes its rows
        // 16 at a time. Those that follow have the shortest rows. So clusters are worth it where there is room for as many as
        // there would be groups, which need not have neighbouring multiprocessors.
        let groups = card().map_or(1, Card::processors) / self.d.div_ceil(units);
        let is_worth_it = clusters_at_once(function, threads, shared) >= groups;
        is_worth_it.then_some(Clusters { function, threads, shared, slices, d: self.d })
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
        let blocks =
            Blocks { grid: [clusters * self.slices, 1, 1], threads: self.threads, shared: self.shared };
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
