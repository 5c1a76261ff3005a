// Copies of blocks and rows in the largest possible units, and scattered rows.

// A block of rows of `units` units each; strides are in units too.
template <class T>
__device__ __forceinline__ void copy_block(const T* from, T* to, u64 from_stride, u64 to_stride, u32 rows, u32 units) {
    grid_dependency_wait();
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 row = quotient(i, units), unit = i - row * units;
    if (row < rows) to[row * to_stride + unit] = from[row * from_stride + unit];
}
#define COPY_BLOCK(T, bytes) \
    extern "C" __global__ void copy_block_##bytes(const T* from, T* to, u64 from_stride, u64 to_stride, u32 rows, u32 units) { \
        copy_block(from, to, from_stride, to_stride, rows, units); \
    }
COPY_BLOCK(u16, 2)
COPY_BLOCK(u32, 4)
COPY_BLOCK(uint2, 8)
COPY_BLOCK(uint4, 16)

// One warp for each row: row `sources[i]` as row i.
template <class T> __device__ __forceinline__ void gather_rows(const T* from, T* to, const u32* sources, u32 rows, u32 units) {
    grid_dependency_wait();
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    from += (u64)sources[row] * units;
    to += (u64)row * units;
    for (u32 unit = threadIdx.x % 32; unit < units; unit += 32) to[unit] = from[unit];
}
#define GATHER_ROWS(T, bytes) \
    extern "C" __global__ void gather_rows_##bytes(const T* from, T* to, const u32* sources, u32 rows, u32 units) { \
        gather_rows(from, to, sources, rows, units); \
    }
GATHER_ROWS(u16, 2)
GATHER_ROWS(u32, 4)
GATHER_ROWS(uint2, 8)
GATHER_ROWS(uint4, 16)

// One warp for each row of the sums: adds its rows of g in order; without any it writes zeros. Row r has the
// sources sources[starts[r]] to sources[starts[r + 1] - 1].
template <class T>
__device__ __forceinline__ void scatter_rows(const T* g, float* sums, const u32* starts, const u32* sources, u32 rows, u32 width) {
    grid_dependency_wait();
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    u32 first = starts[row], end = starts[row + 1];
    for (u32 column = threadIdx.x % 32; column < width; column += 32) {
        float sum = 0.0f;
        for (u32 i = first; i < end; i++) sum += widen(g[(u64)sources[i] * width + column]);
        sums[(u64)row * width + column] = sum;
    }
}
extern "C" __global__ void scatter_rows_f32(const float* g, float* sums, const u32* starts, const u32* sources, u32 rows, u32 width) {
    scatter_rows(g, sums, starts, sources, rows, width);
}
extern "C" __global__ void scatter_rows_bf16(const bf16* g, float* sums, const u32* starts, const u32* sources, u32 rows, u32 width) {
    scatter_rows(g, sums, starts, sources, rows, width);
}
