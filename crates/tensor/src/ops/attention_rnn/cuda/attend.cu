// The attention of one query to one source, and its gradient, as in cpu/attend.rs: by a block of 256 threads.

struct Attention {
    const void* keys;           // source tokens x key width
    const void* values;         // source tokens x value width
    const u32* sources;         // where each source begins, and where the last one ends
    const u64* starts;          // where the weights of each sequence begin
    const u8* mask;             // laid out as the weights: 0 hides a key; or none
    const float* score_weight;  // of the additive score; none for products
    float* queries;             // tokens x key width
    float* contexts;            // tokens x value width
    bf16* narrow;               // the same rounded, where products are bf16
    float* weights;             // target tokens x source tokens of every sequence, or none
    float* scores;              // the same, or none
    float* choices;             // tokens x 2: logarithm of the weight that was taken, entropy
    float* taken;               // by token: the position that was taken, -1 for the weighted sum
    const u32* key;             // of the draws
    float* d_contexts;          // tokens x value width
    const float* d_choices;     // tokens x 2, or none
    float* de;                  // gradients of the scores, laid out as the weights
    void* dq;                   // tokens x key width: singles, or in the type of products
    u32 key_width, value_width;
    u32 longest;                // room for the numbers of a source
    u32 selection;              // see below
    float scale, soft_share;
    u32 is_straight;            // whether gradients come through the weights though a value was drawn
    u32 is_dq_wide;
};

enum Selection { SOFT, BEST, SAMPLED };

__device__ __forceinline__ float uniform(const u32* key, u32 index) {
    return (float)(draw(key[0], key[1], index) >> 8) * (1.0f / 16777216.0f);
}
// A weight may have vanished; its logarithm must not.
__device__ __forceinline__ float logarithm(float weight) { return logf(fmaxf(weight, 1e-30f)); }

__device__ __forceinline__ void load2(const float* from, float (&x)[2]) {
    float2 v = *(const float2*)from;
    x[0] = v.x, x[1] = v.y;
}
__device__ __forceinline__ void load2(const bf16* from, float (&x)[2]) {
    u32 v = *(const u32*)from;
    x[0] = low_of(v), x[1] = high_of(v);
}
__device__ __forceinline__ void load8(const float* from, float (&x)[8]) { load4(from, x), load4(from + 4, x + 4); }
__device__ __forceinline__ void load8(const bf16* from, float (&x)[8]) {
    uint4 v = *(const uint4*)from;
    x[0] = low_of(v.x), x[1] = high_of(v.x), x[2] = low_of(v.y), x[3] = high_of(v.y);
    x[4] = low_of(v.z), x[5] = high_of(v.z), x[6] = low_of(v.w), x[7] = high_of(v.w);
}

// Calls `give(j, sum)` for each of n rows, in one lane of the warp that has the row: the sum of f(list[i], weight[i], number i of
// the row). A warp has several rows at a time, so that it reads the list, which is in shared memory, and the weight once for all
// of them. Without a weight f gets zeros.
template <class T, class F, class G>
__device__ __forceinline__ void row_sums(const T* rows, u32 n, u32 width, const float* list, const float* weight, const F& f,
                                         const G& give) {
    constexpr u32 AT_ONCE = sizeof(T) == 2 ? 4 : 1;
    u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (u32 first = threadIdx.x / 32; first < n; first += AT_ONCE * warps) {
        const T* row[AT_ONCE];
        float sums[AT_ONCE];
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            row[r] = rows + (u64)(first + r * warps < n ? first + r * warps : first) * width;
            sums[r] = 0.0f;
        }
        if (width % 8 == 0) {
            for (u32 i = 8 * lane; i < width; i += 256) {
                float x[AT_ONCE][8], l[8], w[8] = {};
#pragma unroll
                for (u32 r = 0; r < AT_ONCE; r++) load8(row[r] + i, x[r]);
                load8(list + i, l);
                if (weight) load8(weight + i, w);
#pragma unroll
                for (u32 r = 0; r < AT_ONCE; r++)
#pragma unroll
                    for (u32 j = 0; j < 8; j++) sums[r] += f(l[j], w[j], x[r][j]);
            }
        } else {
            for (u32 i = lane; i < width; i += 32) {
                float w = weight ? weight[i] : 0.0f;
#pragma unroll
                for (u32 r = 0; r < AT_ONCE; r++) sums[r] += f(list[i], w, widen(row[r][i]));
            }
        }
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            float sum = warp_sum(sums[r]);
            if (lane == 0 && first + r * warps < n) give(first + r * warps, sum);
        }
    }
}

