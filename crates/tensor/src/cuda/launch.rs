//! Launching kernels.

use std::ffi::c_void;

use cudarc::driver::sys as driver;

use super::card::{expect, present};
use super::module::Function;
use super::profile;
use crate::random::Dropout;

/// How many blocks a kernel runs with, and how large they are.
#[derive(Clone, Copy, Debug)]
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

/// Dropout as kernels take it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DropoutArgument {
    key: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl DropoutArgument {
    pub(crate) fn of(dropout: Dropout) -> DropoutArgument {
        DropoutArgument { key: dropout.key(), threshold: dropout.threshold(), scale: dropout.scale() }
    }

    /// The same as numbers, for kernels that read it from the card's memory.
    pub(crate) fn words(self) -> [u32; 4] {
        [self.key[0], self.key[1], self.threshold, self.scale.to_bits()]
    }
}

/// Launches a kernel in the card's stream: `launch!(MODULE.function("name"), blocks, argument, …)`. The arguments must be
/// what the kernel declares, in its order, each as large as there.
macro_rules! launch {
    ($function:expr, $blocks:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::launch($function, $blocks, &mut [$(std::ptr::from_ref(&$argument).cast_mut().cast()),+])
    };
}

/// See the macro. Nothing is launched for an empty grid.
pub(crate) fn launch(function: Function, blocks: Blocks, arguments: &mut [*mut c_void]) {
    let Blocks { grid: [x, y, z], threads, shared } = blocks;
    if x * y * z == 0 {
        return;
    }
    let Function { handle, name } = function;
    profile::around(
        || name.to_owned(),
        || {
            // SAFETY: kernels and their launches are written side by side; the harness runs every pair of them.
            let result = unsafe {
                driver::cuLaunchKernel(
                    handle,
                    x as u32,
                    y as u32,
                    z as u32,
                    threads as u32,
                    1,
                    1,
                    shared as u32,
                    present().stream,
                    arguments.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            };
            expect(name, result);
        },
    );
}
