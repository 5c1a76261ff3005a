// The state before each token, rounded: the left side of the weight's gradient. A block has a row; blocks beside it share it.
template <class T> __device__ __forceinline__ void states_before(const Layer& a, Rows rows, const u32* count, T* to, u32 d) {
    if (blockIdx.x >= *count) return;
    uint4 row = rows[blockIdx.x];
    for (u64 i = (u64)blockIdx.y * blockDim.x + threadIdx.x; i < (u64)row.y * d; i += (u64)gridDim.y * blockDim.x) {
        u32 step = (u32)(i / d), unit = (u32)(i % d);
        u64 at = (u64)token_of(row, step, a.is_reversed) * d + unit;
        float h = 0.0f;
        if (step > 0) h = a.outputs[(u64)token_of(row, step - 1, a.is_reversed) * d + unit];
        else if (a.initial_h) h = a.initial_h[(u64)row.z * d + unit];
        to[at] = narrow<T>(h);
    }
}
extern "C" __global__ void states_before_f32(Layer a, Rows rows, const u32* count, float* to, u32 d) {
    states_before(a, rows, count, to, d);
}
extern "C" __global__ void states_before_bf16(Layer a, Rows rows, const u32* count, bf16* to, u32 d) {
    states_before(a, rows, count, to, d);
}
