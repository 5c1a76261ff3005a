// Elementwise operations, four elements for each thread. All threads of a launch take the same branch of the
// switch, so one kernel for all operations costs only a jump.

// As in blocks.rs.
enum ElementOp : u32 { ADD, SUBTRACT, MULTIPLY, SCALE, DROPOUT, TANH, TANH_SLOPE, RELU, RELU_SLOPE };

struct Elementwise {
    const void* a;
    const void* b;              // null: a again
    void* out;
    const Dropout* dropout;
    u64 n;
    u32 op;
    float factor;
};

__device__ __forceinline__ float applied(u32 op, float a, float b, float factor) {
    switch (op) {
        case ADD: return a + b;
        case SUBTRACT: return a - b;
        case MULTIPLY: return a * b;
        case SCALE:
        case DROPOUT: return a * factor;
        case TANH: return tanhf(a);
        case TANH_SLOPE: { float t = tanhf(b); return a * (1.0f - t * t); }
        case RELU: return a > 0.0f ? a : 0.0f;
        default: return b > 0.0f ? a : 0.0f;
    }
}

template <class T> __device__ __forceinline__ void read4(const T* from, u32 count, float* x) {
    if (count == 4) load4(from, x);
    else for (u32 j = 0; j < count; j++) x[j] = widen(from[j]);
}

template <class A, class B, class C> __device__ __forceinline__ void elementwise(const Elementwise& e) {
    grid_dependency_wait();
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= e.n) return;
    u32 count = (u32)min((u64)4, e.n - i);
    float a[4], b[4], factors[4];
    read4((const A*)e.a + i, count, a);
    if (!e.b) for (u32 j = 0; j < count; j++) b[j] = a[j];
    else read4((const B*)e.b + i, count, b);
    for (u32 j = 0; j < 4; j++) factors[j] = e.factor;
    if (e.op == DROPOUT) {
        Dropout dropout = dropout_of(e.dropout);
        factors4(dropout, i, factors);
    }
    for (u32 j = 0; j < count; j++) a[j] = applied(e.op, a[j], b[j], factors[j]);
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