// Numbers in shared memory, by every warp for itself.
template <class F> __device__ __forceinline__ float list_sum(u32 n, const F& f) {
    float sum = 0.0f;
    for (u32 j = threadIdx.x % 32; j < n; j += 32) sum += f(j);
    return warp_sum(sum);
}
__device__ __forceinline__ float list_max(const float* list, u32 n) {
    float top = __int_as_float(0xff800000);
    for (u32 j = threadIdx.x % 32; j < n; j += 32) top = fmaxf(top, list[j]);
    return warp_max(top);
}

// The first of the largest.
__device__ __forceinline__ u32 best(const float* weights, u32 n) {
    u32 found = 0;
    for (u32 j = 1; j < n; j++)
        if (weights[j] > weights[found]) found = j;
    return found;
}
// The position that a draw falls on.
__device__ __forceinline__ u32 drawn(const float* weights, u32 n, float uniform) {
    float sum = 0.0f;
    for (u32 j = 0; j < n; j++) {
        sum += weights[j];
        if (uniform < sum) return j;
    }
    return best(weights, n);
}

// Where the numbers of a query lie.
template <class T> struct Source {
    const T *keys, *values;
    u32 n;
    u64 pair;   // its first weight
};
template <class T> __device__ __forceinline__ Source<T> source_of(const Attention& a, u32 sequence, u32 step) {
    u32 first = a.sources[sequence], n = a.sources[sequence + 1] - first;
    const T* keys = (const T*)a.keys + (u64)first * a.key_width;
    const T* values = (const T*)a.values + (u64)first * a.value_width;
    return {keys, values, n, a.starts ? a.starts[sequence] + (u64)step * n : 0};
}

// What a context is handed over as.
__device__ __forceinline__ void give_context(const Attention& a, float, u64 at, float x) { give(a.contexts + at, x); }
__device__ __forceinline__ void give_context(const Attention& a, bf16, u64 at, float x) { give(a.narrow + at, x), a.contexts[at] = x; }
__device__ __forceinline__ void give_contexts(const Attention& a, float, u64 at, const float (&x)[4]) {
    for (int i = 0; i < 4; i++) give(a.contexts + at + i, x[i]);
}
__device__ __forceinline__ void give_contexts(const Attention& a, bf16, u64 at, const float (&x)[4]) {
    give_pair(a.narrow + at, x[0], x[1]);
    give_pair(a.narrow + at + 2, x[2], x[3]);
    store4(a.contexts + at, x);
}

// The query is in `room`, which all threads know; behind it there is room for two numbers for each token of the source.
template <class T, class F>
__device__ __forceinline__ void attend(const Attention& a, const Source<T>& source, u64 token, float* room) {
    float *e = room + a.key_width, *weights = e + a.longest;
    u32 n = source.n, lane = threadIdx.x % 32;
    auto keep = [&](u32 j, float score) { e[j] = a.mask && !a.mask[source.pair + j] ? __int_as_float(0xff800000) : score; };
    if (a.score_weight)
        row_sums(source.keys, n, a.key_width, room, a.score_weight, [](float q, float w, float k) { return w * F::tanh(q + k); },
                 keep);
    else
        row_sums(source.keys, n, a.key_width, room, nullptr, [](float q, float, float k) { return q * k; },
                 [&](u32 j, float sum) { keep(j, a.scale * sum); });
    __syncthreads();
    float top = list_max(e, n);
    float total = 1.0f / list_sum(n, [&](u32 j) { return expf(e[j] - top); });
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) {
        float weight = expf(e[j] - top) * total;
        weights[j] = weight;
        if (a.weights) a.weights[source.pair + j] = weight;
        if (a.scores) a.scores[source.pair + j] = e[j];
    }
    __syncthreads();
    __shared__ int taken;
    if (a.selection != SOFT) {
        if (threadIdx.x == 0) {
            u32 index = (u32)token;
            taken = -1;
            if (a.selection == BEST) taken = best(weights, n);
            else if (!(uniform(a.key, ~index) < a.soft_share)) taken = drawn(weights, n, uniform(a.key, index));
            if (a.taken) a.taken[token] = (float)taken;
        }
        __syncthreads();
        if (a.choices && threadIdx.x < 32) {
            float entropy = list_sum(n, [&](u32 j) { return -weights[j] * logarithm(weights[j]); });
            if (lane == 0) {
                a.choices[2 * token] = taken < 0 ? 0.0f : logarithm(weights[taken]);
                a.choices[2 * token + 1] = entropy;
            }
        }
    }
    bool is_one = a.selection != SOFT && taken >= 0;
    u32 from = is_one ? taken : 0, to = is_one ? taken + 1 : n;
    u32 width = a.value_width;
    if (width % 4 == 0) {
        for (u32 c = 4 * threadIdx.x; c < width; c += 4 * blockDim.x) {
            float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8
            for (u32 j = from; j < to; j++) {
                float v[4], share = is_one ? 1.0f : weights[j];
                load4(source.values + (u64)j * width + c, v);
                for (int i = 0; i < 4; i++) sum[i] += share * v[i];
            }
            give_contexts(a, T(), token * width + c, sum);
        }
    } else {
        for (u32 c = threadIdx.x; c < width; c += blockDim.x) {
            float sum = 0.0f;
            for (u32 j = from; j < to; j++) sum += (is_one ? 1.0f : weights[j]) * widen(source.values[(u64)j * width + c]);
            give_context(a, T(), token * width + c, sum);
        }
    }
}

