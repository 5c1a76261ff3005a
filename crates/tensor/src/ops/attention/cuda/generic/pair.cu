// One head of one sequence: which keys a query sees, how a score becomes a weight, and where a returned weight is stored.

namespace generic {

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// A product as input of softmax: finite even if it overflowed, because inf - inf is NaN.
__device__ __forceinline__ float finite(float score) {
    const float most = 3.402823466e38f;
    score = score > most ? most : score;
    return score < -most ? -most : score;
}

// One head of one sequence.
struct Pair {
    u32 sequence, head;
    int q_row, m, k_row, n;     // first rows and lengths
    u64 draws;                  // index of its first dropout draw
    u32 longest;
    Dropout dropout;
};

__device__ __forceinline__ Pair pair_of(const Attention& a, u32 sequence, u32 head) {
    Pair pair;
    pair.sequence = sequence;
    pair.head = head;
    pair.q_row = a.q_offsets[sequence];
    pair.m = a.q_offsets[sequence + 1] - pair.q_row;
    pair.k_row = a.k_offsets[sequence];
    pair.n = a.k_offsets[sequence + 1] - pair.k_row;
    pair.draws = first_draw(a, head, pair.q_row);
    pair.longest = a.sizes[1];
    pair.dropout = *a.dropout;
    return pair;
}

__device__ __forceinline__ bool visible(const Attention& a, const Pair& pair, int query, int key) {
    if (query >= pair.m || key >= pair.n) return false;
    Limits limits = visible_keys(a, query, pair.m, pair.n);
    if (key < limits.start || key >= limits.end) return false;
    return !a.mask || a.mask[a.mask_offsets[pair.sequence] + (u64)query * pair.n + key];
}

__device__ __forceinline__ float dropout_factor(const Pair& pair, int query, int key) {
    if (pair.dropout.threshold == 0) return 1.0f;
    return factor(pair.dropout, pair.draws + (u64)query * pair.longest + key);
}

template <class T> __device__ __forceinline__ const T *head_of(const void *part, u32 stride, int row, u32 head, u32 width) {
    return (const T*)part + (u64)row * stride + head * width;
}
template <class T> __device__ __forceinline__ T *head_of(void *part, u32 stride, int row, u32 head, u32 width) {
    return (T*)part + (u64)row * stride + head * width;
}

// Offset of a head's returned weights and scores. Looked up at each use: few passes return them, and registers are scarce.
__device__ __forceinline__ u64 weights_offset(const Attention& a, const Pair& pair) {
    return a.weight_offsets[(u64)pair.sequence * a.heads + pair.head];
}

__device__ __forceinline__ void store_weight(const Attention& a, const Pair& pair, int row, int column, float weight, float score) {
    if (!a.weights || row >= pair.m || column >= pair.n) return;
    u64 at = weights_offset(a, pair) + (u64)row * pair.n + column;
    a.weights[at] = weight;
    if (a.scores) a.scores[at] = score;
}

// From a score and a product dO V^T: weight before dropout, dropout factor, and gradient of the weight.
struct WeightGrad { float weight, factor, grad; };

__device__ __forceinline__ WeightGrad weight_grad(const Pair& pair, float score, float product, float top, float inv_sum, int query,
                                       int key) {
    WeightGrad found = { 0.0f, 0.0f, 0.0f };
    if (score == minus_infinity()) return found;
    found.weight = expf(score - top) * inv_sum;
    found.factor = dropout_factor(pair, query, key);
    found.grad = product * found.factor;
    return found;
}

}  // namespace generic
