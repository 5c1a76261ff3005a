//! What training in numbers of eight bits keeps beside the parameters on a card: by what operands are scaled (delayed scaling: Micikevicius
//! et al., 2022), and copies of the weights.
//!
//! Every weight has two slots: of what it is multiplied by, and of the gradients that come back through it. A slot has the largest
//! magnitudes of the latest updates, and by these what is multiplied next is scaled: by the largest power of two that keeps the largest
//! of them within the format. What is larger saturates, and is known of after the step.
//!
//! ```text
//! scale = 2^⌊log₂(limit / max(history))⌋        limit: 448 forward (e4m3), 57,344 for gradients (e5m2)
//! ```
//!
//! The histories decide how a run goes on, so they are part of its state. Weights have no history: their scale follows from their
//! values.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytemuck::NoUninit;

use super::entry::Entry;
use super::{Flat, Orientation, Param, Params, in_order};
use crate::cuda::{Buffer, Fp8, Fp8Format, Operand, Pointer, card};
use crate::ops::linear::fp8::{Copies, WEIGHT_SCALE, copy_weights, rescale};
use crate::{Array, DType, Device};

/// Updates whose largest magnitudes are remembered.
const HISTORY: usize = 16;
/// Numbers of a slot, as in `fp8.cu`: factor, scale, the bits of the maximum of the step, one that is not used, the history.
const SLOT: usize = 4 + HISTORY;
/// In place of a maximum: there is none.
const NONE: f32 = -1.0;
/// Exponents of scales: products of two factors stay finite.
const EXPONENTS: i32 = 60;
/// Sizes of weights are multiples of this.
const MULTIPLE: usize = 16;

/// What an operand is beside a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8Role {
    /// What the weight is multiplied by.
    Input,
    /// The gradient that comes back through it.
    Gradient,
}

/// What is known of an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fp8Slot {
    /// Its place on the card.
    pub(crate) pointer: Pointer,
    pub(crate) format: Fp8Format,
    /// Whether it was met in an update before: only then it has a scale.
    pub(crate) is_known: bool,
}

impl Fp8Slot {
    /// Where its factor is.
    pub(crate) fn factor(&self) -> Pointer {
        self.pointer
    }
}

/// A weight to be copied, as in `fp8.cu`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
pub(crate) struct Fp8Weight {
    pub(crate) offset: u64,
    pub(crate) rows: u32,
    pub(crate) width: u32,
    pub(crate) first: u32,
    pub(crate) index: u32,
}

/// See the module; nothing until a weight is multiplied so.
#[derive(Default)]
pub(super) struct Fp8State(Mutex<Option<State>>);

struct State {
    /// Two slots for each parameter.
    slots: Array,
    met: Vec<[Met; 2]>,
    copies: Option<Copies>,
    /// The version of the values that the copies were made from; `None` if weights are missing.
    copied: Option<u64>,
}

/// When an operand was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Never,
    /// In the step that is not over.
    Now,
    Before,
}

impl Fp8State {
    pub(super) fn clear(&self) {
        *in_order(self.0.lock()) = None;
    }

    /// Forgets what a step has left that was not made: the card has its maxima, and copies may not have been made.
    pub(super) fn abandon_step(&self) {
        if let Some(state) = &mut *in_order(self.0.lock()) {
            let histories = state.histories();
            state.restore(&histories);
        }
    }
}

impl State {
    fn new(entries: &[Entry]) -> State {
        let mut state = State {
            slots: Array::scratch_on(Device::Cuda, DType::F32, 2 * entries.len(), SLOT),
            met: Vec::new(),
            copies: None,
            copied: None,
        };
        state.restore(&vec![[NONE; HISTORY]; 2 * entries.len()]);
        state
    }

    /// The histories of all slots.
    fn histories(&self) -> Vec<[f32; HISTORY]> {
        let slots = self.slots.to_vec();
        let history = |slot: &[f32]| std::array::from_fn(|age| slot[SLOT - HISTORY + age]);
        slots.chunks(SLOT).map(history).collect()
    }

