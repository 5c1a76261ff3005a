// One thread for each element of y. The rows of x are [a | b].

__device__ __forceinline__ float sigmoid(float b) { return 1.0f / (1.0f + expf(-b)); }

// The index of a for element i of y; b is `width` elements behind it. `width` is that of one half.
__device__ __forceinline__ u64 index_of_a(u64 i, u32 width) { return i + quotient(i, width) * width; }

template <class T> __device__ __forceinline__ void glu(const T* x, T* y, u32 width, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 at = index_of_a(i, width);
    y[i] = narrow<T>(widen(x[at]) * sigmoid(widen(x[at + width])));
}

template <class T> __device__ __forceinline__ void glu_backward(const T* x, const T* g, T* dx, u32 width, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 at = index_of_a(i, width);
    // y = a σ(b)
    float dy = widen(g[i]), gate = sigmoid(widen(x[at + width]));
    dx[at] = narrow<T>(dy * gate);
    dx[at + width] = narrow<T>(dy * widen(x[at]) * (gate * (1.0f - gate)));
}

extern "C" __global__ void glu_f32(const float* x, float* y, u32 width, u64 n) { glu(x, y, width, n); }
extern "C" __global__ void glu_bf16(const bf16* x, bf16* y, u32 width, u64 n) { glu(x, y, width, n); }
extern "C" __global__ void glu_backward_f32(const float* x, const float* g, float* dx, u32 width, u64 n) { glu_backward(x, g, dx, width, n); }
extern "C" __global__ void glu_backward_bf16(const bf16* x, const bf16* g, bf16* dx, u32 width, u64 n) { glu_backward(x, g, dx, width, n); }
