// Changes of type and sums of arrays, four numbers a thread where there are four.

template <class A, class B> __device__ __forceinline__ void convert(const A* from, B* to, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float v[4];
        load4(from + i, v);
        store4(to + i, v);
    } else {
        for (; i < n; i++) to[i] = narrow<B>(widen(from[i]));
    }
}

template <class A, class B> __device__ __forceinline__ void add(A* sum, const B* other, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float a[4], b[4];
        load4(sum + i, a);
        load4(other + i, b);
        for (int j = 0; j < 4; j++) a[j] += b[j];
        store4(sum + i, a);
    } else {
        for (; i < n; i++) sum[i] = narrow<A>(widen(sum[i]) + widen(other[i]));
    }
}

extern "C" __global__ void f32_to_f32(const float* from, float* to, u64 n) { convert(from, to, n); }
extern "C" __global__ void f32_to_bf16(const float* from, bf16* to, u64 n) { convert(from, to, n); }
extern "C" __global__ void bf16_to_f32(const bf16* from, float* to, u64 n) { convert(from, to, n); }
extern "C" __global__ void bf16_to_bf16(const bf16* from, bf16* to, u64 n) { convert(from, to, n); }

extern "C" __global__ void add_f32_to_f32(float* sum, const float* other, u64 n) { add(sum, other, n); }
extern "C" __global__ void add_bf16_to_f32(float* sum, const bf16* other, u64 n) { add(sum, other, n); }
extern "C" __global__ void add_f32_to_bf16(bf16* sum, const float* other, u64 n) { add(sum, other, n); }
extern "C" __global__ void add_bf16_to_bf16(bf16* sum, const bf16* other, u64 n) { add(sum, other, n); }

// Sums over rows: each block sums `part` rows of 128 columns, a warp every eighth of them; a second kernel joins the blocks'
// sums in order.
template <class T> __device__ __forceinline__ void column_sums(const T* x, float* partial, u32 rows, u32 width, u32 part) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 column = blockIdx.x * 128 + 4 * lane, first = blockIdx.y * part;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    bool is_whole = width % 4 == 0;
    if (column < width)
#pragma unroll 4
        for (u32 row = first + warp; row < min(first + part, rows); row += 8) {
            const T* at = x + (u64)row * width + column;
            float v[4];
            if (is_whole) load4(at, v);
            else for (u32 j = 0; j < 4; j++) v[j] = column + j < width ? widen(at[j]) : 0.0f;
            for (u32 j = 0; j < 4; j++) sum[j] += v[j];
        }
    __shared__ float sums[8][128];
    for (u32 j = 0; j < 4; j++) sums[warp][4 * lane + j] = sum[j];
    __syncthreads();
    u32 own = blockIdx.x * 128 + threadIdx.x;
    if (threadIdx.x < 128 && own < width) {
        float total = 0.0f;
        for (u32 other = 0; other < 8; other++) total += sums[other][threadIdx.x];
        partial[(u64)blockIdx.y * width + own] = total;
    }
}
extern "C" __global__ void column_sums_f32(const float* x, float* partial, u32 rows, u32 width, u32 part) { column_sums(x, partial, rows, width, part); }
extern "C" __global__ void column_sums_bf16(const bf16* x, float* partial, u32 rows, u32 width, u32 part) { column_sums(x, partial, rows, width, part); }

// Joins `parts` rows of partial sums, `stride` apart, into `out`, which they are added to if `add` is not 0.
extern "C" __global__ void join(const float* partial, float* out, u32 parts, u32 stride, u32 width, u32 add) {
    u32 column = blockIdx.x * 32 + threadIdx.x % 32, lane = threadIdx.x / 32;
    // Eight lanes take neighbouring eighths, which are then added in order.
    u32 share = (parts + 7) / 8;
    float sum = 0.0f;
    if (column < width)
        for (u32 part = lane * share; part < min((lane + 1) * share, parts); part++) sum += partial[(u64)part * stride + column];
    __shared__ float sums[8][33];
    sums[lane][threadIdx.x % 32] = sum;
    __syncthreads();
    if (lane == 0 && column < width) {
        for (u32 other = 1; other < 8; other++) sum += sums[other][threadIdx.x];
        out[column] = add ? out[column] + sum : sum;
    }
}
