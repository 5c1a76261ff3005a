// Type conversions and sums of arrays, four elements per thread.

template <class A, class B> __device__ __forceinline__ void convert(const A* from, B* to, u64 n) {
    grid_dependency_wait();
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
    grid_dependency_wait();
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

// One reduction job.
struct ReduceJob {
    const float* partial;       // rows of partial sums, `stride` apart
    float* out;
    u32 parts, stride, width;
    u32 is_added;               // to the existing values
};

// Reduces rows of partial sums, for many jobs at once. A block has 32 columns of one job.
extern "C" __global__ void reduce_partial_sums(const ReduceJob* jobs, const u32* blocks) {
    grid_dependency_wait();
    ReduceJob a = jobs[blocks[2 * blockIdx.x]];
    u32 column = blocks[2 * blockIdx.x + 1] + threadIdx.x % 32, lane = threadIdx.x / 32;
    // Eight warps sum neighbouring eighths, which are then added in order.
    u32 share = (a.parts + 7) / 8;
    float sum = 0.0f;
    if (column < a.width)
#pragma unroll 16
        for (u32 part = lane * share; part < min((lane + 1) * share, a.parts); part++)
            sum += a.partial[(u64)part * a.stride + column];
    __shared__ float sums[8][33];
    sums[lane][threadIdx.x % 32] = sum;
    __syncthreads();
    if (lane == 0 && column < a.width) {
        for (u32 other = 1; other < 8; other++) sum += sums[other][threadIdx.x];
        a.out[column] = a.is_added ? a.out[column] + sum : sum;
    }
}
