// Attention of all tokens at once, of rows with their own sources, and the gradients of keys and values.

// The sequence of a row, by binary search.
__device__ __forceinline__ u32 sequence_of(const u32* offsets, u32 sequences, u32 row) {
    u32 low = 0, high = sequences;      // offsets[low] <= row < offsets[high]
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (offsets[middle] <= row) low = middle;
        else high = middle;
    }
    return low;
}

template <class T>
__device__ __forceinline__ void attend_tokens(const Attention& a, const u32* targets, const u32* sequences) {
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) float scratch[];
    u32 token = blockIdx.x, sequence = sequence_of(targets, *sequences, token);
    for (u32 i = threadIdx.x; i < a.key_width; i += blockDim.x) scratch[i] = a.queries[(u64)token * a.key_width + i];
    __syncthreads();
    attend<T, F>(a, source_of<T>(a, sequence, token - targets[sequence]), token, scratch);
}

template <class T>
__device__ __forceinline__ void attend_tokens_backward(const Attention& a, const u32* targets, const u32* sequences) {
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) float scratch[];
    u32 token = blockIdx.x, sequence = sequence_of(targets, *sequences, token);
    for (u32 i = threadIdx.x; i < a.value_width; i += blockDim.x) scratch[i] = a.d_contexts[(u64)token * a.value_width + i];
    attend_backward<T, F>(a, source_of<T>(a, sequence, token - targets[sequence]), token, scratch);
}

// The source of one row.
struct RowSource {
    const void *keys, *values;
    u64 n;
};

template <class T> __device__ __forceinline__ void attend_rows(const Attention& a, const RowSource* sources) {
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) float scratch[];
    u32 row = blockIdx.x;
    for (u32 i = threadIdx.x; i < a.key_width; i += blockDim.x) scratch[i] = a.queries[(u64)row * a.key_width + i];
    __syncthreads();
    RowSource from = sources[row];
    Source<T> source = {(const T*)from.keys, (const T*)from.values, (u32)from.n, 0};
    attend<T, F>(a, source, row, scratch);
}

// The gradients of one token of a source, summed over the target's tokens in their order, and its part of the gradient of the
// additive score's weight. All gradients of scores and contexts are known.
template <class T>
__device__ __forceinline__ void attend_sources(const Attention& a, const u32* targets, const u32* sequences, float* dk, float* dv,
                                               float* dw) {
    typedef typename Functions<T>::type F;
    u32 row = blockIdx.x, sequence = sequence_of(a.sources, *sequences, row);
    u32 n = a.sources[sequence + 1] - a.sources[sequence], j = row - a.sources[sequence];
    u32 first = targets[sequence], length = targets[sequence + 1] - first;
    u64 pair = a.starts[sequence] + j;
    for (u32 c = threadIdx.x; c < a.value_width; c += blockDim.x) {
        float sum = 0.0f;
#pragma unroll 4
        for (u32 t = 0; t < length; t++) {
            float share = a.weights[pair + (u64)t * n];
            if (a.selection != SOFT) {
                float taken = a.taken[first + t];
                if (taken >= 0.0f) share = taken == (float)j ? 1.0f : 0.0f;
            }
            sum += share * a.d_contexts[(u64)(first + t) * a.value_width + c];
        }
        dv[(u64)row * a.value_width + c] = sum;
    }
    const T* key = (const T*)a.keys + (u64)row * a.key_width;
    for (u32 c = threadIdx.x; c < a.key_width; c += blockDim.x) {
        float sum = 0.0f, of_weight = 0.0f, k = widen(key[c]), w = a.score_weight ? a.score_weight[c] : 0.0f;
#pragma unroll 4
        for (u32 t = 0; t < length; t++) {
            float de = a.de[pair + (u64)t * n], q = a.queries[(u64)(first + t) * a.key_width + c];
            if (a.score_weight) {
                float h = F::tanh(q + k);
                of_weight += de * h;
                sum += de * w * (1.0f - h * h);
            } else {
                sum += a.scale * de * q;
            }
        }
        dk[(u64)row * a.key_width + c] = sum;
        if (a.score_weight) dw[(u64)row * a.key_width + c] = of_weight;
    }
}

#define ATTEND(KIND, T)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                    \
        attend_tokens_##KIND(Attention a, const u32* targets, const u32* sequences) {                                        \
        attend_tokens<T>(a, targets, sequences);                                                                            \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 3)                                                                    \
        attend_tokens_backward_##KIND(Attention a, const u32* targets, const u32* sequences) {                               \
        attend_tokens_backward<T>(a, targets, sequences);                                                                   \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 4) attend_rows_##KIND(Attention a, const RowSource* sources) {           \
        attend_rows<T>(a, sources);                                                                                         \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                    \
        attend_sources_##KIND(Attention a, const u32* targets, const u32* sequences, float* dk, float* dv, float* dw) {      \
        attend_sources<T>(a, targets, sequences, dk, dv, dw);                                                               \
    }
ATTEND(f32, float)
ATTEND(bf16, bf16)
