//! Matrix products through cuBLASLt: bf16 operands with f32 sums, or f32 throughout (never TF32, whose ten bits are not f32).
//!
//! cuBLASLt thinks in columns; a matrix that lies row after row is to it the transposed one. So `C = A B` is asked for as
//! `Cᵀ = Bᵀ Aᵀ`, and nothing is moved. What it needs to know about a product of one shape (a plan) is found once.

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;
use std::sync::{Mutex, OnceLock};

use cudarc::cublaslt::sys::{
    self as blas, cublasComputeType_t, cublasLtEpilogue_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cublasStatus_t, cudaDataType_t,
};

use super::card::present;
use super::command::Command;
use super::memory::{Buffer, Pointer};
use super::profile;
use super::step;
use crate::DType;

/// Bytes that cuBLASLt may use to split a product; 32 MiB is what its makers advise for Hopper.
const WORKSPACE: usize = 32 << 20;

/// Numbers of tokens up to a multiple of this have one plan.
const TOKENS: usize = 256;

/// A matrix in the card's memory, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) pointer: Pointer,
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Numbers from one row to the next.
    pub(crate) stride: usize,
    /// Whether its transpose enters the product.
    pub(crate) transposed: bool,
}

impl Operand {
    /// The transpose of this matrix, without moving a number.
    pub(crate) fn transposed(self) -> Operand {
        Operand { transposed: !self.transposed, ..self }
    }

    /// Its columns as it enters the product.
    pub(crate) fn columns(&self) -> usize {
        self.shape()[1]
    }

    /// Its shape as it enters the product.
    fn shape(&self) -> [usize; 2] {
        if self.transposed { [self.width, self.rows] } else { [self.rows, self.width] }
    }
}

/// What is done to sums before they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Epilogue {
    /// Nothing.
    None,
    /// A row is added; it has the type of the result.
    Bias(Pointer),
    /// What is negative becomes 0.
    Relu,
    /// A row is added, and what is negative becomes 0.
    BiasRelu(Pointer),
}

impl Epilogue {
    /// The row that it reads or writes.
    fn row(self) -> Option<Pointer> {
        match self {
            Epilogue::Bias(row) | Epilogue::BiasRelu(row) => Some(row),
            Epilogue::None | Epilogue::Relu => None,
        }
    }
}

/// `out = left · right`, or `out += left · right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Product {
    pub(crate) left: Operand,
    pub(crate) right: Operand,
    pub(crate) out: Operand,
    pub(crate) add: bool,
    pub(crate) epilogue: Epilogue,
}

/// What is known about products of one shape.
struct Plan {
    operation: cublasLtMatmulDesc_t,
    algorithm: cublasLtMatmulAlgo_t,
}

// SAFETY: descriptions may be used by any thread, one at a time; the plans are behind a lock.
unsafe impl Send for Plan {}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    operands: [(DType, usize, usize, usize, bool); 3],
    /// Addresses at multiples of 16 bytes have faster products.
    alignment: [u32; 3],
    add: bool,
    epilogue: u8,
}

/// All plans of a card.
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
        multiply_now(0, product);
    }
}

/// Sends a product to a lane.
pub(super) fn multiply_now(lane: usize, product: &Product) {
    // Batches differ in their number of tokens: one plan serves all that differ by less than this.
    let shape = product.rounded();
    // The way for the rounded shape may not suit this one.
    let is_queued = queue(lane, product, &shape) || queue(lane, product, product);
    assert!(is_queued, "cuBLASLt has no way to compute {product:?}");
}

/// Queues a product by the plan for a shape like its own; false if there is none, or it does not suit the product.
fn queue(lane: usize, product: &Product, shape: &Product) -> bool {
    let Product { left, right, out, add, epilogue } = *product;
    let card = present();
    let plans = &card.plans;
    let workspace = plans.workspace(lane);
    let mut by_shape = plans.by_shape.lock().expect("plans lock");
    let plan = by_shape.entry(Key::of(shape)).or_insert_with_key(|key| Plan::new(plans.handle, shape, key));
    let Some(plan) = plan else { return false };
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
            plans.handle,
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
            &plan.algorithm,
            workspace.0 as *mut c_void,
            WORKSPACE,
            card.lanes[lane].cast(),
        );
    });
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => true,
        cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED | cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE => false,
        other => panic!("cublasLtMatmul: {other:?} for {product:?}"),
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

impl Key {
    fn of(product: &Product) -> Key {
        let Product { left, right, out, add, epilogue } = *product;
        Key {
            operands: [left, right, out].map(|it| (it.dtype, it.rows, it.width, it.stride, it.transposed)),
            alignment: [left, right, out].map(|it| (it.pointer.0 | 256).trailing_zeros().min(4)),
            add,
            epilogue: match epilogue {
                Epilogue::None => 0,
                Epilogue::Bias(_) => 1,
                Epilogue::BiasRelu(_) => 2,
                Epilogue::Relu => 3,
            },
        }
    }
}

/// How a matrix lies in memory, in cuBLASLt's words: 64 bytes in its version 13.0, 112 from 13.1 on.
#[repr(C, align(16))]
struct Layout([u64; 32]);