    /// Goes on from these, as if no step was begun.
    fn restore(&mut self, histories: &[[f32; HISTORY]]) {
        let slot = |(number, history): (usize, &[f32; HISTORY])| {
            let scale = scale_of(history, limit_of(number));
            [[1.0 / scale, scale, NONE, 0.0].as_slice(), history].concat()
        };
        self.slots.copy_from(&histories.iter().enumerate().flat_map(slot).collect::<Vec<f32>>());
        let met = |history: &[f32; HISTORY]| if is_met(history) { Met::Before } else { Met::Never };
        self.met = histories.chunks(2).map(|of| [met(&of[0]), met(&of[1])]).collect();
        self.copied = None;
    }
}

/// By what operands with these largest magnitudes are multiplied; the same arithmetic as in `fp8.cu`.
fn scale_of(history: &[f32], limit: f32) -> f32 {
    let most = history.iter().copied().fold(0.0, f32::max);
    if most == 0.0 {
        return 1.0;
    }
    let exponent = ((limit / most).to_bits() >> 23) as i32 - 127;
    f32::from_bits(((127 + exponent.clamp(-EXPONENTS, EXPONENTS)) as u32) << 23)
}

/// The largest number of a slot's format.
fn limit_of(slot: usize) -> f32 {
    if slot.is_multiple_of(2) { 448.0 } else { 57344.0 }
}

fn is_met(history: &[f32]) -> bool {
    history[0] >= 0.0
}

impl Param {
    /// What is known of an operand that meets this weight, which it does from here on. `None` if their products are to be
    /// computed in bf16.
    pub(crate) fn fp8_slot(&self, role: Fp8Role) -> Option<Fp8Slot> {
        if [self.rows, self.width].iter().any(|size| !size.is_multiple_of(MULTIPLE))
            || !card().is_ok_and(|card| card.multiplies_fp8())
        {
            return None;
        }
        let flat = self.store.flat();
        let mut guard = in_order(flat.fp8.0.lock());
        let state = guard.get_or_insert_with(|| State::new(&flat.entries));
        let (role, format) = match role {
            Fp8Role::Input => (0, Fp8Format::E4m3),
            Fp8Role::Gradient => (1, Fp8Format::E5m2),
        };
        let met = &mut state.met[self.index][role];
        let is_known = *met == Met::Before;
        if *met == Met::Never {
            *met = Met::Now;
        }
        let pointer = state.slots.pointer().offset((2 * self.index + role) * SLOT * size_of::<f32>());
        Some(Fp8Slot { pointer, format, is_known })
    }

    /// This weight in eight bits, as a right factor whose sums lie side by side. What it is multiplied by is known.
    pub(crate) fn fp8_operand(&self, orientation: Orientation) -> Operand {
        let flat = self.store.flat();
        // The first parameter begins where all of them do.
        let first = Params { store: self.store.clone() }.param(0, &flat.entries[0]);
        let values = first.operand(DType::Bf16).pointer;
        let mut guard = in_order(flat.fp8.0.lock());
        let state = guard.as_mut().expect("its slot was asked for");
        let copies = state.fresh_copies(flat, values);
        let factor = copies.scales.pointer().offset(self.index * WEIGHT_SCALE);
        let (copy, rows, width) = match orientation {
            Orientation::AsIs => (&copies.turned, self.width, self.rows),
            Orientation::Transposed => (&copies.as_is, self.rows, self.width),
        };
        Operand {
            pointer: copy.pointer().offset(self.offset),
            dtype: DType::Bf16,
            rows,
            width,
            stride: width,
            transposed: true,
            fp8: Some(Fp8 { format: Fp8Format::E4m3, factor }),
        }
    }
}

impl State {
    /// Copies of all weights whose operands are known, made from the newest values.
    fn fresh_copies(&mut self, flat: &Flat, values: Pointer) -> &Copies {
        let version = flat.version.load(Ordering::Acquire);
        let numbers = flat.entries.last().map_or(0, |entry| entry.range().end);
        let copies = self.copies.get_or_insert_with(|| Copies {
            as_is: Buffer::new(numbers),
            turned: Buffer::new(numbers),
            scales: Buffer::new(flat.entries.len() * WEIGHT_SCALE),
        });
        if self.copied != Some(version) {
            let weight = |index: usize| {
                let Entry { offset, rows, width, .. } = flat.entries[index];
                let [rows, width, index] = [rows, width, index].map(|number| number as u32);
                Fp8Weight { offset: offset as u64, rows, width, first: 0, index }
            };
            let is_known = |index: &usize| self.met[*index][0] == Met::Before;
            let known = (0..flat.entries.len()).filter(is_known);
            copy_weights(values, &mut known.map(weight).collect::<Vec<_>>(), copies);
            self.copied = Some(version);
        }
        copies
    }
}

