//! Work for the card as plain values: done at once, or collected in a list that can be compared, run and recorded.

use std::ffi::c_void;
use std::ops::Range;

use cudarc::driver::sys as driver;

use super::card::{expect, present};
use super::launch::Blocks;
use super::memory::Pointer;
use super::module::Function;
use super::product::{self, Product};
use super::profile;

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Command {
    /// A kernel; its arguments are those of the list with these numbers.
    Launch { function: Function, blocks: Blocks, arguments: Range<usize> },
    Product(Product),
    /// Zeros.
    Clear { start: Pointer, bytes: usize },
    /// A copy within the card's memory.
    Copy { from: Pointer, to: Pointer, bytes: usize },
}

/// Pieces of work in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct List {
    commands: Vec<Command>,
    /// Where each kernel argument begins in `bytes`.
    arguments: Vec<usize>,
    /// The arguments of all kernels, each at a multiple of eight bytes.
    bytes: Vec<u64>,
}

impl List {
    pub(super) fn push(&mut self, command: Command) {
        self.commands.push(command);
    }

    pub(super) fn push_launch(&mut self, function: Function, blocks: Blocks, arguments: &[&[u8]]) {
        let first = self.arguments.len();
        for argument in arguments {
            self.arguments.push(self.bytes.len());
            for eight in argument.chunks(8) {
                let mut word = [0; 8];
                word[..eight.len()].copy_from_slice(eight);
                self.bytes.push(u64::from_ne_bytes(word));
            }
        }
        self.commands.push(Command::Launch { function, blocks, arguments: first..self.arguments.len() });
    }

    pub(super) fn clear(&mut self) {
        self.commands.clear();
        self.arguments.clear();
        self.bytes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Sends everything to the card's stream.
    pub(super) fn run(&self) {
        for command in &self.commands {
            match command {
                Command::Launch { function, blocks, arguments } => {
                    let starts = &self.arguments[arguments.clone()];
                    let at = |&start: &usize| std::ptr::from_ref(&self.bytes[start]).cast_mut().cast();
                    launch_now(*function, *blocks, &mut starts.iter().map(at).collect::<Vec<_>>());
                }
                Command::Product(product) => product::multiply_now(product),
                Command::Clear { start, bytes } => clear_now(*start, *bytes),
                Command::Copy { from, to, bytes } => copy_now(*from, *to, *bytes),
            }
        }
    }
}

/// Sends a kernel to the card's stream.
pub(super) fn launch_now(function: Function, blocks: Blocks, arguments: &mut [*mut c_void]) {
    let Blocks { grid: [x, y, z], threads, shared } = blocks;
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

pub(super) fn clear_now(start: Pointer, bytes: usize) {
    let stream = present().stream;
    // SAFETY: whoever has the address owns these bytes.
    expect("cuMemsetD8Async", unsafe { driver::cuMemsetD8Async(start.0, 0, bytes, stream) });
}

pub(super) fn copy_now(from: Pointer, to: Pointer, bytes: usize) {
    let stream = present().stream;
    // SAFETY: whoever has the addresses owns these bytes.
    expect("cuMemcpyDtoDAsync", unsafe { driver::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, stream) });
}
