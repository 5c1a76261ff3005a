// Attention of sequences with one query each, as in pooling: heads of any width, any mask, f32 or bf16, in f32
// arithmetic. Tiles of 32 queries would have one valid row, and the keys are read once or twice: speed depends on the
// number of loads in flight.
//
// A block has one head of one sequence. Warps compute products with the query (with dO), eight rows at a time; groups of
// threads that cover all columns sum over rows, and the partial sums are added in the order of the groups. Weights are in
// shared memory; if the keys do not fit, the weights are recomputed for each chunk.
//
// Launch: 256 threads; grid (at least the number of work items, heads); no dynamic shared memory.
//   work items: (sequence, 0)
//   work_count[0]: the number of items
// Kernels whose names end in _16 read and write 16 bytes at a time: head widths, strides and addresses are multiples of that.

namespace single {

using namespace generic;

const int CHUNK = 2048;     // keys whose weights are in shared memory
const int FLIGHT = 8;       // rows that a thread reads at a time
const int WARPS = 8;

// The unit that a thread loads and stores: N elements.
template <class Number> struct Scalar {
    typedef Number T;
    typedef Number Raw;
    static const int N = 1;
    static __device__ __forceinline__ Raw zero() { return narrow<T>(0.0f); }
    static __device__ __forceinline__ void wide(Raw raw, float (&x)[N]) { x[0] = widen(raw); }
    static __device__ __forceinline__ Raw narrowed(const float (&x)[N]) { return narrow<T>(x[0]); }
};

template <class Number> struct Vector16;
template <> struct Vector16<float> {
    typedef float T;
    typedef float4 Raw;
    static const int N = 4;
    static __device__ __forceinline__ Raw zero() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }
    static __device__ __forceinline__ void wide(Raw raw, float (&x)[N]) {
        x[0] = raw.x, x[1] = raw.y, x[2] = raw.z, x[3] = raw.w;
    }
    static __device__ __forceinline__ Raw narrowed(const float (&x)[N]) { return make_float4(x[0], x[1], x[2], x[3]); }
};
template <> struct Vector16<bf16> {
    typedef bf16 T;
    typedef uint4 Raw;
    static const int N = 8;
    static __device__ __forceinline__ Raw zero() { return make_uint4(0, 0, 0, 0); }
    static __device__ __forceinline__ void wide(Raw raw, float (&x)[N]) {
        x[0] = low_of(raw.x), x[1] = high_of(raw.x), x[2] = low_of(raw.y), x[3] = high_of(raw.y);
        x[4] = low_of(raw.z), x[5] = high_of(raw.z), x[6] = low_of(raw.w), x[7] = high_of(raw.w);
    }
    static __device__ __forceinline__ Raw narrowed(const float (&x)[N]) {
        return make_uint4(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]), pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7]));
    }
};

template <class U> __device__ __forceinline__ typename U::Raw fetch(const typename U::T *from) {
    return *(const typename U::Raw*)from;
}
template <class U> __device__ __forceinline__ void store(typename U::T *to, const float (&x)[U::N]) {
    *(typename U::Raw*)to = U::narrowed(x);
}

// Rows of one head of a tensor.
template <class U> struct Rows {
    const typename U::T *at;
    u32 stride;
    int width;

    __device__ __forceinline__ const typename U::T *row(int i) const { return at + (u64)i * stride; }
};

