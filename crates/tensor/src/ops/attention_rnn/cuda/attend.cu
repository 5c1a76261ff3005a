// The attention of one query to one source, and its gradient, as in cpu/attend.rs: by a block of 256 threads, or by several blocks
// that each have some keys and some columns (teams.cu).

struct Attention {
    const void* keys;           // source tokens x key width
    const void* values;         // source tokens x value width
    const u32* sources;         // first row of each source, and the end of the last
    const u64* starts;          // offset of each sequence's weights
    const u8* mask;             // in the layout of the weights: 0 hides a key; or null
    const float* score_weight;  // of the additive score; null for dot products
    float* queries;             // tokens x key width
    float* contexts;            // tokens x value width
    bf16* narrow;               // the same rounded, where products are bf16
    float* weights;             // target tokens x source tokens of every sequence, or null
    float* scores;              // the same, or null; exchanged where several blocks share a query
    float* choices;             // tokens x 2: logarithm of the selected weight, entropy
    float* taken;               // by token: the selected position, -1 for the weighted sum
    const u32* key;             // of the draws
    float* d_contexts;          // tokens x value width
    const float* d_choices;     // tokens x 2, or null
    float* de;                  // gradients of the scores, in the layout of the weights
    void* dq;                   // tokens x key width: f32, or the type of products
    u32 key_width, value_width;
    u32 longest;                // the source length that buffers are sized for
    u32 selection;              // see below
    float scale, soft_share;
    u32 is_straight;            // straight-through: gradients flow through the weights although a value was sampled
    u32 is_dq_wide;
};

enum Selection { SOFT, BEST, SAMPLED };

__device__ __forceinline__ float uniform(const u32* key, u32 index) {
    return (float)(draw(key[0], key[1], index) >> 8) * (1.0f / 16777216.0f);
}
// Clamped: a weight may underflow to 0, but its logarithm must be finite.
__device__ __forceinline__ float logarithm(float weight) { return logf(fmaxf(weight, 1e-30f)); }

template <class T> __device__ __forceinline__ void load(const T* from, float (&x)[1]) { x[0] = widen(*from); }
__device__ __forceinline__ void load(const float* from, float (&x)[2]) {
    float2 v = *(const float2*)from;
    x[0] = v.x, x[1] = v.y;
}
__device__ __forceinline__ void load(const bf16* from, float (&x)[2]) {
    u32 v = *(const u32*)from;
    x[0] = low_of(v), x[1] = high_of(v);
}
template <class T> __device__ __forceinline__ void load(const T* from, float (&x)[4]) { load4(from, x); }

// Calls `store(j, sum)` for each of n rows, in one lane of the warp that has the row: the sum of f(list[i], weight[i], row[i]).
// A warp has several rows at a time, so that it reads the list, which is in shared memory, and the weight once for all
// of them. If weight is null, f gets zeros.
template <class T, class F, class G>
__device__ __forceinline__ void row_sums(const T* rows, u32 n, u32 width, const float* list, const float* weight, const F& f,
                                         const G& store) {
    constexpr u32 AT_ONCE = sizeof(T) == 2 ? 4 : 1;
    u32 lane = threadIdx.x % 32, warps = blockDim.x / 32;
    for (u32 first = threadIdx.x / 32; first < n; first += AT_ONCE * warps) {
        const T* row[AT_ONCE];
        float sums[AT_ONCE];
        u32 count = min((n - first + warps - 1) / warps, AT_ONCE);
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            row[r] = rows + (u64)(r < count ? first + r * warps : first) * width;
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
                for (u32 r = 0; r < AT_ONCE; r++) {
                    if (r >= count) break;
#pragma unroll
                    for (u32 j = 0; j < 8; j++) sums[r] += f(l[j], w[j], x[r][j]);
                }
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
            if (lane == 0 && r < count) store(first + r * warps, sum);
        }
    }
}

// Reductions over lists in shared memory; every warp computes them for itself.
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

// The first position of the maximum.
__device__ __forceinline__ u32 argmax(const float* weights, u32 n) {
    u32 found = 0;
    for (u32 j = 1; j < n; j++)
        if (weights[j] > weights[found]) found = j;
    return found;
}
// The position that a draw falls on.
__device__ __forceinline__ u32 sample(const float* weights, u32 n, float uniform) {
    float sum = 0.0f;
    for (u32 j = 0; j < n; j++) {
        sum += weights[j];
        if (uniform < sum) return j;
    }
    return argmax(weights, n);
}

// The keys, values and weights of one query.
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

// Stores a context so that other blocks can read it.
__device__ __forceinline__ void publish_context(const Attention& a, float, u64 at, float x) { publish(a.contexts + at, x); }
__device__ __forceinline__ void publish_context(const Attention& a, bf16, u64 at, float x) { publish(a.narrow + at, x), a.contexts[at] = x; }
__device__ __forceinline__ void publish_contexts(const Attention& a, float, u64 at, const float (&x)[4]) {
    for (int i = 0; i < 4; i++) publish(a.contexts + at + i, x[i]);
}
__device__ __forceinline__ void publish_contexts(const Attention& a, bf16, u64 at, const float (&x)[4]) {
    publish_pair(a.narrow + at, x[0], x[1]);
    publish_pair(a.narrow + at + 2, x[2], x[3]);
    store4(a.contexts + at, x);
}