impl Params {
    /// After an update: the maxima of its step become the newest of their histories, unless the word at `refusal`, if there is
    /// one, is not 0. Takes no memory.
    pub(crate) fn rescale_fp8(&self, refusal: Pointer) {
        let mut guard = in_order(self.store.flat().fp8.0.lock());
        let Some(state) = &mut *guard else { return };
        rescale(state.slots.pointer(), state.slots.rows(), refusal);
        for met in state.met.iter_mut().flatten().filter(|met| **met == Met::Now) {
            *met = Met::Before;
            state.copied = None;
        }
    }

    /// What training in fp8 has seen so far, for a checkpoint: names of weights and, of what each was multiplied by and of the gradients
    /// that came back, the largest magnitudes in the latest updates, the newest first; negative where there are none.
    pub fn fp8_maxima(&self) -> Vec<(Arc<str>, [Vec<f32>; 2])> {
        let flat = self.store.flat();
        let guard = in_order(flat.fp8.0.lock());
        let Some(state) = &*guard else { return Vec::new() };
        let of_weights = state.histories();
        let named = flat.entries.iter().zip(of_weights.chunks(2));
        let met = named.filter(|(_, of)| of.iter().any(|history| is_met(history)));
        met.map(|(entry, of)| (entry.name.clone(), [of[0].to_vec(), of[1].to_vec()])).collect()
    }

    /// Goes on from what [`Params::fp8_maxima`] had; what it does not name was not seen. False, and nothing has changed, if a name
    /// or a number of maxima is not of these parameters. To be called for parameters on a card.
    pub fn restore_fp8_maxima(&self, maxima: &[(&str, [&[f32]; 2])]) -> bool {
        let flat = self.store.flat();
        let mut histories = vec![[NONE; HISTORY]; 2 * flat.entries.len()];
        for (name, of) in maxima {
            let Some(index) = flat.entries.iter().position(|entry| &*entry.name == *name) else {
                return false;
            };
            for (role, history) in of.iter().enumerate() {
                let Ok(history) = <[f32; HISTORY]>::try_from(*history) else { return false };
                histories[2 * index + role] = history;
            }
        }
        let mut guard = in_order(flat.fp8.0.lock());
        if guard.is_some() || !maxima.is_empty() {
            guard.get_or_insert_with(|| State::new(&flat.entries)).restore(&histories);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;

    #[test]
    fn a_scale_is_the_largest_power_of_two_that_keeps_all_of_a_history_within_the_format() {
        for limit in [448.0_f32, 57344.0] {
            for most in [1e-6_f32, 0.3, 1.0, 7.0, 447.9, 448.0, 448.1, 1e9] {
                let scale = scale_of(&[0.1 * most, NONE, most, 0.0], limit);
                assert_eq!(scale.log2().fract(), 0.0, "{scale}");
                assert!(most * scale <= limit && most * scale * 2.0 > limit, "{most} times {scale}");
            }
        }
    }

    #[test]
    fn scales_of_nothing_and_of_extremes_are_finite_and_so_are_products_of_their_factors() {
        assert_eq!(scale_of(&[NONE; HISTORY], 448.0), 1.0);
        assert_eq!(scale_of(&[0.0; HISTORY], 448.0), 1.0);
        for most in [f32::MIN_POSITIVE / 8.0, 1e-30, f32::MAX] {
            let (scale, other) = (scale_of(&[most], 448.0), scale_of(&[most], 57344.0));
            assert!((1.0 / scale / other).is_normal(), "{most}: {scale} and {other}");
        }
    }

    #[test]
    fn maxima_of_other_parameters_are_refused() {
        let params = Params::new(1);
        params.add("weight", 16, 16, Init::Constant(1.0));
        assert!(params.fp8_maxima().is_empty());
        assert!(params.restore_fp8_maxima(&[]));
        let good = [1.0; HISTORY];
        assert!(!params.restore_fp8_maxima(&[("other", [&good, &good])]));
        assert!(!params.restore_fp8_maxima(&[("weight", [&good, &good[1..]])]));
        assert!(params.fp8_maxima().is_empty());
    }
}
