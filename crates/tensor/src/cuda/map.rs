//! Maps of matrices: what the tensor memory accelerator copies boxes into shared memory by. From Hopper on.

use std::ptr;

use bytemuck::NoUninit;
use cudarc::driver::sys as driver;

use super::card::expect;
use super::memory::Pointer;

/// A map as kernels take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, NoUninit)]
#[repr(transparent)]
pub(crate) struct Map([u64; 16]);

impl Map {
    /// Of a bf16 matrix whose rows lie side by side, in boxes of some rows and 64 columns. The pieces of 16 bytes of a box's row
    /// are exchanged as products of warpgroups want them; what lies outside the matrix is zero. The same matrix has the same map.
    ///
    /// # Panics
    /// If a row is no multiple of 16 bytes, or the matrix does not begin at one.
    pub(crate) fn of([rows, columns]: [usize; 2], start: Pointer, rows_of_box: usize) -> Map {
        // SAFETY: a plain structure.
        let mut map: driver::CUtensorMap = unsafe { std::mem::zeroed() };
        let (sizes, stride) = ([columns as u64, rows as u64], columns as u64 * 2);
        let (size_of_box, steps) = ([64, rows_of_box as u32], [1, 1]);
        // SAFETY: every pointer is to a local, with as many numbers as there are dimensions, or one less for strides. The address
        // is only written down.
        let result = unsafe {
            driver::cuTensorMapEncodeTiled(
                &mut map,
                driver::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                2,
                ptr::with_exposed_provenance_mut(start.address() as usize),
                sizes.as_ptr(),
                &stride,
                size_of_box.as_ptr(),
                steps.as_ptr(),
                driver::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                driver::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
                driver::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                driver::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        expect("cuTensorMapEncodeTiled", result);
        Map(map.opaque)
    }
}
