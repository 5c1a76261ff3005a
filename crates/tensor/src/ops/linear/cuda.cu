// What happens around the products of a linear map, element by element. The error function is the library's, to the last
// bits of single precision.

__device__ __forceinline__ float gelu_of(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

__device__ __forceinline__ float gelu_slope(float x) {
    float cdf = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
    return cdf + x * 0.3989422804014327f * expf(-0.5f * x * x);
}

// y = dropout(gelu(z))
template <class T> __device__ __forceinline__ void gelu(const T* z, T* y, Dropout dropout, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = narrow<T>(gelu_of(widen(z[i])) * factor(dropout, i));
}

// x = dropout(x), four neighbours a thread; the last ones one by one.
template <class T> __device__ __forceinline__ void drop(T* x, Dropout dropout, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float v[4], f[4];
        load4(x + i, v);
        factors4(dropout, i, f);
        for (int j = 0; j < 4; j++) v[j] *= f[j];
        store4(x + i, v);
    } else {
        for (; i < n; i++) x[i] = narrow<T>(widen(x[i]) * factor(dropout, i));
    }
}

// dz = dy · scale where y > 0: what was dropped is 0 in y as well.
template <class T> __device__ __forceinline__ void relu_backward(T* gradient, const T* y, float scale, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float g[4], passed[4];
        load4(gradient + i, g);
        load4(y + i, passed);
        for (int j = 0; j < 4; j++) g[j] = passed[j] > 0.0f ? g[j] * scale : 0.0f;
        store4(gradient + i, g);
    } else {
        for (; i < n; i++) gradient[i] = narrow<T>(widen(y[i]) > 0.0f ? widen(gradient[i]) * scale : 0.0f);
    }
}

// dz = dy · factor · gelu'(z)
template <class T> __device__ __forceinline__ void gelu_backward(T* gradient, const T* z, Dropout dropout, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gradient[i] = narrow<T>(widen(gradient[i]) * factor(dropout, i) * gelu_slope(widen(z[i])));
}

extern "C" __global__ void gelu_f32(const float* z, float* y, Dropout d, u64 n) { gelu(z, y, d, n); }
extern "C" __global__ void gelu_bf16(const bf16* z, bf16* y, Dropout d, u64 n) { gelu(z, y, d, n); }
extern "C" __global__ void drop_f32(float* x, Dropout d, u64 n) { drop(x, d, n); }
extern "C" __global__ void drop_bf16(bf16* x, Dropout d, u64 n) { drop(x, d, n); }
extern "C" __global__ void relu_backward_f32(float* g, const float* y, float scale, u64 n) { relu_backward(g, y, scale, n); }
extern "C" __global__ void relu_backward_bf16(bf16* g, const bf16* y, float scale, u64 n) { relu_backward(g, y, scale, n); }
extern "C" __global__ void gelu_backward_f32(float* g, const float* z, Dropout d, u64 n) { gelu_backward(g, z, d, n); }
extern "C" __global__ void gelu_backward_bf16(bf16* g, const bf16* z, Dropout d, u64 n) { gelu_backward(g, z, d, n); }
