// The state before each token, rounded: the left factor of the weight's gradient. A row has gridDim.y blocks. A thread copies
// eight neighbouring units at a time if the width is a multiple of eight.
template <int COUNT, class T> __device__ __forceinline__ void copy_units(const float* from, T* to) {
    float h[COUNT] = {};
    if constexpr (COUNT == 8) {
        if (from) load4(from, h), load4(from + 4, h + 4);
        store4(to, h), store4(to + 4, h + 4);
    } else {
        if (from) h[0] = *from;
        *to = narrow<T>(h[0]);
    }
}

template <int COUNT, class T> __device__ __forceinline__ void states_before(const Layer& a, uint4 row, T* to, u32 d) {
    u32 pieces = d / COUNT, all = row.y * pieces;
    for (u32 i = blockIdx.y * blockDim.x + threadIdx.x; i < all; i += gridDim.y * blockDim.x) {
        u32 step = i / pieces, unit = i % pieces * COUNT;
        const float* from = nullptr;
        if (step > 0) from = a.outputs + (u64)token_of(row, step - 1, a.is_reversed) * d + unit;
        else if (a.initial_h) from = a.initial_h + (u64)row.z * d + unit;
        copy_units<COUNT>(from, to + (u64)token_of(row, step, a.is_reversed) * d + unit);
    }
}
template <class T> __device__ __forceinline__ void states_before(const Layer& a, Rows rows, const u32* count, T* to, u32 d) {
    if (blockIdx.x >= *count) return;
    if (d % 8 == 0) states_before<8>(a, rows[blockIdx.x], to, d);
    else states_before<1>(a, rows[blockIdx.x], to, d);
}
extern "C" __global__ void states_before_f32(Layer a, Rows rows, const u32* count, float* to, u32 d) {
    states_before(a, rows, count, to, d);
}
extern "C" __global__ void states_before_bf16(Layer a, Rows rows, const u32* count, bf16* to, u32 d) {
    states_before(a, rows, count, to, d);
}