// Calls `store(j, score)` for n keys, in one lane each.
template <class F, class T, class G>
__device__ __forceinline__ void score_keys(const Attention& a, const T* keys, u32 n, const float* query, const G& store) {
    if (a.score_weight)
        row_sums(keys, n, a.key_width, query, a.score_weight, [](float q, float w, float k) { return w * F::tanh(q + k); }, store);
    else
        row_sums(keys, n, a.key_width, query, nullptr, [](float q, float, float k) { return q * k; },
                 [&](u32 j, float sum) { store(j, a.scale * sum); });
}
// The score of a pair; -inf if its key is hidden.
__device__ __forceinline__ float masked(const Attention& a, u64 pair, float score) {
    return a.mask && !a.mask[pair] ? __int_as_float(0xff800000) : score;
}

// Positions of a source that a block writes, and whether it also writes the values that exist once per query.
struct WriteRange {
    u32 from, to;
    bool is_first;
};
// The values that make up the context: all with their weights, or one.
struct ValueRange {
    u32 from, to;
    bool is_one;
};

// Turns the scores `e` into weights, both in shared memory, and selects the values. Callers synchronize before; it synchronizes
// after.
__device__ __forceinline__ ValueRange compute_weights(const Attention& a, u32 n, u64 pair, u64 token, const float* e, float* weights,
                                         const WriteRange& write_range) {
    float top = list_max(e, n);
    float total = 1.0f / list_sum(n, [&](u32 j) { return expf(e[j] - top); });
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) {
        float weight = expf(e[j] - top) * total;
        weights[j] = weight;
        if (a.weights && j >= write_range.from && j < write_range.to) a.weights[pair + j] = weight;
    }
    __syncthreads();
    __shared__ int taken;
    if (a.selection != SOFT) {
        if (threadIdx.x == 0) {
            u32 index = (u32)token;
            taken = -1;
            if (a.selection == BEST) taken = argmax(weights, n);
            else if (!(uniform(a.key, ~index) < a.soft_share)) taken = sample(weights, n, uniform(a.key, index));
            if (a.taken && write_range.is_first) a.taken[token] = (float)taken;
        }
        __syncthreads();
        if (a.choices && write_range.is_first && threadIdx.x < 32) {
            float entropy = list_sum(n, [&](u32 j) { return -weights[j] * logarithm(weights[j]); });
            if (threadIdx.x == 0) {
                a.choices[2 * token] = taken < 0 ? 0.0f : logarithm(weights[taken]);
                a.choices[2 * token + 1] = entropy;
            }
        }
    }
    bool is_one = a.selection != SOFT && taken >= 0;
    return {is_one ? (u32)taken : 0, is_one ? (u32)taken + 1 : n, is_one};
}

// Calls `store(c, sums)` for N columns of the context from c on, which is a multiple of N.
template <int N, class T, class G>
__device__ __forceinline__ void sum_values(const T* values, u32 stride, u32 columns, const ValueRange& selected, const float* weights,
                                           const G& store) {
    for (u32 c = N * threadIdx.x; c < columns; c += N * blockDim.x) {
        float sum[N] = {};
#pragma unroll(N == 2 ? 16 : 8)
        for (u32 j = selected.from; j < selected.to; j++) {
            float v[N], share = selected.is_one ? 1.0f : weights[j];
            load(values + (u64)j * stride + c, v);
            for (int i = 0; i < N; i++) sum[i] += share * v[i];
        }
        store(c, sum);
    }
}

// The query is in `scratch`, visible to all threads, followed by space for two values for each token of the source.
template <class T, class F>
__device__ __forceinline__ void attend(const Attention& a, const Source<T>& source, u64 token, float* scratch) {
    float *e = scratch + a.key_width, *weights = e + a.longest;
    u32 width = a.value_width;
    score_keys<F>(a, source.keys, source.n, scratch, [&](u32 j, float score) {
        e[j] = masked(a, source.pair + j, score);
        if (a.scores) a.scores[source.pair + j] = e[j];
    });
    __syncthreads();
    ValueRange selected = compute_weights(a, source.n, source.pair, token, e, weights, {0, source.n, true});
    if (width % 4 == 0)
        sum_values<4>(source.values, width, width, selected, weights,
                      [&](u32 c, const float(&sum)[4]) { publish_contexts(a, T(), token * width + c, sum); });
    else
        sum_values<1>(source.values, width, width, selected, weights,
                      [&](u32 c, const float(&sum)[1]) { publish_context(a, T(), token * width + c, sum[0]); });
}

