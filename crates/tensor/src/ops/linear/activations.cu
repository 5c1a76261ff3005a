// The smooth activations and their slopes. The error function is CUDA's erff, accurate to the last bits of
// f32.

struct Gelu {
    static __device__ __forceinline__ float value(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
    static __device__ __forceinline__ float slope(float x) {
        float cdf = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
        return cdf + x * 0.3989422804014327f * expf(-0.5f * x * x);
    }
};

struct GeluTanh {
    static __device__ __forceinline__ float inner(float x) {
        return tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
    }
    static __device__ __forceinline__ float value(float x) { return 0.5f * x * (1.0f + inner(x)); }
    // For large |x|, 1 - t*t is 0 while x*x overflows to infinity: 0 times infinity would be NaN.
    static __device__ __forceinline__ float slope(float x) {
        float t = inner(x), near = x * x < 100.0f ? x : 0.0f;
        return 0.5f * (1.0f + t) + 0.5f * near * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 0.134145f * near * near);
    }
};

struct Silu {
    static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
    static __device__ __forceinline__ float value(float x) { return x * sigmoid(x); }
    static __device__ __forceinline__ float slope(float x) { return sigmoid(x) * (1.0f + x * sigmoid(-x)); }
};
