// Attention pooling: a block of 256 threads for each sequence.

// Softmax of the scores of a sequence. Without a score above -inf it is NaN, which no update is made from.
template <class S> __device__ __forceinline__ void pool_weights(const S* scores, float* weights, const u32* offsets) {
    u32 first = offsets[blockIdx.x], end = offsets[blockIdx.x + 1];
    float top = __uint_as_float(0xff800000u), sum = 0.0f;
    for (u32 i = first + threadIdx.x; i < end; i += 256) top = fmaxf(top, widen(scores[i]));
    top = max_of_block(top);
    for (u32 i = first + threadIdx.x; i < end; i += 256) {
        float power = expf(widen(scores[i]) - top);
        weights[i] = power;
        sum += power;
    }
    sum = sum_of_block(sum);
    for (u32 i = first + threadIdx.x; i < end; i += 256) weights[i] /= sum;
}
extern "C" __global__ void __launch_bounds__(256) pool_weights_f32(const float* s, float* w, const u32* o) { pool_weights(s, w, o); }
extern "C" __global__ void __launch_bounds__(256) pool_weights_bf16(const bf16* s, float* w, const u32* o) { pool_weights(s, w, o); }

// y = Σ α v, a thread for each column.
template <class T> __device__ __forceinline__ void pool_sums(const float* weights, const T* values, T* pooled, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column >= width) return;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 row = own.first; row < own.end; row++) sum += weights[row] * widen(values[(u64)row * width + own.column]);
    pooled[(u64)own.sequence * width + own.column] = narrow<T>(sum);
}

// dv = α dy
template <class T> __device__ __forceinline__ void pool_value_gradient(const float* weights, const T* g, T* dv, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column >= width) return;
    float dy = widen(g[(u64)own.sequence * width + own.column]);
    for (u32 row = own.first; row < own.end; row++) dv[(u64)row * width + own.column] = narrow<T>(weights[row] * dy);
}

// ds = α (dα - Σ α dα) with dα = dy v: a warp for each token, then all of them.
template <class T>
__device__ __forceinline__ void pool_score_gradient(const float* weights, const T* g, const T* values, float* ds, const u32* offsets, u32 width) {
    u32 first = offsets[blockIdx.x], end = offsets[blockIdx.x + 1], lane = threadIdx.x % 32;
    const T* dy = g + (u64)blockIdx.x * width;
    for (u32 row = first + threadIdx.x / 32; row < end; row += 8) {
        float sum = 0.0f;
        for (u32 column = lane; column < width; column += 32) sum += widen(dy[column]) * widen(values[(u64)row * width + column]);
        sum = warp_sum(sum);
        if (lane == 0) ds[row] = sum;
    }
    __syncthreads();
    float along = 0.0f;
    for (u32 i = first + threadIdx.x; i < end; i += 256) along += weights[i] * ds[i];
    along = sum_of_block(along);
    for (u32 i = first + threadIdx.x; i < end; i += 256) ds[i] = weights[i] * (ds[i] - along);
}

#define ATTENTION(T, name) \
    extern "C" __global__ void pool_sums_##name(const float* w, const T* v, T* y, const u32* o, u32 width) { pool_sums(w, v, y, o, width); } \
    extern "C" __global__ void pool_value_gradient_##name(const float* w, const T* g, T* dv, const u32* o, u32 width) { \
        pool_value_gradient(w, g, dv, o, width); \
    } \
    extern "C" __global__ void __launch_bounds__(256) pool_score_gradient_##name(const float* w, const T* g, const T* v, float* ds, const u32* o, u32 width) { \
        pool_score_gradient(w, g, v, ds, o, width); \
    }
ATTENTION(float, f32)
ATTENTION(bf16, bf16)