impl Layout {
    fn pointer(&mut self) -> cublasLtMatrixLayout_t {
        ptr::from_mut(self).cast()
    }
}

fn layout(operand: Operand) -> Layout {
    let mut layout = Layout([0; 32]);
    let (rows, columns, stride) = (operand.width as u64, operand.rows as u64, operand.stride as i64);
    let (pointer, size) = (layout.pointer(), size_of::<Layout>());
    // SAFETY: the layout is a local of this size.
    let status = unsafe {
        blas::cublasLtMatrixLayoutInit_internal(pointer, size, number(operand.dtype), rows, columns, stride)
    };
    assert!(status == cublasStatus_t::CUBLAS_STATUS_SUCCESS, "cublasLtMatrixLayoutInit: {status:?}");
    layout
}

impl Plan {
    fn new(handle: cublasLtHandle_t, product: &Product, key: &Key) -> Option<Plan> {
        let Product { left, right, epilogue, .. } = *product;
        // SAFETY: every pointer is to a local of the type that the call takes; what is created lives as long as the process.
        unsafe {
            let mut operation: cublasLtMatmulDesc_t = ptr::null_mut();
            let compute = cublasComputeType_t::CUBLAS_COMPUTE_32F;
            let created = blas::cublasLtMatmulDescCreate(&mut operation, compute, cudaDataType_t::CUDA_R_32F);
            expect("cublasLtMatmulDescCreate", created, product);
            // The first operand of cuBLASLt is our right one.
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &orientation(right));
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &orientation(left));
            let kind = match epilogue {
                Epilogue::None => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
                Epilogue::Bias(_) => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
                Epilogue::BiasRelu(_) => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_BIAS,
                Epilogue::Relu => cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU,
            };
            set(operation, Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &kind);
            if let Some(bias) = epilogue.row() {
                set(operation, Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.0);
            }
            let algorithm = algorithm(handle, operation, product, key)?;
            Some(Plan { operation, algorithm })
        }
    }
}

/// # Safety
/// Handle and descriptions are cuBLASLt's.
unsafe fn algorithm(
    handle: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    product: &Product,
    key: &Key,
) -> Option<cublasLtMatmulAlgo_t> {
    // SAFETY: as promised, and every other pointer is to a local.
    unsafe {
        let mut preference = ptr::null_mut();
        expect(
            "cublasLtMatmulPreferenceCreate",
            blas::cublasLtMatmulPreferenceCreate(&mut preference),
            product,
        );
        let prefer = |attribute: cublasLtMatmulPreferenceAttributes_t, value: *const c_void, bytes: usize| {
            let status = blas::cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, bytes);
            expect("cublasLtMatmulPreferenceSetAttribute", status, product);
        };
        use cublasLtMatmulPreferenceAttributes_t as Preference;
        let workspace = WORKSPACE;
        let bytes = size_of::<usize>();
        prefer(Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, ptr::from_ref(&workspace).cast(), bytes);
        let [left, right, out] = key.alignment.map(|zeros| 1_u32 << zeros);
        for (attribute, alignment) in [
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, right),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, left),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out),
        ] {
            prefer(attribute, ptr::from_ref(&alignment).cast(), size_of::<u32>());
        }
        let mut found: [cublasLtMatmulHeuristicResult_t; 1] = [std::mem::zeroed()];
        let mut count = 0;
        let mut layouts = [product.left, product.right, product.out].map(layout);
        let [left, right, out] = layouts.each_mut().map(Layout::pointer);
        let status = blas::cublasLtMatmulAlgoGetHeuristic(
            handle,
            operation,
            right,
            left,
            out,
            out,
            preference,
            found.len() as i32,
            found.as_mut_ptr(),
            &mut count,
        );
        blas::cublasLtMatmulPreferenceDestroy(preference);
        let is_found = status == cublasStatus_t::CUBLAS_STATUS_SUCCESS && count > 0;
        is_found.then_some(found[0].algo)
    }
}

/// cuBLAS's CUBLAS_OP_N and CUBLAS_OP_T.
fn orientation(operand: Operand) -> i32 {
    i32::from(operand.transposed)
}

fn number(dtype: DType) -> cudaDataType_t {
    match dtype {
        DType::F32 => cudaDataType_t::CUDA_R_32F,
        DType::Bf16 => cudaDataType_t::CUDA_R_16BF,
    }
}

/// # Safety
/// The attribute has the type `T`.
unsafe fn set<T>(operation: cublasLtMatmulDesc_t, attribute: Attribute, value: &T) {
    // SAFETY: as promised.
    let status = unsafe {
        blas::cublasLtMatmulDescSetAttribute(
            operation,
            attribute,
            ptr::from_ref(value).cast(),
            size_of::<T>(),
        )
    };
    assert!(status == cublasStatus_t::CUBLAS_STATUS_SUCCESS, "cublasLtMatmulDescSetAttribute: {status:?}");
}

fn expect(call: &str, status: cublasStatus_t, product: &Product) {
    assert!(status == cublasStatus_t::CUBLAS_STATUS_SUCCESS, "{call}: {status:?} for {product:?}");
}
