//! Matrix products through cuBLASLt: bf16 operands with f32 sums, or f32 throughout (never TF32, whose ten bits are not f32).
//!
//! cuBLASLt thinks in columns; a matrix that lies row after row is to it the transposed one. So `C = A B` is asked for as
//! `Cᵀ = Bᵀ Aᵀ`, and nothing is moved. What it needs to know about a product of one shape (a plan) is found once.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::cublaslt::sys::{
    self as blas, cublasLtHandle_t, cublasLtMatmulDescAttributes_t as Attribute, cublasStatus_t,
};

use cudarc::driver::sys::CUstream;

use super::command::Command;
use super::gpu::present;
use super::memory::Buffer;
use super::operand::{Epilogue, Operand, Pointer, Product};
use super::plan::{Key, Layout, Plan, layout, set};
use super::profile;
use super::step;

/// Bytes that cuBLASLt may use to split a product; 32 MiB is what its makers advise for Hopper.
pub(super) const WORKSPACE: usize = 32 << 20;

/// Numbers of tokens up to a multiple of this have one plan.
const TOKENS: usize = 256;

/// All plans of a GPU.
pub(super) struct Plans {
    handle: cublasLtHandle_t,
    /// One for each lane that has products.
    workspaces: OnceLock<[Buffer; 2]>,
    /// None where there is no way.
    by_shape: Mutex<HashMap<Key, Option<Plan>>>,
}

impl Plans {
    pub(super) fn new(handle: cublasLtHandle_t) -> Plans {
        Plans { handle, workspaces: OnceLock::new(), by_shape: Mutex::default() }
    }

    /// Memory for products that are split. To be asked for before the first step is recorded: what a step has given back
    /// looks free while its commands are not sent.
    pub(super) fn workspace(&self, lane: usize) -> Pointer {
        self.workspaces.get_or_init(|| [Buffer::new(WORKSPACE), Buffer::new(WORKSPACE)])[lane].pointer()
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
        multiply_now(present().stream, 0, product);
    }
}

/// Sends a product to a stream, which is that of a lane or its recorder.
pub(super) fn multiply_now(stream: CUstream, lane: usize, product: &Product) {
    // Batches differ in their number of tokens: one plan serves all that differ by less than this.
    let shape = product.rounded();
    // The way for the rounded shape may not suit this one.
    let to = (stream, lane);
    let is_queued = queue(to, product, &shape) || queue(to, product, product);
    assert!(is_queued, "cuBLASLt has no way to compute {product:?}");
}

/// Makes the plan for a product, if there is none for its shape.
pub(super) fn prepare(product: &Product) {
    with_plan(&product.rounded(), |_| ());
}

/// Calls `work` with the plan for a shape, which is made if it was not asked for before; `None` if there is no way.
fn with_plan<R>(shape: &Product, work: impl FnOnce(Option<&mut Plan>) -> R) -> R {
    let plans = &present().plans;
    let mut by_shape = plans.by_shape.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = by_shape.entry(Key::of(shape)).or_insert_with_key(|key| Plan::new(plans.handle, shape, key));
    work(plan.as_mut())
}

/// Queues a product by the plan for a shape like its own; false if there is none, or it does not suit the product.
fn queue(to: (CUstream, usize), product: &Product, shape: &Product) -> bool {
    with_plan(shape, |plan| plan.is_some_and(|plan| send(to, product, plan)))
}

/// Queues a product by a plan; false if it does not suit the product.
fn send((stream, lane): (CUstream, usize), product: &Product, plan: &Plan) -> bool {
    let Product { left, right, out, add, epilogue } = *product;
    let gpu = present();
    let workspace = gpu.plans.workspace(lane);
    let (alpha, beta) = (1.0_f32, if add { 1.0_f32 } else { 0.0 });
    let mut layouts = [left, right, out].map(layout);
    let [left_layout, right_layout, out_layout] = layouts.each_mut().map(Layout::pointer);
    let mut status = cublasStatus_t::CUBLAS_STATUS_SUCCESS;
    let name = || {
        let [m, k] = left.shape();
        let kind = if add { ", added" } else { "" };
        format!("product {m}x{k}x{} {} to {}{kind}", out.width, left.dtype, out.dtype)
    };
    // SAFETY: the plan is for such operands, which lie where they say; layouts and factors are locals.
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
            &plan.way,
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
    /// The row that it reads or writes.
    pub(super) fn row(self) -> Option<Pointer> {
        match self {
            Epilogue::Bias(row) | Epilogue::BiasRelu(row) => Some(row),
            Epilogue::None | Epilogue::Relu => None,
        }
    }
}

impl Product {
    /// The same product for as many tokens as any of a range has. Tokens are rows of the left factor, in sums over tokens of
    /// both factors; widths belong to weights and stay.
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
