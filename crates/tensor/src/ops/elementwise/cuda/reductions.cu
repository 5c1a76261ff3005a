// Sums in one fixed order, and their backward broadcasts.

// Every block sums 16,384 neighbouring elements: a thread every 256th of them, then a tree over the threads.
template <class T> __device__ __forceinline__ void sum_parts(const T* x, double* partial, u64 n) {
    grid_dependency_wait();
    __shared__ double sums[256];
    u64 first = (u64)blockIdx.x * 16384, end = min(first + 16384, n);
    double sum = 0.0;
    for (u64 i = first + threadIdx.x; i < end; i += 256) sum += (double)widen(x[i]);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
extern "C" __global__ void sum_parts_f32(const float* x, double* partial, u64 n) { sum_parts(x, partial, n); }
extern "C" __global__ void sum_parts_bf16(const bf16* x, double* partial, u64 n) { sum_parts(x, partial, n); }

// One warp: the sum of the partial sums.
extern "C" __global__ void sum_total(const double* partial, float* total, u32 parts) {
    grid_dependency_wait();
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < parts; i += 32) sum += partial[i];
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) total[0] = (float)sum;
}

// One warp for each row.
template <class T> __device__ __forceinline__ void row_sums(const T* x, float* sums, u32 rows, u32 width) {
    grid_dependency_wait();
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (u32 column = threadIdx.x % 32; column < width; column += 32) sum += widen(x[(u64)row * width + column]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[row] = sum;
}
extern "C" __global__ void row_sums_f32(const float* x, float* sums, u32 rows, u32 width) { row_sums(x, sums, rows, width); }
extern "C" __global__ void row_sums_bf16(const bf16* x, float* sums, u32 rows, u32 width) { row_sums(x, sums, rows, width); }

// to[i] = from[i / each % count]: repeats every element `each` times, and then the whole cyclically.
extern "C" __global__ void broadcast(const float* from, float* to, u64 n, u32 each, u32 count) {
    grid_dependency_wait();
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    to[i] = from[modulo(quotient(i, each), count)];
}
