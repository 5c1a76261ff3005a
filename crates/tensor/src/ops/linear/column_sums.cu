// Sums over rows: each block sums `part` rows of 256 columns, a warp every eighth of them, and writes one row
// of `partial`. The rows of `partial` are added up later, those of all sums of a step at once.

// The sums of a thread: eight neighbouring columns.
struct Columns { float at[8]; };

template <class T> __device__ __forceinline__ void load_columns(const T* from, u32 column, u32 width, float* x) {
    if (width % 8 == 0) {
        load4(from + column, x);
        load4(from + column + 4, x + 4);
    } else {
        for (u32 j = 0; j < 8; j++) x[j] = column + j < width ? widen(from[column + j]) : 0.0f;
    }
}
template <> __device__ __forceinline__ void load_columns<bf16>(const bf16* from, u32 column, u32 width, float* x) {
    if (width % 8 == 0) {
        uint4 v = *(const uint4*)(from + column);
        x[0] = low_of(v.x), x[1] = high_of(v.x), x[2] = low_of(v.y), x[3] = high_of(v.y);
        x[4] = low_of(v.z), x[5] = high_of(v.z), x[6] = low_of(v.w), x[7] = high_of(v.w);
    } else {
        for (u32 j = 0; j < 8; j++) x[j] = column + j < width ? widen(from[column + j]) : 0.0f;
    }
}
template <class T> __device__ __forceinline__ void store_columns(T* to, u32 column, u32 width, const float* x) {
    if (width % 8 == 0) {
        store4(to + column, x);
        store4(to + column + 4, x + 4);
    } else {
        for (u32 j = 0; j < 8; j++)
            if (column + j < width) to[column + j] = narrow<T>(x[j]);
    }
}
template <> __device__ __forceinline__ void store_columns<bf16>(bf16* to, u32 column, u32 width, const float* x) {
    if (width % 8 == 0) {
        *(uint4*)(to + column) =
            make_uint4(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7]));
    } else {
        for (u32 j = 0; j < 8; j++)
            if (column + j < width) to[column + j] = narrow<bf16>(x[j]);
    }
}

// Adds the sums of a block's eight warps in order.
__device__ __forceinline__ void write_partial(const Columns& sum, float* partial, u32 width) {
    __shared__ float sums[8][257];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u32 j = 0; j < 8; j++) sums[warp][8 * lane + j] = sum.at[j];
    __syncthreads();
    u32 own = blockIdx.x * 256 + threadIdx.x;
    if (own >= width) return;
    float total = 0.0f;
    for (u32 other = 0; other < 8; other++) total += sums[other][threadIdx.x];
    partial[(u64)blockIdx.y * width + own] = total;
}

template <class T> __device__ __forceinline__ void column_sums(const T* x, float* partial, u32 rows, u32 width, u32 part) {
    grid_dependency_wait();
    u32 column = blockIdx.x * 256 + 8 * (threadIdx.x % 32), first = blockIdx.y * part, end = min(first + part, rows);
    Columns sum = {};
    if (column < width)
#pragma unroll 4
        for (u32 row = first + threadIdx.x / 32; row < end; row += 8) {
            float v[8];
            load_columns(x + (u64)row * width, column, width, v);
            for (u32 j = 0; j < 8; j++) sum.at[j] += v[j];
        }
    write_partial(sum, partial, width);
}
extern "C" __global__ void __launch_bounds__(256) column_sums_f32(const float* x, float* partial, u32 rows, u32 width, u32 part) { column_sums(x, partial, rows, width, part); }
extern "C" __global__ void __launch_bounds__(256) column_sums_bf16(const bf16* x, float* partial, u32 rows, u32 width, u32 part) { column_sums(x, partial, rows, width, part); }

// dz = dy · scale where y > 0, and its column sums. Dropped elements are 0 in y as well.
template <class T>
__device__ __forceinline__ void relu_backward(T* gradient, const T* y, float* partial, u32 rows, u32 width, u32 part, float scale) {
    grid_dependency_wait();
    u32 column = blockIdx.x * 256 + 8 * (threadIdx.x % 32), first = blockIdx.y * part, end = min(first + part, rows);
    Columns sum = {};
    if (column < width)
#pragma unroll 2
        for (u32 row = first + threadIdx.x / 32; row < end; row += 8) {
            u64 start = (u64)row * width;
            float g[8], output[8];
            load_columns((const T*)gradient + start, column, width, g);
            load_columns(y + start, column, width, output);
            for (u32 j = 0; j < 8; j++) {
                g[j] = output[j] > 0.0f ? g[j] * scale : 0.0f;
                sum.at[j] += g[j];
            }
            store_columns(gradient + start, column, width, g);
        }
    write_partial(sum, partial, width);
}
extern "C" __global__ void __launch_bounds__(256) relu_backward_f32(float* g, const float* y, float* partial, u32 rows, u32 width, u32 part, float scale) { relu_backward(g, y, partial, rows, width, part, scale); }
extern "C" __global__ void __launch_bounds__(256) relu_backward_bf16(bf16* g, const bf16* y, float* partial, u32 rows, u32 width, u32 part, float scale) { relu_backward(g, y, partial, rows, width, part, scale); }
