// Products by the warpgroups of Hopper (four warps each): both operands lie in shared memory, the sums in registers, and the warps
// go on while they are computed.
//
// An operand lies in slabs: rows of 64 numbers (128 bytes) end to end, from an address that is a multiple of 1024 on. The hardware
// looks for piece p (16 bytes) of row r at piece p ^ (r mod 8) of that row, so that a column of pieces lies in different banks.
// Either the numbers of a row are neighbours in k, or they are those of one k, neighbours in the other direction (ACROSS).
//
// Lane 4 g + t of warp w has of 64 x N sums, for each of N / 8 blocks of columns,
//   [0], [1]: row 16 w + g, columns 2 t and 2 t + 1      [2], [3]: row 16 w + g + 8, the same columns.

// How the hardware is told where an operand begins. Eight rows of a slab are 1024 bytes; the distance between slabs (here 1) is not
// used, because no operand is more than a slab wide.
__device__ __forceinline__ u64 operand(u32 address) {
    return (u64)(address >> 4 & 0x3fff) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// What the thread has written to shared memory can be read by products after the next barrier.
__device__ __forceinline__ void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Before the first product, and whenever sums were changed by anything else.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Ends a batch of products, so that it can be waited for while those of the next one are under way.
__device__ __forceinline__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits for all but the last PENDING batches.
template <int PENDING> __device__ __forceinline__ void wait_for_products_but() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Keeps the compiler from moving what it does with the sums across this line: it does not know that products end later.
template <u32 COUNT> __device__ __forceinline__ void hold(float (&sums)[COUNT]) {
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

// sums (64 x COLUMNS) += left (64 x 16) right (16 x COLUMNS). Numbers of the operands in the text: sums come first.
#define PRODUCT_OF_WARPGROUP(COLUMNS, COUNT, LEFT, RIGHT, LIES_ACROSS)                                                       \
    template <bool ACROSS> __device__ __forceinline__ void multiply(float (&sums)[COUNT], u64 left, u64 right) {             \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n"                                                       \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32.bf16.bf16 {" NAMES_##COUNT "}, "                  \
                     "%" #LEFT ", %" #RIGHT ", adds, 1, 1, %" #LIES_ACROSS ", 0;\n}"                                         \
                     : SUMS_##COUNT(0)                                                                                       \
                     : "l"(left), "l"(right), "n"(ACROSS ? 1 : 0)                                                            \
                     : "memory");                                                                                            \
    }
PRODUCT_OF_WARPGROUP(8, 4, 4, 5, 6)
PRODUCT_OF_WARPGROUP(16, 8, 8, 9, 10)
PRODUCT_OF_WARPGROUP(32, 16, 16, 17, 18)
PRODUCT_OF_WARPGROUP(64, 32, 32, 33, 34)
PRODUCT_OF_WARPGROUP(128, 64, 64, 65, 66)
