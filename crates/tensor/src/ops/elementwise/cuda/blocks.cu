// What is done element by element, four numbers a thread where there are four. Which step it is, is the same for all threads
// of a launch: one kernel for all of them costs a jump.

// As in blocks.rs.
enum Step : u32 {
    ADD, SUBTRACT, MULTIPLY, DIVIDE, SCALE, DROPOUT, TANH, TANH_SLOPE, SIGMOID, SIGMOID_SLOPE, RELU, RELU_SLOPE, GELU, GELU_SLOPE,
    GELU_TANH, GELU_TANH_SLOPE, SILU, SILU_SLOPE, EXP, EXP_SLOPE, LOG
};

struct Elementwise {
    const void* a;
    const void* b;              // null: a again
    void* out;
    const Dropout* dropout;
    u64 n;
    u32 row;                    // b is one row of so many numbers for every row of a; 0: b is as large as a
    u32 step;
    float factor;
    u32 unused;
};

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float normal_share(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }
__device__ __forceinline__ float gelu_inner(float x) { return tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)); }

__device__ __forceinline__ float gelu_tanh_slope(float x) {
    // Far out 1 - t*t is 0 while the square has no end: their product must not become infinity times 0.
    float t = gelu_inner(x), near = x * x < 100.0f ? x : 0.0f;
    return 0.5f * (1.0f + t) + 0.5f * near * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 0.134145f * near * near);
}

__device__ __forceinline__ float stepped(u32 step, float a, float b, float factor) {
    switch (step) {
        case ADD: return a + b;
        case SUBTRACT: return a - b;
        case MULTIPLY: return a * b;
        case DIVIDE: return a / b;
        case SCALE:
        case DROPOUT: return a * factor;
        case TANH: return tanhf(a);
        case TANH_SLOPE: { float t = tanhf(b); return a * (1.0f - t * t); }
        case SIGMOID: return sigmoid(a);
        case SIGMOID_SLOPE: return a * (sigmoid(b) * sigmoid(-b));
        case RELU: return a > 0.0f ? a : 0.0f;
        case RELU_SLOPE: return b > 0.0f ? a : 0.0f;
        case GELU: return a * normal_share(a);
        case GELU_SLOPE: return a * (normal_share(b) + b * 0.3989422804014327f * expf(-0.5f * b * b));
        case GELU_TANH: return 0.5f * a * (1.0f + gelu_inner(a));
        case GELU_TANH_SLOPE: return a * gelu_tanh_slope(b);
        case SILU: return a * sigmoid(a);
        case SILU_SLOPE: return a * (sigmoid(b) * (1.0f + b * sigmoid(-b)));
        case EXP: return expf(a);
        case EXP_SLOPE: return a * expf(b);
        default: return logf(a);
    }
}

template <class T> __device__ __forceinline__ void read4(const T* from, u32 count, float* x) {
    if (count == 4) load4(from, x);
    else for (u32 j = 0; j < count; j++) x[j] = widen(from[j]);
}

template <class A, class B, class C> __device__ __forceinline__ void elementwise(const Elementwise& e) {
    await_earlier();
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= e.n) return;
    u32 count = (u32)min((u64)4, e.n - i);
    float a[4], b[4], factors[4];
    read4((const A*)e.a + i, count, a);
    if (!e.b) for (u32 j = 0; j < count; j++) b[j] = a[j];
    else if (!e.row) read4((const B*)e.b + i, count, b);
    else for (u32 j = 0; j < count; j++) b[j] = widen(((const B*)e.b)[modulo(i + j, e.row)]);
    for (u32 j = 0; j < 4; j++) factors[j] = e.factor;
    if (e.step == DROPOUT) {
        Dropout dropout = dropout_of(e.dropout);
        factors4(dropout, i, factors);
    }
    for (u32 j = 0; j < count; j++) a[j] = stepped(e.step, a[j], b[j], factors[j]);
    C* out = (C*)e.out + i;
    if (count == 4) store4(out, a);
    else for (u32 j = 0; j < count; j++) out[j] = narrow<C>(a[j]);
}

#define ELEMENTWISE(A, B, C, a, b, c) \
    extern "C" __global__ void elementwise_##a##_##b##_to_##c(Elementwise e) { elementwise<A, B, C>(e); }
ELEMENTWISE(float, float, float, f32, f32, f32)
ELEMENTWISE(float, float, bf16, f32, f32, bf16)
ELEMENTWISE(float, bf16, float, f32, bf16, f32)
ELEMENTWISE(float, bf16, bf16, f32, bf16, bf16)
ELEMENTWISE(bf16, float, float, bf16, f32, f32)
ELEMENTWISE(bf16, float, bf16, bf16, f32, bf16)
ELEMENTWISE(bf16, bf16, float, bf16, bf16, f32)
ELEMENTWISE(bf16, bf16, bf16, bf16, bf16, bf16)
