// What kernels for one row as for thousands are asked to compute: y = f(x W + b).

// As in few.rs.
struct Job {
    const void* x;
    const void* weight;
    const float* bias;      // null for none
    void* y;
    float2* marks;          // of a y that is f32, for top-k (cuda/marks.cu); null for none
    u32 rows, inputs, outputs;
    u32 activation;         // 0 none, 1 ReLU, 2 GELU, 3 its approximation, 4 SiLU
    u32 is_wide;            // whether y is f32
    u32 unused;
};

// Not a part of every kernel as often as it has sums: that takes long to compile.
__device__ __noinline__ float smooth_value(float x, u32 activation) {
    return activation == 2 ? Gelu::value(x) : activation == 3 ? GeluTanh::value(x) : Silu::value(x);
}
__device__ __forceinline__ float activated(float x, u32 activation) {
    if (activation == 1) return fmaxf(x, 0.0f);
    return activation ? smooth_value(x, activation) : x;
}
