// The elementwise kernels of a linear layer: activations, dropout and their gradients.

// y = dropout(f(z))
template <class F, class T> __device__ __forceinline__ void smooth(const T* z, T* y, const Dropout* given, u64 n) {
    grid_dependency_wait();
    Dropout dropout = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = narrow<T>(F::value(widen(z[i])) * factor(dropout, i));
}

// x = dropout(x), four neighbouring elements for each thread; the last ones one by one.
template <class T> __device__ __forceinline__ void drop(T* x, const Dropout* given, u64 n) {
    grid_dependency_wait();
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

// dz = dy · factor · f'(z)
template <class F, class T>
__device__ __forceinline__ void smooth_backward(T* gradient, const T* z, const Dropout* given, u64 n) {
    grid_dependency_wait();
    Dropout dropout = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) gradient[i] = narrow<T>(widen(gradient[i]) * factor(dropout, i) * F::slope(widen(z[i])));
}

#define SMOOTH(NAME, F, KIND, T)                                                                                      \
    extern "C" __global__ void NAME##_##KIND(const T* z, T* y, const Dropout* d, u64 n) { smooth<F>(z, y, d, n); }     \
    extern "C" __global__ void NAME##_backward_##KIND(T* g, const T* z, const Dropout* d, u64 n) {                     \
        smooth_backward<F>(g, z, d, n);                                                                               \
    }
SMOOTH(gelu, Gelu, f32, float)
SMOOTH(gelu, Gelu, bf16, bf16)
SMOOTH(gelu_tanh, GeluTanh, f32, float)
SMOOTH(gelu_tanh, GeluTanh, bf16, bf16)
SMOOTH(silu, Silu, f32, float)
SMOOTH(silu, Silu, bf16, bf16)

extern "C" __global__ void drop_f32(float* x, const Dropout* d, u64 n) { drop(x, d, n); }
extern "C" __global__ void drop_bf16(bf16* x, const Dropout* d, u64 n) { drop(x, d, n); }
