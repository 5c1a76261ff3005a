// Backward: dQ by blocks of queries, which also write delta; then dK and dV by blocks of keys.

namespace generic {

// A block's tiles: for scores and for dO V^T, which share them in wide heads (C > 1), and its own columns of both right sides.
template <int C> struct SharedTiles {
    Sides<C> of_scores, of_grads;
    Tile<64 * C> own[2];
    float *blocks;              // two of 32 x 32

    __device__ __forceinline__ SharedTiles() {
        float *free = (float*)memory;
        Tile<PRODUCT_COLUMNS> first = allocate<PRODUCT_COLUMNS>(free), second = allocate<PRODUCT_COLUMNS>(free);
        own[0] = allocate<64 * C>(free);
        own[1] = allocate<64 * C>(free);
        blocks = free;
        if constexpr (C == 1) {
            of_scores = { first, own[0] };
            of_grads = { second, own[1] };
        } else {
            of_scores = of_grads = { first, second };
        }
    }

    // Own columns of a right side. (In narrow heads the product has filled them.)
    template <class T> __device__ __forceinline__ const Tile<64 * C>& own_of(int side, Rows<T> rows, int width) {
        if constexpr (C == 1) own[side].width = width;
        else fill_own<C>(own[side], rows, width);
        return own[side];
    }
};

template <class T, int C>
__device__ void backward_queries(const Attention& a) {
    if (blockIdx.x >= a.work_count[0] || (blockIdx.z > 0 && (!a.dq || first_column<C>() >= (int)a.d_k))) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    Rows<T> queries = rows_of<T>(a.q, a.q_stride, pair.q_row + query, count, head, a.d_k);
    Rows<T> gradient = rows_of<T>(a.d_o, a.o_stride, pair.q_row + query, count, head, a.d_v);
    Rows<T> keys = rows_of<T>(a.k, a.k_stride, pair.k_row, pair.n, head, a.d_k);
    Rows<T> values = rows_of<T>(a.v, a.v_stride, pair.k_row, pair.n, head, a.d_v);

    SharedTiles<C> tiles;
    u64 first = (u64)head * a.stats_rows + pair.q_row + query;
    float tops[2], inv_sums[2], deltas[2] = { 0.0f, 0.0f };
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u64 row = first + min(2 * ty + i, count - 1);
        tops[i] = a.stats[2 * row];
        inv_sums[i] = a.stats[2 * row + 1];
    }

    // First the deltas, then the gradient.
    Limits blocks = key_blocks(a, pair, query, count);
    bool single_block = blocks.end - blocks.start <= ROWS;
    float scores[2][2], products[2][2];
    Sums<C> sums;
    clear(sums);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        for (int key = blocks.start; key < blocks.end; key += ROWS) {
            if (pass == 0 || !single_block) {
                bool is_later = pass > 0 || key > blocks.start;
                tiles.of_scores.multiply(queries, keys.from(key), a.d_k, is_later, scores);
                finish_scores(a, pair, query, key, scores);
                tiles.of_grads.multiply(gradient, values.from(key), a.d_v, is_later, products);
            }
            float grads[2][2];
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    WeightGrad it = weight_grad(pair, scores[i][j], products[i][j], tops[i], inv_sums[i], query + 2 * ty + i,
                                     key + tx + 16 * j);
                    if (pass == 0) deltas[i] = fmaf(it.weight, it.grad, deltas[i]);
                    else grads[i][j] = it.weight * (it.grad - deltas[i]);
                }
            if (pass == 0) continue;
            const Tile<64 * C>& k = tiles.own_of(0, keys.from(key), a.d_k);
            store_block(tiles.blocks, grads);
            __syncthreads();
            accumulate<C>(tiles.blocks, k, sums);
        }
        if (pass > 0) continue;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            deltas[i] = row_sum(deltas[i]);
            if (tx == 0 && 2 * ty + i < count && blockIdx.z == 0) a.delta[first + 2 * ty + i] = deltas[i];
        }
        if (!a.dq) return;
    }
    T *to = head_of<T>(a.dq, a.dq_stride, pair.q_row + query, head, a.d_k) + first_column<C>();
    write(to, a.dq_stride, count, own_columns<C>(a.d_k), sums, a.scale);
}

template <class T, int C>
__device__ void backward_keys(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int key = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.n - key);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    Rows<T> queries = rows_of<T>(a.q, a.q_stride, pair.q_row, pair.m, head, a.d_k);
    Rows<T> gradient = rows_of<T>(a.d_o, a.o_stride, pair.q_row, pair.m, head, a.d_v);
    Rows<T> keys = rows_of<T>(a.k, a.k_stride, pair.k_row + key, count, head, a.d_k);
    Rows<T> values = rows_of<T>(a.v, a.v_stride, pair.k_row + key, count, head, a.d_v);

    SharedTiles<C> tiles;
    float *weight_block = tiles.blocks, *grad_block = tiles.blocks + ROWS * SCORES;
    Sums<C> key_sums, value_sums;
    clear(key_sums);
    clear(value_sums);
    Limits range = visible_queries(a, key, key + count - 1, pair.m, pair.n);
    int start = range.start / ROWS * ROWS;
    for (int query = start; query < range.end; query += ROWS) {
        // Everything is transposed: rows are keys, columns are queries.
        float scores[2][2], products[2][2], weights[2][2], grads[2][2];
        tiles.of_scores.multiply(keys, queries.from(query), a.d_k, query > start, scores);
        tiles.of_grads.multiply(values, gradient.from(query), a.d_v, query > start, products);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int column = query + tx + 16 * j;
            u64 row = (u64)head * a.stats_rows + pair.q_row + min(column, pair.m - 1);
            float top = a.stats[2 * row], inv_sum = a.stats[2 * row + 1], delta = a.delta[row];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int own = key + 2 * ty + i;
                float score = minus_infinity();
                if (visible(a, pair, column, own)) score = finite(scores[i][j] * a.scale);
                WeightGrad it = weight_grad(pair, score, products[i][j], top, inv_sum, column, own);
                weights[i][j] = it.weight * it.factor;
                grads[i][j] = it.weight * (it.grad - delta);
            }
        }
        const Tile<64 * C>& q = tiles.own_of(0, queries.from(query), a.d_k);
        const Tile<64 * C>& d_o = tiles.own_of(1, gradient.from(query), a.d_v);
        store_block(weight_block, weights);
        store_block(grad_block, grads);
        __syncthreads();
        accumulate<C>(weight_block, d_o, value_sums);
        accumulate<C>(grad_block, q, key_sums);
    }
    int row = pair.k_row + key, first = first_column<C>();
    if (a.dk) write(head_of<T>(a.dk, a.dk_stride, row, head, a.d_k) + first, a.dk_stride, count, own_columns<C>(a.d_k), key_sums, a.scale);
    if (a.dv) write(head_of<T>(a.dv, a.dv_stride, row, head, a.d_v) + first, a.dv_stride, count, own_columns<C>(a.d_v), value_sums, 1.0f);
}

}  // namespace generic

// (Without the explicit bound of 1 the compiler spills a little in the wide kernels to get under 128 registers.)
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
