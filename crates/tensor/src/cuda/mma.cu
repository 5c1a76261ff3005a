// Wrappers of PTX instructions without intrinsics: asynchronous copies to shared memory (cp.async), loads of
// 16 x 16 tiles from there to registers (ldmatrix), and products of such tiles (mma).
//
// A tile is distributed over a warp as the tensor cores require. Lane = 4 g + t holds of a 16 x 8 block of
// sums
//   [0], [1]: row g, columns 2 t and 2 t + 1      [2], [3]: row g + 8, the same columns.

__device__ __forceinline__ u32 shared_address(const void *at) { return (u32)__cvta_generic_to_shared(at); }

// Copies 16 bytes, or writes 16 zeros if not `real`; then `from` may be invalid.
__device__ __forceinline__ void copy16(u32 to, const void *from, bool real) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
}
// Ends a group of copies, so that it can be waited for while the next group is in flight.
__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for the thread's own copies except the latest group; a barrier must follow.
__device__ __forceinline__ void wait_for_earlier_copies() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
// As above, for all but the latest PENDING groups.
template <int PENDING> __device__ __forceinline__ void wait_for_copies_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
// Waits for all of the thread's own copies; a barrier must follow.
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// Always one instruction: for a plain assignment the compiler may emit four.
__device__ __forceinline__ void store16(void *to, const u32 (&words)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

// A barrier of some warps of a block; number 0 is __syncthreads.
__device__ __forceinline__ void barrier(u32 number, u32 threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Loads four 8 x 8 blocks: lanes 8 i .. 8 i + 7 have the addresses of the rows of block i.
__device__ __forceinline__ void load_blocks(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void load_blocks_transposed(u32 (&to)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// sums (16 x 8) += left (16 x 16) right (16 x 8).
__device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&left)[4], u32 right_low, u32 right_high) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low), "r"(right_high));
}

// 2^x, to about two units in the last place.
__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Clamps infinities to the largest finite values; NaN stays NaN.
__device__ __forceinline__ float finite(float x) {
    float y;
    asm("min.NaN.f32 %0, %1, 0f7F7FFFFF;" : "=f"(y) : "f"(x));
    asm("max.NaN.f32 %0, %0, 0fFF7FFFFF;" : "+f"(y));
    return y;
}
