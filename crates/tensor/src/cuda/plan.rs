//! cuBLASLt plans: descriptors and algorithms for products of one shape.

use std::ffi::c_void;
use std::mem::size_of;
use std::ptr;

use cudarc::cublaslt::sys::{
    self as blas, cublasComputeType_t, cublasLtEpilogue_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as Attribute, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cublasStatus_t, cudaDataType_t,
};

use super::operand::{Epilogue, Operand, Product};
use super::product::WORKSPACE;
use crate::DType;

/// Algorithms that the heuristic is asked for.
const MAX_ALGOS: usize = 16;

/// The plan for products of one shape.
pub(super) struct Plan {
    pub(super) operation: cublasLtMatmulDesc_t,
    /// The best algorithm of the heuristic.
    pub(super) algo: cublasLtMatmulAlgo_t,
}

// SAFETY: descriptions may be used by any thread, one at a time; the plans are behind a lock.
unsafe impl Send for Plan {}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    operands: [(DType, usize, usize, usize, bool); 3],
    /// Products of 16-byte aligned addresses are faster.
    alignment: [u32; 3],
    add: bool,
    epilogue: u8,
}

impl Key {
    pub(super) fn of(product: &Product) -> Key {
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

/// A cuBLASLt matrix layout: 64 bytes in its version 13.0, 112 from 13.1 on.
#[repr(C, align(16))]
pub(super) struct Layout([u64; 32]);

impl Layout {
    pub(super) fn pointer(&mut self) -> cublasLtMatrixLayout_t {
        ptr::from_mut(self).cast()
    }
}

pub(super) fn layout(operand: Operand) -> Layout {
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
    pub(super) fn new(handle: cublasLtHandle_t, product: &Product, key: &Key) -> Option<Plan> {
        let Product { left, right, epilogue, .. } = *product;
        // SAFETY: every pointer is to a local of the type that the call takes; the created objects live as
        // long as the process.
        unsafe {
            let mut operation: cublasLtMatmulDesc_t = ptr::null_mut();
            let compute = cublasComputeType_t::CUBLAS_COMPUTE_32F;
            let created = blas::cublasLtMatmulDescCreate(&mut operation, compute, cudaDataType_t::CUDA_R_32F);
            expect("cublasLtMatmulDescCreate", created, product);
            // cuBLASLt's first operand is our right one.
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
            Some(Plan { operation, algo: find_algo(handle, operation, product, key)? })
        }
    }
}

/// # Safety
/// Handle and descriptions are cuBLASLt's.
unsafe fn find_algo(
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
        let mut candidates: [cublasLtMatmulHeuristicResult_t; MAX_ALGOS] = std::mem::zeroed();
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
            candidates.len() as i32,
            candidates.as_mut_ptr(),
            &mut count,
        );
        blas::cublasLtMatmulPreferenceDestroy(preference);
        let count = if status == cublasStatus_t::CUBLAS_STATUS_SUCCESS { count as usize } else { 0 };
        let works =
            |found: &&cublasLtMatmulHeuristicResult_t| found.state == cublasStatus_t::CUBLAS_STATUS_SUCCESS;
        candidates[..count].iter().find(works).map(|found| found.algo)
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
pub(super) unsafe fn set<T>(operation: cublasLtMatmulDesc_t, attribute: Attribute, value: &T) {
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
