// Means and maxima: a thread for each column of a sequence processes its tokens in order.

struct Columns { u32 sequence, column, first, end; };

__device__ __forceinline__ Columns columns_of(const u32* offsets) {
    Columns own = {blockIdx.x, blockIdx.y * blockDim.x + threadIdx.x, offsets[blockIdx.x], offsets[blockIdx.x + 1]};
    return own;
}

template <class T> __device__ __forceinline__ void mean_pool(const T* values, T* pooled, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column >= width) return;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 row = own.first; row < own.end; row++) sum += widen(values[(u64)row * width + own.column]);
    pooled[(u64)own.sequence * width + own.column] = narrow<T>(1.0f / (own.end - own.first) * sum);
}

template <class T> __device__ __forceinline__ void mean_pool_backward(const T* g, T* dv, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column >= width) return;
    T share = narrow<T>(1.0f / (own.end - own.first) * widen(g[(u64)own.sequence * width + own.column]));
    for (u32 row = own.first; row < own.end; row++) dv[(u64)row * width + own.column] = share;
}

template <class T> __device__ __forceinline__ float largest(const T* values, const Columns& own, u32 width) {
    float top = widen(values[(u64)own.first * width + own.column]);
#pragma unroll 4
    for (u32 row = own.first + 1; row < own.end; row++) {
        float x = widen(values[(u64)row * width + own.column]);
        if (x > top || x != x) top = x;     // NaN propagates
    }
    return top;
}

template <class T> __device__ __forceinline__ void max_pool(const T* values, T* pooled, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column < width) pooled[(u64)own.sequence * width + own.column] = narrow<T>(largest(values, own, width));
}

// The first row that has the maximum takes the gradient.
template <class T> __device__ __forceinline__ void max_pool_backward(const T* values, const T* g, T* dv, const u32* offsets, u32 width) {
    Columns own = columns_of(offsets);
    if (own.column >= width) return;
    float top = largest(values, own, width);
    T left = g[(u64)own.sequence * width + own.column], none = narrow<T>(0.0f);
    for (u32 row = own.first; row < own.end; row++) {
        u64 at = (u64)row * width + own.column;
        bool reaches = widen(values[at]) == top;
        dv[at] = reaches ? left : none;
        if (reaches) left = none;
    }
}

#define PLAIN(T, name) \
    extern "C" __global__ void mean_pool_##name(const T* v, T* y, const u32* o, u32 width) { mean_pool(v, y, o, width); } \
    extern "C" __global__ void mean_pool_backward_##name(const T* g, T* dv, const u32* o, u32 width) { mean_pool_backward(g, dv, o, width); } \
    extern "C" __global__ void max_pool_##name(const T* v, T* y, const u32* o, u32 width) { max_pool(v, y, o, width); } \
    extern "C" __global__ void max_pool_backward_##name(const T* v, const T* g, T* dv, const u32* o, u32 width) { \
        max_pool_backward(v, g, dv, o, width); \
    }
PLAIN(float, f32)
PLAIN(bf16, bf16)