// Whether gradients reach the weights through the context, given the selected value (-1: all).
__device__ __forceinline__ bool flows_through_weights(const Attention& a, int taken) { return taken < 0 || a.is_straight; }
__device__ __forceinline__ int selected_position(const Attention& a, u64 token) { return a.selection == SOFT ? -1 : (int)a.taken[token]; }

// Calls `store(j, gradient)` for n weights, in one lane each: context = sum of weight times value.
template <class T, class G>
__device__ __forceinline__ void weight_gradients(const Attention& a, const T* values, u32 n, const float* d_context, const G& store) {
    row_sums(values, n, a.value_width, d_context, nullptr, [](float g, float, float v) { return g * v; }, store);
}

// Turns gradients of the weights, in shared memory, into those of the scores: weights = softmax of the scores. Callers synchronize
// before; it synchronizes after.
__device__ __forceinline__ void score_gradients(const Attention& a, u32 n, u64 pair, u64 token, int taken, const float* weights,
                                                float* de, const WriteRange& write_range) {
    bool is_through = flows_through_weights(a, taken);
    float mean = list_sum(n, [&](u32 j) { return weights[j] * de[j]; });
    float to_log = 0.0f, to_entropy = 0.0f, entropy = 0.0f;
    if (a.selection == SAMPLED && a.d_choices) {
        to_log = taken < 0 ? 0.0f : a.d_choices[2 * token];
        to_entropy = a.d_choices[2 * token + 1];
        entropy = list_sum(n, [&](u32 j) { return -weights[j] * logarithm(weights[j]); });
    }
    __syncthreads();
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) {
        float weight = weights[j], g = is_through ? weight * (de[j] - mean) : 0.0f;
        g -= weight * (to_log + to_entropy * (logarithm(weight) + entropy));
        if ((int)j == taken) g += to_log;
        de[j] = g;
        if (j >= write_range.from && j < write_range.to) a.de[pair + j] = g;
    }
    __syncthreads();
}

// Calls `store(c, sums)` for N columns from c on, which is a multiple of N: the gradients of the query, given those of the scores.
// Every thread calls it, also for columns past the end. The pointers to query and score weight point to the first of the columns.
template <int N, class F, class T, class G>
__device__ __forceinline__ void query_gradients(const Attention& a, const T* keys, u32 stride, u32 columns, u32 n, const float* query,
                                                const float* score_weight, const float* de, const G& store) {
    for (u32 first = 0; first < columns; first += N * blockDim.x) {
        u32 c = first + N * threadIdx.x;
        float sum[N] = {};
        if (c < columns) {
            float q[N], w[N] = {};
            load(query + c, q);
            if (score_weight) load(score_weight + c, w);
#pragma unroll(8 / N)
            for (u32 j = 0; j < n; j++) {
                float k[N];
                load(keys + (u64)j * stride + c, k);
                for (int i = 0; i < N; i++) {
                    if (score_weight) {
                        float t = F::tanh(q[i] + k[i]);
                        sum[i] += de[j] * w[i] * (1.0f - t * t);
                    } else {
                        sum[i] += a.scale * de[j] * k[i];
                    }
                }
            }
        }
        store(c, sum);
    }
}

// The gradients of the scores and of the query. `scratch` has the gradient of the context, followed by space for the query and
// for two values for each token of the source.
template <class T, class F>
__device__ __forceinline__ void attend_backward(const Attention& a, const Source<T>& source, u64 token, float* scratch) {
    float *query = scratch + a.value_width, *weights = query + a.key_width, *de = weights + a.longest;
    u32 n = source.n, width = a.key_width;
    for (u32 i = threadIdx.x; i < width; i += blockDim.x) query[i] = a.queries[token * width + i];
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) weights[j] = a.weights[source.pair + j];
    int taken = selected_position(a, token);
    __syncthreads();
    if (flows_through_weights(a, taken))
        weight_gradients(a, source.values, n, scratch, [&](u32 j, float sum) { de[j] = sum; });
    else
        for (u32 j = threadIdx.x; j < n; j += blockDim.x) de[j] = 0.0f;
    __syncthreads();
    score_gradients(a, n, source.pair, token, taken, weights, de, {0, n, true});
    bool is_wide = a.is_dq_wide || sizeof(T) == 4;
    // The query follows the gradient of the context: its pairs are aligned only if both widths are even.
    if (width % 2 == 0 && a.value_width % 2 == 0)
        query_gradients<2, F>(a, source.keys, width, width, n, query, a.score_weight, de, [&](u32 c, const float(&sum)[2]) {
            u64 at = token * width + c;
            if (c >= width) return;
            if (is_wide) publish((float*)a.dq + at, sum[0]), publish((float*)a.dq + at + 1, sum[1]);
            else publish_pair((bf16*)a.dq + at, sum[0], sum[1]);
        });
    else
        query_gradients<1, F>(a, source.keys, width, width, n, query, a.score_weight, de, [&](u32 c, const float(&sum)[1]) {
            u64 at = token * width + c;
            if (c >= width) return;
            if (is_wide) publish((float*)a.dq + at, sum[0]);
            else publish((bf16*)a.dq + at, sum[0]);
        });
}
