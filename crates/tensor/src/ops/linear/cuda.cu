// What happens around the products of a linear map, element by element. The error function is the library's, to the last
// bits of single precision.

__device__ __forceinline__ float gelu_of(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

__device__ __forceinline__ float gelu_slope(float x) {
    float cdf = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
    return cdf + x * 0.3989422804014327f * expf(-0.5f * x * x);
}

// y = dropout(gelu(z))
template <class T> __device__ __forceinline__ void gelu(const T* z, T* y, const Dropout* given, u64 n) {
    await_earlier();
    Dropout dropout = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = narrow<T>(gelu_of(widen(z[i])) * factor(dropout, i));
}

// x = dropout(x), four neighbours a thread; the last ones one by one.
template <class T> __device__ __forceinline__ void drop(T* x, const Dropout* given, u64 n) {
    await_earlier();
    Dropout dropout = dropout_of(given);
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

// dz = dy · factor · gelu'(z)
template <class T> __device__ __forceinline__ void gelu_backward(T* gradient, const T* z, const Dropout* given, u64 n) {
    await_earlier();
    Dropout dropout = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gradient[i] = narrow<T>(widen(gradient[i]) * factor(dropout, i) * gelu_slope(widen(z[i])));
}

extern "C" __global__ void gelu_f32(const float* z, float* y, const Dropout* d, u64 n) { gelu(z, y, d, n); }
extern "C" __global__ void gelu_bf16(const bf16* z, bf16* y, const Dropout* d, u64 n) { gelu(z, y, d, n); }
extern "C" __global__ void drop_f32(float* x, const Dropout* d, u64 n) { drop(x, d, n); }
extern "C" __global__ void drop_bf16(bf16* x, const Dropout* d, u64 n) { drop(x, d, n); }
extern "C" __global__ void gelu_backward_f32(float* g, const float* z, const Dropout* d, u64 n) { gelu_backward(g, z, d, n); }
extern "C" __global__ void gelu_backward_bf16(bf16* g, const bf16* z, const Dropout* d, u64 n) { gelu_backward(g, z, d, n); }
