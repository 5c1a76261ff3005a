// The argument of the batch-invariant GEMM kernels: y = f(x W + b).

// As in gemm_decode.rs.
struct GemmArgs {
    const void* x;
    const void* weight;
    const float* bias;      // null for none
    void* y;
    float2* block_stats;    // of an f32 y, for top-k (cuda/block_stats.cu); null for none
    u32 rows, inputs, outputs;
    u32 activation;         // 0 none, 1 ReLU, 2 GELU, 3 its tanh approximation, 4 SiLU
    u32 is_y_f32;           // otherwise bf16
    u32 unused;
};

// Not inlined: inlining it for every sum of every kernel takes long to compile.
__device__ __noinline__ float smooth_value(float x, u32 activation) {
    return activation == 2 ? Gelu::value(x) : activation == 3 ? GeluTanh::value(x) : Silu::value(x);
}
__device__ __forceinline__ float activated(float x, u32 activation) {
    if (activation == 1) return fmaxf(x, 0.0f);
    return activation ? smooth_value(x, activation) : x;
}
