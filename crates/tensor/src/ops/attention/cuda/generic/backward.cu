// Backward: dQ by blocks of queries, which leave delta; then dK and dV by blocks of keys.

namespace generic {

template <class T, int C>
__device__ void backward_queries(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    const T *keys = head_of<T>(a.k, a.k_stride, pair.k_row, head, a.d_k);
    const T *values = head_of<T>(a.v, a.v_stride, pair.k_row, head, a.d_v);

    float *free = (float*)memory;
    Tile q = take(free, a.d_k), k = take(free, a.d_k), v = take(free, a.d_v), d_o = take(free, a.d_v);
    float *block = free;
    fill(q, head_of<T>(a.q, a.q_stride, pair.q_row + query, head, a.d_k), a.q_stride, count);
    fill(d_o, head_of<T>(a.d_o, a.o_stride, pair.q_row + query, head, a.d_v), a.o_stride, count);
    u64 first = (u64)head * a.peak_rows + pair.q_row + query;
    float tops[2], shares[2], deltas[2] = { 0.0f, 0.0f };
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u64 row = first + min(2 * ty + i, count - 1);
        tops[i] = a.peaks[2 * row];
        shares[i] = a.peaks[2 * row + 1];
    }

    Limits blocks = key_blocks(a, pair, query, count);
    bool once = blocks.end - blocks.start <= ROWS;
    float scores[2][2], products[2][2];
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        __syncthreads();
        fill(k, keys + (u64)key * a.k_stride, a.k_stride, pair.n - key);
        fill(v, values + (u64)key * a.v_stride, a.v_stride, pair.n - key);
        __syncthreads();
        score(a, pair, q, k, query, key, scores);
        dots(d_o, v, products);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                Found it = found(pair, scores[i][j], products[i][j], tops[i], shares[i], query + 2 * ty + i,
                                 key + tx + 16 * j);
                deltas[i] = fmaf(it.weight, it.slope, deltas[i]);
            }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        deltas[i] = row_sum(deltas[i]);
        if (tx == 0 && 2 * ty + i < count) a.delta[first + 2 * ty + i] = deltas[i];
    }
    if (!a.dq) return;

    Sums<C> sums;
    clear(sums);
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        __syncthreads();
        if (!once) {
            fill(k, keys + (u64)key * a.k_stride, a.k_stride, pair.n - key);
            fill(v, values + (u64)key * a.v_stride, a.v_stride, pair.n - key);
            __syncthreads();
            score(a, pair, q, k, query, key, scores);
            dots(d_o, v, products);
        }
        float slopes[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                Found it = found(pair, scores[i][j], products[i][j], tops[i], shares[i], query + 2 * ty + i,
                                 key + tx + 16 * j);
                slopes[i][j] = it.weight * (it.slope - deltas[i]);
            }
        put(block, slopes);
        __syncthreads();
        accumulate(block, k, sums);
    }
    write(head_of<T>(a.dq, a.dq_stride, pair.q_row + query, head, a.d_k), a.dq_stride, count, a.d_k, sums, a.scale);
}

template <class T, int C>
__device__ void backward_keys(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int key = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.n - key);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    const T *queries = head_of<T>(a.q, a.q_stride, pair.q_row, head, a.d_k);
    const T *gradient = head_of<T>(a.d_o, a.o_stride, pair.q_row, head, a.d_v);

    float *free = (float*)memory;
    Tile q = take(free, a.d_k), k = take(free, a.d_k), v = take(free, a.d_v), d_o = take(free, a.d_v);
    float *weight_block = free, *slope_block = free + ROWS * SCORES;
    fill(k, head_of<T>(a.k, a.k_stride, pair.k_row + key, head, a.d_k), a.k_stride, count);
    fill(v, head_of<T>(a.v, a.v_stride, pair.k_row + key, head, a.d_v), a.v_stride, count);

    Sums<C> key_sums, value_sums;
    clear(key_sums);
    clear(value_sums);
    Limits range = seen_by(a, key, key + count - 1, pair.m, pair.n);
    for (int query = range.start / ROWS * ROWS; query < range.end; query += ROWS) {
        __syncthreads();
        fill(q, queries + (u64)query * a.q_stride, a.q_stride, pair.m - query);
        fill(d_o, gradient + (u64)query * a.o_stride, a.o_stride, pair.m - query);
        __syncthreads();
        // Everything is turned: rows are keys, columns are queries.
        float scores[2][2], products[2][2], weights[2][2], slopes[2][2];
        dots(k, q, scores);
        dots(v, d_o, products);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int column = query + tx + 16 * j;
            u64 row = (u64)head * a.peak_rows + pair.q_row + min(column, pair.m - 1);
            float top = a.peaks[2 * row], share = a.peaks[2 * row + 1], delta = a.delta[row];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int own = key + 2 * ty + i;
                float score = minus_infinity();
                if (visible(a, pair, column, own)) score = finite(scores[i][j] * a.scale);
                Found it = found(pair, score, products[i][j], top, share, column, own);
                weights[i][j] = it.weight * it.factor;
                slopes[i][j] = it.weight * (it.slope - delta);
            }
        }
        put(weight_block, weights);
        put(slope_block, slopes);
        __syncthreads();
        accumulate(weight_block, d_o, value_sums);
        accumulate(slope_block, q, key_sums);
    }
    int row = pair.k_row + key;
    if (a.dk) write(head_of<T>(a.dk, a.dk_stride, row, head, a.d_k), a.dk_stride, count, a.d_k, key_sums, a.scale);
    if (a.dv) write(head_of<T>(a.dv, a.dv_stride, row, head, a.d_v), a.dv_stride, count, a.d_v, value_sums, 1.0f);
}

}  // namespace generic

// (Left alone the compiler would spill a little in the wide kernels to get under 128 registers.)
#define GENERIC(type, name, C, ...)                                                                           \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) attention_forward_##name(Attention a) {         \
        generic::forward<type, C>(a);                                                                         \
    }                                                                                                         \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) attention_backward_queries_##name(Attention a) {\
        generic::backward_queries<type, C>(a);                                                                \
    }                                                                                                         \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) attention_backward_keys_##name(Attention a) {   \
        generic::backward_keys<type, C>(a);                                                                   \
    }

GENERIC(float, f32, 4, 256, 1)
GENERIC(float, f32_64, 1, 256)
GENERIC(bf16, bf16, 4, 256, 1)
GENERIC(bf16, bf16_64, 1, 256)