// products[i] = x times row `first + i`, for `count` rows.
template <class U>
__device__ __forceinline__ void multiply(const typename U::T *x, const Rows<U>& rows, int first, int count, float *products) {
    int lane = threadIdx.x % 32;
    for (int row = threadIdx.x / 32; row < count; row += WARPS * FLIGHT) {
        float sums[FLIGHT] = {};
#pragma unroll 1
        for (int column = lane * U::N; column < rows.width; column += 32 * U::N) {
            typename U::Raw raw[FLIGHT];
#pragma unroll
            for (int i = 0; i < FLIGHT; i++) {
                raw[i] = U::zero();
                if (row + WARPS * i < count) raw[i] = fetch<U>(rows.row(first + row + WARPS * i) + column);
            }
            float left[U::N];
            U::wide(fetch<U>(x + column), left);
#pragma unroll
            for (int i = 0; i < FLIGHT; i++) {
                float right[U::N];
                U::wide(raw[i], right);
#pragma unroll
                for (int e = 0; e < U::N; e++) sums[i] = fmaf(left[e], right[e], sums[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            float sum = warp_sum(sums[i]);
            if (lane == 0 && row + WARPS * i < count) products[row + WARPS * i] = sum;
        }
    }
}

// A thread's columns, among at most 256 N from `first` on, and its rows: every `groups`th from `group` on. `units`
// threads cover all columns.
struct ThreadShare {
    int units, column, group, groups;

    __device__ __forceinline__ bool any() const { return group < groups; }
};

template <class U> __device__ __forceinline__ ThreadShare own_of(int first, int width) {
    int units = min((width - first) / U::N, 256), thread = threadIdx.x;
    if (units <= 0) return { 0, 0, 0, 0 };
    return { units, first + thread % units * U::N, thread / units, 256 / units };
}

// sums += factors[i] times row `first + i`, over a thread's share of `count` rows.
template <class U>
__device__ __forceinline__ void accumulate(const ThreadShare& own, const float *factors, const Rows<U>& rows, int first, int count,
                                           float (&sums)[U::N]) {
    if (!own.any()) return;
    for (int row = own.group; row < count; row += own.groups * FLIGHT) {
        typename U::Raw raw[FLIGHT];
        float factor[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            int at = row + own.groups * i;
            raw[i] = U::zero();
            factor[i] = 0.0f;
            if (at < count) raw[i] = fetch<U>(rows.row(first + at) + own.column), factor[i] = factors[at];
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            float x[U::N];
            U::wide(raw[i], x);
#pragma unroll
            for (int e = 0; e < U::N; e++) sums[e] = fmaf(factor[i], x[e], sums[e]);
        }
    }
}

// Adds the partial sums of all groups, and writes the row.
template <class U>
__device__ __forceinline__ void add_groups(const ThreadShare& own, float (&sums)[U::N], typename U::T *to, float scale) {
    __shared__ float parts[U::N][256];
    __syncthreads();            // other threads may still read the previous call's partial sums
#pragma unroll
    for (int e = 0; e < U::N; e++) parts[e][threadIdx.x] = sums[e];
    __syncthreads();
    if (own.group > 0 || !own.any()) return;
#pragma unroll
    for (int e = 0; e < U::N; e++) {
        for (int group = 1; group < own.groups; group++) sums[e] += parts[e][group * own.units + threadIdx.x];
        sums[e] *= scale;
    }
    store<U>(to + own.column, sums);
}

// Row `first + i` of `to` = factors[i] x scale, for `count` rows.
template <class U>
__device__ __forceinline__ void outer_product(const ThreadShare& own, const float *factors, const typename U::T *x, typename U::T *to, u32 stride,
                                       int first, int count, float scale) {
    if (!own.any()) return;
    float left[U::N];
    U::wide(fetch<U>(x + own.column), left);
#pragma unroll 4
    for (int row = own.group; row < count; row += own.groups) {
        float y[U::N];
#pragma unroll
        for (int e = 0; e < U::N; e++) y[e] = factors[row] * left[e] * scale;
        store<U>(to + (u64)(first + row) * stride + own.column, y);
    }
}

// Keys outside of the query's window have a zero gradient.
template <class T>
__device__ __forceinline__ void zero_hidden(T *to, u32 stride, int width, const Limits& range, int n) {
    int hidden = n - (range.end - range.start);
    for (u64 i = threadIdx.x; i < (u64)hidden * width; i += 256) {
        int row = (int)quotient(i, width);
        row += row < range.start ? 0 : range.end - range.start;
        to[(u64)row * stride + modulo(i, width)] = narrow<T>(0.0f);
    }
}

// One head of one sequence, and the keys that its query may see by position alone.
template <class U> struct Job {
    typedef typename U::T T;
    Pair pair;
    Limits range;
    const T *q;
    Rows<U> keys, values;
    u64 row;                    // of the softmax statistics

    __device__ __forceinline__ Job(const Attention& a) {
        pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
        range = visible_keys(a, 0, pair.m, pair.n);
        q = head_of<T>(a.q, a.q_stride, pair.q_row, pair.head, a.d_k);
        keys = { head_of<T>(a.k, a.k_stride, pair.k_row, pair.head, a.d_k), a.k_stride, (int)a.d_k };
        values = { head_of<T>(a.v, a.v_stride, pair.k_row, pair.head, a.d_v), a.v_stride, (int)a.d_v };
        row = (u64)pair.head * a.stats_rows + pair.q_row;
    }

    __device__ __forceinline__ bool fits() const { return range.end - range.start <= CHUNK; }
    __device__ __forceinline__ int count(int key) const { return min(CHUNK, range.end - key); }

    // The score of a key, given its product with the query.
    __device__ __forceinline__ float score(const Attention& a, int key, float product) const {
        return visible(a, pair, 0, key) ? finite(product * a.scale) : minus_infinity();
    }
};

// Scores of a chunk of keys. Without a barrier a thread may read only those it wrote: every 256th from its index on.
template <class U> __device__ __forceinline__ void score_chunk(const Attention& a, const Job<U>& job, int key, float *scores) {
    int count = job.count(key);
    multiply<U>(job.q, job.keys, key, count, scores);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 256) scores[i] = job.score(a, key + i, scores[i]);
}

template <class U> __device__ void forward(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    Job<U> job(a);
    const Pair& pair = job.pair;
    const Limits& range = job.range;
    __shared__ float scores[CHUNK];

    // First the maximum and the sum of exponentials, then the weights, all divided by one sum.
    float top = minus_infinity(), sum = 0.0f;
    for (int key = range.start; key < range.end; key += CHUNK) {
        score_chunk(a, job, key, scores);
        int count = job.count(key);
        float most = top, part = 0.0f;
        for (int i = threadIdx.x; i < count; i += 256) most = fmaxf(most, scores[i]);
        most = max_of_block(most);
        if (most == minus_infinity()) continue;  // uniform over the block
        for (int i = threadIdx.x; i < count; i += 256) part += expf(scores[i] - most);
        sum = sum * expf(top - most) + sum_of_block(part);
        top = most;
    }
    float inv_sum = 1.0f / sum;
    if (threadIdx.x == 0) {
        a.stats[2 * job.row] = top;
        a.stats[2 * job.row + 1] = inv_sum;
    }

    typename U::T *to = head_of<typename U::T>(a.o, a.o_stride, pair.q_row, pair.head, a.d_v);
    for (int column = 0; column < (int)a.d_v; column += 256 * U::N) {
        ThreadShare own = own_of<U>(column, a.d_v);
        float context[U::N] = {};
        for (int key = range.start; key < range.end; key += CHUNK) {
            int count = job.count(key);
            if (!job.fits()) {
                __syncthreads();        // other threads may still read the previous chunk's weights
                score_chunk(a, job, key, scores);
            }
            for (int i = threadIdx.x; i < count && (column == 0 || !job.fits()); i += 256) {
                float score = scores[i];
                bool hidden = score == minus_infinity();
                float weight = hidden ? 0.0f : expf(score - top) * inv_sum;
                if (column == 0) store_weight(a, pair, 0, key + i, weight, score);
                scores[i] = hidden ? 0.0f : weight * dropout_factor(pair, 0, key + i);
            }
            __syncthreads();
            accumulate(own, scores, job.values, key, count, context);
        }
        add_groups<U>(own, context, to, 1.0f);
    }
    for (int i = threadIdx.x; a.weights && i < pair.n; i += 256)
        if (i < range.start || i >= range.end) store_weight(a, pair, 0, i, 0.0f, minus_infinity());
}

// For a chunk of keys: the weights before dropout, and dropout(dO V^T). Returns a thread's part of delta.
template <class U>
__device__ __forceinline__ float weights_and_grads(const Attention& a, const Job<U>& job, const typename U::T *d_o, int key,
                                             float *weights, float *grads) {
    int count = job.count(key);
    float top = a.stats[2 * job.row], inv_sum = a.stats[2 * job.row + 1], delta = 0.0f;
    multiply<U>(job.q, job.keys, key, count, weights);
    multiply<U>(d_o, job.values, key, count, grads);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += 256) {
        WeightGrad it = weight_grad(job.pair, job.score(a, key + i, weights[i]), grads[i], top, inv_sum, 0, key + i);
        weights[i] = it.weight;
        grads[i] = it.grad;
        delta = fmaf(it.weight, it.grad, delta);
    }
    return delta;
}

template <class U> __device__ void backward(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    typedef typename U::T T;
    Job<U> job(a);
    const Pair& pair = job.pair;
    const Limits& range = job.range;
    const T *d_o = head_of<T>(a.d_o, a.o_stride, pair.q_row, pair.head, a.d_v);
    T *dq = head_of<T>(a.dq, a.dq_stride, pair.q_row, pair.head, a.d_k);
    T *dk = head_of<T>(a.dk, a.dk_stride, pair.k_row, pair.head, a.d_k);
    T *dv = head_of<T>(a.dv, a.dv_stride, pair.k_row, pair.head, a.d_v);
    __shared__ float weights[CHUNK], grads[CHUNK];

    float delta = 0.0f;
    for (int key = range.start; key < range.end; key += CHUNK) delta += sum_of_block(weights_and_grads(a, job, d_o, key, weights, grads));

    for (int column = 0; column < (int)max(a.d_k, a.d_v); column += 256 * U::N) {
        ThreadShare of_keys = own_of<U>(column, a.d_k), of_values = own_of<U>(column, a.d_v);
        float sums[U::N] = {};
        for (int key = range.start; key < range.end; key += CHUNK) {
            int count = job.count(key);
            if (!job.fits()) {
                __syncthreads();        // other threads may still read the previous chunk's weights
                weights_and_grads(a, job, d_o, key, weights, grads);
            }
            for (int i = threadIdx.x; i < count && (column == 0 || !job.fits()); i += 256) {
                grads[i] = weights[i] * (grads[i] - delta);
                weights[i] *= dropout_factor(pair, 0, key + i);
            }
            __syncthreads();
            if (a.dq) accumulate(of_keys, grads, job.keys, key, count, sums);
            if (a.dk) outer_product<U>(of_keys, grads, job.q, dk, a.dk_stride, key, count, a.scale);
            if (a.dv) outer_product<U>(of_values, weights, d_o, dv, a.dv_stride, key, count, 1.0f);
        }
        if (a.dq) add_groups<U>(of_keys, sums, dq, a.scale);
    }
    if (a.dk) zero_hidden(dk, a.dk_stride, a.d_k, range, pair.n);
    if (a.dv) zero_hidden(dv, a.dv_stride, a.d_v, range, pair.n);
}

}  // namespace single

// (Without the bound of 2 the compiler spills a little to fit four blocks on a multiprocessor.)
#define SINGLE(unit, name)                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 2) attention_single_forward_##name(Attention a) {   \
        grid_dependency_wait();                                                                                  \
        single::forward<single::unit>(a);                                                                 \
    }                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 2) attention_single_backward_##name(Attention a) {  \
        grid_dependency_wait();                                                                                  \
        single::backward<single::unit>(a);                                                                \
    }

SINGLE(Scalar<float>, f32)
SINGLE(Vector16<float>, f32_16)
SINGLE(Scalar<bf16>, bf16)
SINGLE(Vector16<bf16>, bf16_16)
