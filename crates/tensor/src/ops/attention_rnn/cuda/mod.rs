//! Recurrent decoders with attention on the GPU, and attention alone. All steps of a decoder are one launch,
//! as in a recurrent layer (`recurrent::cuda`); the gradients of keys and values are summed after the last
//! step, by all multiprocessors. The weights of all steps are saved.

mod attend;
mod decoder;

use bytemuck::{NoUninit, Zeroable};

use super::{Estimator, Selection};
use crate::cuda::{Buffer, Gpu, Module, Pointer, gpu, round_up_to_bucket, upload, upload_bucketed};
use crate::ops::{AttentionScore, Mask};
use crate::{Array, DType, Device, Param, Ragged};

pub(super) use attend::{attend_rows, attend_tokens, attend_tokens_backward};
pub(super) use decoder::{backward, forward};

pub(crate) static ATTEND: Module = Module::new(
    "attend",
    concat!(
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("attend.cu"),
        include_str!("tokens.cu"),
    ),
);

pub(crate) static GENERIC: Module = Module::new(
    "decoder_generic",
    concat!(
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("../../../cuda/rnn/layer.cu"),
        include_str!("../../../cuda/rnn/unit.cu"),
        include_str!("../../../cuda/rnn/tile.cu"),
        include_str!("attend.cu"),
        include_str!("decoder.cu"),
        include_str!("generic.cu"),
    ),
);

pub(crate) static FAST: Module = Module::new(
    "decoder_fast",
    concat!(
        include_str!("../../../cuda/mma.cu"),
        include_str!("../../../cuda/rnn/cell.cu"),
        include_str!("../../../cuda/rnn/exchange.cu"),
        include_str!("../../../cuda/rnn/layer.cu"),
        include_str!("../../../cuda/rnn/unit.cu"),
        include_str!("../../../cuda/rnn/held.cu"),
        include_str!("attend.cu"),
        include_str!("decoder.cu"),
        include_str!("teams.cu"),
        include_str!("fast.cu"),
    ),
);

/// As in `attend.cu`.
#[derive(Clone, Copy, NoUninit, Zeroable)]
#[repr(C)]
struct Argument {
    keys: Pointer,
    values: Pointer,
    sources: Pointer,
    starts: Pointer,
    mask: Pointer,
    score_weight: Pointer,
    queries: Pointer,
    contexts: Pointer,
    narrow: Pointer,
    weights: Pointer,
    scores: Pointer,
    choices: Pointer,
    taken: Pointer,
    key: Pointer,
    d_contexts: Pointer,
    d_choices: Pointer,
    de: Pointer,
    dq: Pointer,
    key_width: u32,
    value_width: u32,
    longest: u32,
    selection: u32,
    scale: f32,
    soft_share: f32,
    is_straight: u32,
    is_dq_wide: u32,
}

/// The score, the selection and the sizes of the attention.
#[derive(Clone, Copy)]
struct AttentionSettings<'a> {
    score: AttentionScore,
    score_weight: Option<&'a Param>,
    selection: Selection,
    /// The widths of keys and values.
    widths: [usize; 2],
    /// The longest source.
    longest: usize,
}

impl AttentionSettings<'_> {
    /// The kernel argument with only the score weight's pointer set, and the random key, which must outlive
    /// the launch.
    fn argument(&self) -> (Argument, Buffer) {
        let (selection, soft_share, key, is_straight) = match self.selection {
            Selection::Soft => (0, 0.0, [0, 0], false),
            Selection::Best => (1, 0.0, [0, 0], false),
            Selection::Sampled { stream, soft_share, estimator } => {
                (2, soft_share, stream.key(), estimator == Estimator::StraightThrough)
            }
        };
        let key = upload(&key);
        let argument = Argument {
            score_weight: self
                .score_weight
                .map_or(Pointer::NULL, |weight| weight.operand(DType::F32).pointer),
            key: key.pointer(),
            key_width: self.widths[0] as u32,
            value_width: self.widths[1] as u32,
            longest: self.padded_longest() as u32,
            selection,
            scale: self.score.scale(self.widths[0]),
            soft_share,
            is_straight: u32::from(is_straight),
            ..Argument::zeroed()
        };
        (argument, key)
    }

    /// The source length that buffers are sized for.
    fn padded_longest(&self) -> usize {
        self.longest.next_power_of_two().max(64)
    }

    /// Bytes of shared memory for one query, forward and backward.
    fn shared(&self) -> [usize; 2] {
        let [key_width, value_width] = self.widths;
        [
            4 * (key_width + 2 * self.padded_longest()),
            4 * (value_width + key_width + 2 * self.padded_longest()),
        ]
    }
}

/// Panics if a source does not fit into shared memory: from tens of thousands of tokens on.
fn check_shared(shared: usize, longest: usize) {
    assert!(
        shared <= most_shared(),
        "attention_rnn: a source of {longest} tokens is too long for this GPU: use --device cpu"
    );
}

/// The largest shared memory of a block, in bytes.
fn most_shared() -> usize {
    match gpu().map(Gpu::capability) {
        Ok((8, 0 | 7)) => 163 << 10,
        Ok((8, _)) => 99 << 10,
        _ => 227 << 10,
    }
}

/// Sequences and masks in GPU memory.
struct BatchBuffers {
    sources: Buffer,
    starts: Buffer,
    mask: Option<Buffer>,
    /// Pairs of target and source tokens, rounded up to a bucket.
    pairs: usize,
}

impl BatchBuffers {
    fn new(targets: &Ragged, sources: &Ragged, mask: &Mask) -> BatchBuffers {
        let starts: Vec<u64> =
            super::weight_starts(targets, sources).iter().map(|&start| start as u64).collect();
        BatchBuffers {
            sources: sources.on_gpu(),
            pairs: round_up_to_bucket(starts.last().map_or(0, |&end| end as usize)),
            starts: upload_bucketed(&starts),
            mask: mask.has_booleans().then(|| upload_bucketed(&mask.booleans(targets, sources).0)),
        }
    }

    fn fill(&self, argument: &mut Argument) {
        argument.sources = self.sources.pointer();
        argument.starts = self.starts.pointer();
        argument.mask = self.mask.as_ref().map_or(Pointer::NULL, Buffer::pointer);
    }

    /// A value for each pair, uninitialized.
    fn array(&self) -> Array {
        Array::scratch_on(Device::Cuda, DType::F32, 1, self.pairs)
    }

    /// The same with zeros.
    fn zeros(&self) -> Array {
        Array::zeros_on(Device::Cuda, DType::F32, 1, self.pairs)
    }
}

fn zeros(dtype: DType, rows: usize, width: usize) -> Array {
    Array::zeros_on(Device::Cuda, dtype, rows, width)
}

fn scratch(dtype: DType, rows: usize, width: usize) -> Array {
    Array::scratch_on(Device::Cuda, dtype, rows, width)
}

fn pointer(array: Option<&Array>) -> Pointer {
    array.map_or(Pointer::NULL, Array::pointer)
}

/// The selected positions, on the host.
fn to_positions(taken: &Array) -> Vec<Option<usize>> {
    taken.to_vec().into_iter().map(|position| (position >= 0.0).then_some(position as usize)).collect()
}
