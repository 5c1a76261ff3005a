// A thread for each column of a sequence processes its tokens in order. x = [v | a] by tokens; the threads read all columns of a
// token together, and each depends only on its own column.

__device__ __forceinline__ float gate(float a) { return 1.0f / (1.0f + expf(-a)); }

template <class T>
__device__ __forceinline__ void ssru(const T* x, const float* initial, float* c, const u32* offsets, u32 d) {
    u32 sequence = blockIdx.x, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (column >= d) return;
    u32 first = offsets[sequence], end = offsets[sequence + 1];
    if (first == end) return;   // there may be more blocks than sequences
    float state = initial ? initial[(u64)sequence * d + column] : 0.0f;
#pragma unroll 4
    for (u32 token = first; token < end; token++) {
        const T* row = x + (u64)token * 2 * d;
        float forget = gate(widen(row[d + column]));
        state = forget * state + (1.0f - forget) * widen(row[column]);
        c[(u64)token * d + column] = state;
    }
}

template <class T>
__device__ __forceinline__ void ssru_backward(const T* x, const float* c, const float* g, T* dx, const u32* offsets, u32 d) {
    u32 sequence = blockIdx.x, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (column >= d) return;
    u32 first = offsets[sequence], end = offsets[sequence + 1];
    float carried = 0.0f;       // f_{t+1} times δc_{t+1}
#pragma unroll 4
    for (u32 token = end; token > first;) {
        token--;
        const T* row = x + (u64)token * 2 * d;
        T* to = dx + (u64)token * 2 * d;
        float before = token == first ? 0.0f : c[(u64)(token - 1) * d + column];
        float forget = gate(widen(row[d + column])), delta = g[(u64)token * d + column] + carried;
        // c = f c_before + (1 - f) v
        to[column] = narrow<T>(delta * (1.0f - forget));
        to[d + column] = narrow<T>(delta * (before - widen(row[column])) * (forget * (1.0f - forget)));
        carried = forget * delta;
    }
}

extern "C" __global__ void ssru_f32(const float* x, const float* initial, float* c, const u32* offsets, u32 d) { ssru(x, initial, c, offsets, d); }
extern "C" __global__ void ssru_bf16(const bf16* x, const float* initial, float* c, const u32* offsets, u32 d) { ssru(x, initial, c, offsets, d); }
extern "C" __global__ void ssru_backward_f32(const float* x, const float* c, const float* g, float* dx, const u32* offsets, u32 d) {
    ssru_backward(x, c, g, dx, offsets, d);
}
extern "C" __global__ void ssru_backward_bf16(const bf16* x, const float* c, const float* g, bf16* dx, const u32* offsets, u32 d) {
    ssru_backward(x, c, g, dx, offsets, d);
}