// The gradients of the scores and of the query. `room` has the gradient of the context; behind it there is room for the query and
// for two numbers for each token of the source.
template <class T, class F>
__device__ __forceinline__ void attend_backward(const Attention& a, const Source<T>& source, u64 token, float* room) {
    float *query = room + a.value_width, *weights = query + a.key_width, *de = weights + a.longest;
    u32 n = source.n;
    for (u32 i = threadIdx.x; i < a.key_width; i += blockDim.x) query[i] = a.queries[token * a.key_width + i];
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) weights[j] = a.weights[source.pair + j];
    int taken = a.selection == SOFT ? -1 : (int)a.taken[token];
    bool comes_through = taken < 0 || a.is_straight;
    __syncthreads();
    // context = sum of weight times value
    if (comes_through)
        row_sums(source.values, n, a.value_width, room, nullptr, [](float g, float, float v) { return g * v; },
                 [&](u32 j, float sum) { de[j] = sum; });
    else
        for (u32 j = threadIdx.x; j < n; j += blockDim.x) de[j] = 0.0f;
    __syncthreads();
    // weights = softmax of the scores
    float along = list_sum(n, [&](u32 j) { return weights[j] * de[j]; });
    float to_log = 0.0f, to_entropy = 0.0f, entropy = 0.0f;
    if (a.selection == SAMPLED && a.d_choices) {
        to_log = taken < 0 ? 0.0f : a.d_choices[2 * token];
        to_entropy = a.d_choices[2 * token + 1];
        entropy = list_sum(n, [&](u32 j) { return -weights[j] * logarithm(weights[j]); });
    }
    __syncthreads();
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) {
        float weight = weights[j], g = comes_through ? weight * (de[j] - along) : 0.0f;
        g -= weight * (to_log + to_entropy * (logarithm(weight) + entropy));
        if ((int)j == taken) g += to_log;
        de[j] = g;
        a.de[source.pair + j] = g;
    }
    __syncthreads();
    u32 width = a.key_width;
    bool has_pairs = width % 2 == 0;
    for (u32 c = threadIdx.x * (has_pairs ? 2 : 1); c < width; c += blockDim.x * (has_pairs ? 2 : 1)) {
        float sum[2] = {0.0f, 0.0f};
        bool is_two = has_pairs;
        float q[2] = {query[c], is_two ? query[c + 1] : 0.0f}, w[2] = {0.0f, 0.0f};
        if (a.score_weight) w[0] = a.score_weight[c], w[1] = is_two ? a.score_weight[c + 1] : 0.0f;
#pragma unroll 4
        for (u32 j = 0; j < n; j++) {
            const T* key = source.keys + (u64)j * width + c;
            float k[2] = {0.0f, 0.0f};
            if (is_two) load2(key, k);
            else k[0] = widen(key[0]);
            for (int i = 0; i < 2; i++) {
                if (a.score_weight) {
                    float t = F::tanh(q[i] + k[i]);
                    sum[i] += de[j] * w[i] * (1.0f - t * t);
                } else {
                    sum[i] += a.scale * de[j] * k[i];
                }
            }
        }
        u64 at = token * width + c;
        if (a.is_dq_wide || sizeof(T) == 4) {
            give((float*)a.dq + at, sum[0]);
            if (is_two) give((float*)a.dq + at + 1, sum[1]);
        } else if (is_two) {
            give_pair((bf16*)a.dq + at, sum[0], sum[1]);
        } else {
            give((bf16*)a.dq + at, sum[0]);
        }
    }
}
