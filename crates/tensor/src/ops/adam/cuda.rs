//! The update on the GPU: one pass over everything, which also writes the bf16 copy for the next GEMMs and
//! the moving average. The GPU decides whether to reject the gradients and reports it to the host later.

use std::sync::Arc;

use bytemuck::{NoUninit, Pod, Zeroable};

use super::guard::{Divergence, Guard, WINDOW};
use super::{StepResult, Update};
use crate::cuda::{Blocks, Module, Pinned, Pointer, upload};
use crate::ops::cross_entropy::{CrossEntropy, Totals};
use crate::{Array, DType, Device};

pub(crate) static MODULE: Module = Module::new("adam", include_str!("cuda.cu"));

/// Elements of one partial sum of the norm.
const CHUNK: usize = 16 * 1024;
/// Slots for the reports of steps. More than the number of steps in flight.
const REPORTS: u64 = 16;

/// The arrays of an update.
pub(super) struct Arrays<'a> {
    pub(super) gradients: &'a Array,
    pub(super) values: &'a mut Array,
    pub(super) mean: &'a mut Array,
    pub(super) square: &'a mut Array,
    /// Flags of the elements that do not decay, one for every 16 elements; null if all decay.
    pub(super) no_decay: Pointer,
    pub(super) narrow: Pointer,
    pub(super) average: Pointer,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Loss {
    totals: Pointer,
    share: f32,
    tokens: u32,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct GuardArgs {
    sums: Pointer,
    guard: Pointer,
    decision: Pointer,
    losses: Pointer,
    reports: Pointer,
    slot: Pointer,
    parts: u32,
    batches: u32,
    factor: f32,
    clip_norm: f32,
}

/// As in the kernels' source.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Report {
    verdict: u32,
    norm: f32,
    median: f32,
    loss: f32,
    negative_log_likelihood: f64,
    correct: f64,
}

/// The guard on the GPU.
pub(super) struct GpuGuard {
    /// As `Guard` in the kernels' source, followed by the latest decision.
    state: Array,
    reports: Arc<Pinned>,
    next: u64,
}

/// The slot of a step's report, readable once the step is done.
pub(super) struct PendingReport {
    reports: Arc<Pinned>,
    slot: u64,
}

/// Updates everything with gradients multiplied by `scale`.
pub(super) fn apply(update: Update, scale: f32, arrays: Arrays<'_>) {
    let (decision, constants) = (upload(&[scale.to_bits(), 0]), upload(&[update]));
    apply_decided(constants.pointer(), decision.pointer(), arrays);
}

/// Allocates no memory, so that an update cannot fail halfway when memory runs out.
fn apply_decided(constants: Pointer, decision: Pointer, arrays: Arrays<'_>) {
    let Arrays { gradients, values, mean, square, no_decay, narrow, average } = arrays;
    let [values, mean, square] = [values, mean, square].map(|array| array.pointer());
    let (function, n) = (MODULE.function("update"), gradients.len());
    let (blocks, gradients) = (Blocks::for_each(n.div_ceil(4)), gradients.pointer());
    launch!(
        function, blocks, constants, decision, gradients, values, mean, square, no_decay, narrow, average,
        n as u64
    );
}

/// Updates everything unless the guard rejects the gradients or a loss.
pub(super) fn apply_guarded(
    update: Update,
    clip_norm: f32,
    guard: &mut Guard,
    losses: &[(&CrossEntropy, f32)],
    arrays: Arrays<'_>,
) -> PendingReport {
    let (factor, norms) = (guard.factor.unwrap_or(0.0), guard.norms());
    let gpu = guard.gpu.get_or_insert_with(|| GpuGuard::new(&norms));
    let slot = gpu.next;
    gpu.next += 1;
    let of_batch = |&(found, share): &(&CrossEntropy, f32)| match found.totals() {
        Totals::OnGpu(totals) => Loss { totals: totals.pointer(), share, tokens: found.tokens as u32 },
        Totals::Known(_) => unreachable!("the losses of parameters on the GPU are on the GPU"),
    };
    let losses = upload(&losses.iter().map(of_batch).collect::<Vec<_>>());
    let (sums, slot_word) = (squares(arrays.gradients), upload(&[(slot % REPORTS) as u32]));
    let constants = upload(&[update]);
    let decision = gpu.decision();
    let args = GuardArgs {
        sums: sums.pointer(),
        guard: gpu.state.pointer(),
        decision,
        losses: losses.pointer(),
        reports: gpu.reports.pointer(),
        slot: slot_word.pointer(),
        parts: sums.rows() as u32,
        batches: losses.bytes() as u32 / size_of::<Loss>() as u32,
        factor,
        clip_norm,
    };
    launch!(MODULE.function("guard"), Blocks::of(1, 256), args);
    apply_decided(constants.pointer(), decision, arrays);
    PendingReport { reports: gpu.reports.clone(), slot: slot % REPORTS }
}

impl GpuGuard {
    fn new(norms: &[f32]) -> GpuGuard {
        let mut state = vec![0.0; 4 + WINDOW + 2];
        state[1] = f32::from_bits(norms.len() as u32);
        state[2] = f32::from_bits((norms.len() % WINDOW) as u32);
        state[4..4 + norms.len()].copy_from_slice(norms);
        let bytes = REPORTS as usize * size_of::<Report>();
        GpuGuard {
            state: Array::from_f32_on(Device::Cuda, 1, state.len(), &state),
            reports: Arc::new(Pinned::new(bytes)),
            next: 0,
        }
    }

    /// The address of the latest decision.
    fn decision(&self) -> Pointer {
        self.state.pointer().offset(4 * (4 + WINDOW))
    }

    /// See [`Guard::rejected_flag`].
    pub(super) fn rejected_flag(&self) -> Pointer {
        self.decision().offset(4)
    }
}

impl PendingReport {
    /// The report of a finished step; `None` if the step was skipped because an earlier one was rejected.
    pub(super) fn read(&self) -> Option<Result<StepResult, Divergence>> {
        let mut report = Report::zeroed();
        self.reports.read(self.slot as usize * size_of::<Report>(), bytemuck::bytes_of_mut(&mut report));
        let Report { verdict, norm, median, loss, negative_log_likelihood, correct } = report;
        Some(match verdict {
            0 => Ok(StepResult { norm, loss, negative_log_likelihood, correct: correct as usize }),
            1 => Err(Divergence::Loss(loss)),
            2 => Err(Divergence::Gradient(norm)),
            3 => Err(Divergence::Explosion { norm, median }),
            _ => return None,
        })
    }
}

/// `√Σ g²`. Waits for the GPU.
pub(super) fn norm_of(gradients: &Array) -> f32 {
    let sums = squares(gradients);
    let norm = Array::scratch_on(Device::Cuda, DType::F32, 1, 1);
    let parts = sums.rows() as u32;
    launch!(MODULE.function("root"), Blocks::of(1, 256), sums.pointer(), norm.pointer(), parts);
    norm.to_vec()[0]
}

/// The sums of squares of chunks (f64).
fn squares(gradients: &Array) -> Array {
    let (n, parts) = (gradients.len(), gradients.len().div_ceil(CHUNK));
    let sums = Array::scratch_on(Device::Cuda, DType::F32, parts, 2);
    let function = MODULE.function("squares");
    launch!(function, Blocks::of(parts, 256), gradients.pointer(), sums.pointer(), n as u64);
    sums
}
