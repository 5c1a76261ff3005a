// Hopper's warpgroup MMA (wgmma; four warps): both operands are in shared memory, the sums in registers, and
// the MMAs run asynchronously.
//
// An operand consists of slabs: contiguous rows of 64 elements (128 bytes), at an address that is a multiple
// of 1024. With the 128-byte swizzle, chunk p (16 bytes) of row r is stored at chunk p ^ (r mod 8) of that
// row, so that a column of chunks lies in different banks. A row has either consecutive elements along k
// (K-major) or consecutive elements of one k (MN_MAJOR).
//
// Of 64 x N sums, lane 4 g + t of warp w has, for each of the N / 8 blocks of columns,
//   [0], [1]: row 16 w + g, columns 2 t and 2 t + 1      [2], [3]: row 16 w + g + 8, the same columns.

// The matrix descriptor of an operand. The stride of eight rows is 1024 bytes; the offset between slabs (here
// 1) is not used, because no operand is wider than a slab.
__device__ __forceinline__ u64 operand(u32 address) {
    return (u64)(address >> 4 & 0x3fff) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// Makes the thread's writes to shared memory visible to MMAs after the next barrier.
__device__ __forceinline__ void make_visible_to_mma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Required before the first MMA, and after other instructions have written the sums.
__device__ __forceinline__ void begin_mma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Commits the MMAs issued so far as one group, which can be waited for while the next group runs.
__device__ __forceinline__ void commit_mma() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits for all but the last PENDING groups.
template <int PENDING> __device__ __forceinline__ void wait_for_mma_but() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving accesses to the sums across this line: MMAs write them asynchronously, which it
// cannot see.
template <u32 COUNT> __device__ __forceinline__ void pin_registers(float (&sums)[COUNT]) {
    #pragma unroll
    for (u32 i = 0; i < COUNT; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

#define NAMES_4 "%0, %1, %2, %3"
#define NAMES_8 NAMES_4 ", %4, %5, %6, %7"
#define NAMES_16 NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NAMES_32 NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64 NAMES_32 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
    ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SUMS_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define SUMS_8(i) SUMS_4(i), SUMS_4(i + 4)
#define SUMS_16(i) SUMS_8(i), SUMS_8(i + 8)
#define SUMS_32(i) SUMS_16(i), SUMS_16(i + 16)
#define SUMS_64(i) SUMS_32(i), SUMS_32(i + 32)

// sums (64 x COLUMNS) += left (64 x 16) right (16 x COLUMNS). LEFT, RIGHT and LAYOUT are operand indices in
// the asm text, which begins with the sums.
#define WGMMA(COLUMNS, COUNT, LEFT, RIGHT, LAYOUT)                                                                           \
    template <bool MN_MAJOR> __device__ __forceinline__ void multiply(float (&sums)[COUNT], u64 left, u64 right) {           \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n"                                                        \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32.bf16.bf16 {" NAMES_##COUNT "}, "                  \
                     "%" #LEFT ", %" #RIGHT ", adds, 1, 1, %" #LAYOUT ", 0;\n}"                                              \
                     : SUMS_##COUNT(0)                                                                                       \
                     : "l"(left), "l"(right), "n"(MN_MAJOR ? 1 : 0)                                                          \
                     : "memory");                                                                                            \
    }
WGMMA(8, 4, 4, 5, 6)
WGMMA(16, 8, 8, 9, 10)
WGMMA(32, 16, 16, 17, 18)
WGMMA(64, 32, 32, 33, 34)
WGMMA(128, 64, 64, 65, 66)
