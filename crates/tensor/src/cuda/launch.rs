//! Launching kernels.

use super::operand::Pointer;
use super::{Buffer, upload};
use crate::random::Dropout;

/// How many blocks a kernel runs with, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blocks {
    pub(crate) grid: [usize; 3],
    pub(crate) threads: usize,
    /// Bytes of shared memory beyond what the kernel declares.
    pub(crate) shared: usize,
}

impl Blocks {
    /// Enough blocks for one thread for each of `n` elements.
    pub(crate) fn for_each(n: usize) -> Blocks {
        Blocks::of(n.div_ceil(256), 256)
    }

    pub(crate) fn of(blocks: usize, threads: usize) -> Blocks {
        Blocks { grid: [blocks, 1, 1], threads, shared: 0 }
    }
}

/// Dropout as kernels take it: in the GPU's memory, because the key is another one at every step.
pub(crate) struct DropoutArgument(Option<Buffer>);

impl DropoutArgument {
    pub(crate) fn of(dropout: Dropout) -> DropoutArgument {
        DropoutArgument((!dropout.is_none()).then(|| upload(&words(dropout))))
    }

    /// As [`DropoutArgument::of`] for kernels that always read it.
    pub(crate) fn always(dropout: Dropout) -> DropoutArgument {
        DropoutArgument(Some(upload(&words(dropout))))
    }

    /// No address where nothing is dropped.
    pub(crate) fn pointer(&self) -> Pointer {
        self.0.as_ref().map_or(Pointer::NULL, Buffer::pointer)
    }
}

/// As in `prelude.cu`.
fn words(dropout: Dropout) -> [u32; 4] {
    let [low, high] = dropout.key();
    [low, high, dropout.threshold(), dropout.scale().to_bits()]
}

/// A number of blocks or bytes that many steps have room in: rounded up by an eighth at most. Steps of almost the same
/// size are then replays of one; a kernel reads in the GPU's memory how many of its blocks have something to do.
pub(crate) fn roomy(n: usize) -> usize {
    let step = (n.next_power_of_two() / 16).max(8);
    n.next_multiple_of(step)
}

/// Launches a kernel in the GPU's stream: `launch!(MODULE.function("name"), blocks, argument, …)`. The arguments must be
/// what the kernel declares, in its order, each as large as there.
macro_rules! launch {
    ($function:expr, $blocks:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::launch($function, $blocks, &[$(bytemuck::bytes_of(&$argument)),+])
    };
}
