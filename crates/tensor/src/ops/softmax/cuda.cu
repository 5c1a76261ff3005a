// Softmax of a row by a block of 256 threads. A row of only -inf becomes NaN, and the guard rejects the
// update.

template <class T> __device__ __forceinline__ void softmax(const T* x, float* y, u32 width) {
    x += (u64)blockIdx.x * width;
    y += (u64)blockIdx.x * width;
    float top = __uint_as_float(0xff800000u), sum = 0.0f;
    for (u32 i = threadIdx.x; i < width; i += 256) top = fmaxf(top, widen(x[i]));
    top = max_of_block(top);
    for (u32 i = threadIdx.x; i < width; i += 256) {
        float e = expf(widen(x[i]) - top);
        sum += e;
        y[i] = e;
    }
    sum = sum_of_block(sum);
    float scale = 1.0f / sum;
    for (u32 i = threadIdx.x; i < width; i += 256) y[i] *= scale;
}
extern "C" __global__ void __launch_bounds__(256) softmax_f32(const float* x, float* y, u32 width) { softmax(x, y, width); }
extern "C" __global__ void __launch_bounds__(256) softmax_bf16(const bf16* x, float* y, u32 width) { softmax(x, y, width); }

// dx from dy, in place, given the probabilities.
extern "C" __global__ void __launch_bounds__(256) softmax_backward(const float* p, float* g, u32 width) {
    p += (u64)blockIdx.x * width;
    g += (u64)blockIdx.x * width;
    float sum = 0.0f;
    for (u32 i = threadIdx.x; i < width; i += 256) sum += p[i] * g[i];
    sum = sum_of_block(sum);
    for (u32 i = threadIdx.x; i < width; i += 256) g[i] = p[i] * (g[i] - sum);
}
