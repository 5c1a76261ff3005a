//! Matrix products through cuBLASLt: bf16 operands with f32 accumulation, or f32 throughout (never TF32,
//! which has a mantissa of 10 bits).
//!
//! cuBLASLt is column-major; it sees a row-major matrix as its transpose. So `C = A B` is computed as
//! `Cᵀ = Bᵀ Aᵀ`, without copies. The plan for products of one shape is made once.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::cublaslt::sys::{
    self as blas, cublasLtHandle_t, cublasLtMatmulDescAttributes_t as Attribute, cublasStatus_t,
};

use cudarc::driver::sys::CUstream;

use super::command::Command;
use super::gpu::active_gpu;
use super::memory::Buffer;
use super::operand::{Epilogue, Operand, Pointer, Product};
use super::plan::{Key, Layout, Plan, layout, set};
use super::profile;
use super::step;

/// Workspace of cuBLASLt for split-K; NVIDIA recommends 32 MiB for Hopper.
pub(super) const WORKSPACE: usize = 32 << 20;

/// Token counts are rounded up to a multiple of this, to share plans.
const TOKENS: usize = 256;

/// All plans of a GPU.
pub(super) struct Plans {
    handle: cublasLtHandle_t,
    /// One for each stream with products.
    workspaces: OnceLock<[Buffer; 2]>,
    /// `None` if cuBLASLt has no algorithm.
    by_shape: Mutex<HashMap<Key, Option<Plan>>>,
}

impl Plans {
    pub(super) fn new(handle: cublasLtHandle_t) -> Plans {
        Plans { handle, workspaces: OnceLock::new(), by_shape: Mutex::default() }
    }

    /// The workspace of a stream. It must be allocated before the first step is recorded: memory that a step
    /// has freed looks free while its commands are unsubmitted.
    pub(super) fn workspace(&self, stream_index: usize) -> Pointer {
        self.workspaces.get_or_init(|| [Buffer::new(WORKSPACE), Buffer::new(WORKSPACE)])[stream_index]
            .pointer()
    }
}

/// Computes a product.
///
/// # Panics
/// If the shapes do not fit, or cuBLASLt cannot do it.
pub(crate) fn multiply(product: &Product) {
    let Product { left, right, out, .. } = *product;
    let ([m, k], [k_too, n]) = (left.shape(), right.shape());
    assert!(
        k == k_too && out.shape() == [m, n] && !out.transposed,
        "a product of {:?} and {:?} is not {:?}",
        left.shape(),
        right.shape(),
        out.shape()
    );
    if m * n > 0 && !step::record(Command::Product(*product)) {
        multiply_now(active_gpu().stream, 0, product);
    }
}

/// Submits a product to one of the streams, or to the recorder in place of the first.
pub(super) fn multiply_now(stream: CUstream, stream_index: usize, product: &Product) {
    // Batches differ in their number of tokens; all of a bucket share a plan.
    let shape = product.rounded();
    // The algorithm for the rounded shape may not support this one.
    let to = (stream, stream_index);
    let is_queued = queue(to, product, &shape) || queue(to, product, product);
    assert!(is_queued, "cuBLASLt has no algorithm for {product:?}");
}

/// Makes the plan for a product's shape, if there is none yet.
pub(super) fn prepare(product: &Product) {
    with_plan(&product.rounded(), |_| ());
}

/// Calls `work` with the plan for a shape, which is made if needed; `None` if there is no algorithm.
fn with_plan<R>(shape: &Product, work: impl FnOnce(Option<&mut Plan>) -> R) -> R {
    let plans = &active_gpu().plans;
    let mut by_shape = plans.by_shape.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = by_shape.entry(Key::of(shape)).or_insert_with_key(|key| Plan::new(plans.handle, shape, key));
    work(plan.as_mut())
}

/// Submits a product with the plan for a similar shape; false if there is none, or it does not support the
/// product.
fn queue(to: (CUstream, usize), product: &Product, shape: &Product) -> bool {
    with_plan(shape, |plan| plan.is_some_and(|plan| send(to, product, plan)))
}

/// Submits a product with a plan; false if the plan does not support it.
fn send((stream, stream_index): (CUstream, usize), product: &Product, plan: &Plan) -> bool {
    let Product { left, right, out, add, epilogue } = *product;
    let gpu = active_gpu();
    let workspace = gpu.plans.workspace(stream_index);
    let (alpha, beta) = (1.0_f32, if add { 1.0_f32 } else { 0.0 });
    let mut layouts = [left, right, out].map(layout);
    let [left_layout, right_layout, out_layout] = layouts.each_mut().map(Layout::pointer);
    let mut status = cublasStatus_t::CUBLAS_STATUS_SUCCESS;
    let name = || {
        let [m, k] = left.shape();
        let kind = if add { ", added" } else { "" };
        format!("product {m}x{k}x{} {} to {}{kind}", out.width, left.dtype, out.dtype)
    };
    // SAFETY: the plan is for such operands, whose pointers are valid; layouts and factors are locals.
    profile::around(name, || unsafe {
        if let Some(bias) = epilogue.row() {
            set(plan.operation, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.0);
        }
        status = blas::cublasLtMatmul(
            gpu.plans.handle,
            plan.operation,
            ptr::from_ref(&alpha).cast(),
            right.pointer.0 as *const c_void,
            right_layout,
            left.pointer.0 as *const c_void,
            left_layout,
            ptr::from_ref(&beta).cast(),
            out.pointer.0 as *const c_void,
            out_layout,
            out.pointer.0 as *mut c_void,
            out_layout,
            &plan.algo,
            workspace.0 as *mut c_void,
            WORKSPACE,
            stream.cast(),
        );
    });
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => true,
        cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED | cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE => false,
        other => panic!("cublasLtMatmul: {other:?} for {product:?}"),
    }
}

impl Epilogue {
    /// The bias row.
    pub(super) fn row(self) -> Option<Pointer> {
        match self {
            Epilogue::Bias(row) | Epilogue::BiasRelu(row) => Some(row),
            Epilogue::None | Epilogue::Relu => None,
        }
    }
}

impl Product {
    /// The same product with its token count rounded up. Tokens are rows of the left operand, in sums over
    /// tokens of both operands; widths belong to weights and stay.
    fn rounded(&self) -> Product {
        let up = |operand: Operand| match operand.rows {
            0..=TOKENS => operand,
            rows => Operand { rows: rows.next_multiple_of(TOKENS), ..operand },
        };
        let left = up(self.left);
        match (self.left.transposed, self.right.transposed) {
            (false, _) => Product { left, out: up(self.out), ..*self },
            (true, false) => Product { left, right: up(self.right), ..*self },
            (true, true) => *self,
        }
    }
}
