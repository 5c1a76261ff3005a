//! Launching kernels.

use super::operand::Pointer;
use super::{Buffer, upload};
use crate::random::Dropout;

/// The launch configuration of a kernel: grid, block size, dynamic shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blocks {
    pub(crate) grid: [usize; 3],
    pub(crate) threads: usize,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
}

impl Blocks {
    /// One thread for each of `n` elements.
    pub(crate) fn for_each(n: usize) -> Blocks {
        Blocks::of(n.div_ceil(256), 256)
    }

    pub(crate) fn of(blocks: usize, threads: usize) -> Blocks {
        Blocks { grid: [blocks, 1, 1], threads, shared: 0 }
    }
}

/// The dropout argument of kernels. It is in device memory because its key changes with every step.
pub(crate) struct DropoutArgument(Option<Buffer>);

impl DropoutArgument {
    pub(crate) fn of(dropout: Dropout) -> DropoutArgument {
        DropoutArgument((!dropout.is_none()).then(|| upload(&words(dropout))))
    }

    /// As [`DropoutArgument::of`] for kernels that always read it.
    pub(crate) fn always(dropout: Dropout) -> DropoutArgument {
        DropoutArgument(Some(upload(&words(dropout))))
    }

    /// Null without dropout.
    pub(crate) fn pointer(&self) -> Pointer {
        self.0.as_ref().map_or(Pointer::NULL, Buffer::pointer)
    }
}

/// The layout of `Dropout` in `prelude.cu`.
fn words(dropout: Dropout) -> [u32; 4] {
    let [low, high] = dropout.key();
    [low, high, dropout.threshold(), dropout.scale().to_bits()]
}

/// Rounds a number of blocks or bytes up to a bucket, by at most an eighth, so that steps of similar size are
/// replays of one graph. A kernel reads the actual number from device memory.
pub(crate) fn round_up_to_bucket(n: usize) -> usize {
    let step = (n.next_power_of_two() / 16).max(8);
    n.next_multiple_of(step)
}

/// Launches a kernel: `launch!(MODULE.function("name"), blocks, argument, …)`. The arguments must match the
/// kernel's declaration in order and size.
macro_rules! launch {
    ($function:expr, $blocks:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::launch($function, $blocks, &[$(bytemuck::bytes_of(&$argument)),+])
    };
}
