// Backward of more than 128 tokens: queries iterate over keys for dQ, keys over queries for dK and dV.

namespace fast {

// The gradient of 16 queries, accumulated over the keys.
template <int D> struct QueryGradient {
    u32 queries, gradient;      // addresses of the tiles of Q and dO
    float deltas[2];

    __device__ __forceinline__ void begin(u32 q, u32 d_o, int row) {
        queries = tile<D>(q, row);
        gradient = tile<D>(d_o, row);
        deltas[0] = deltas[1] = 0.0f;
    }

    // P and dP of 32 keys from `key` on; 0 for hidden keys.
    __device__ __forceinline__ void compute(const SharedLayout& layout, u32 k, u32 v, int row, int key_row, int key, int end,
                                         float scale, float dropout_scale, float (&weights)[4][4], float (&grads)[4][4]) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        dots32<D>(queries, k, key_row + key, key_row + end, weights);
        dots32<D>(gradient, v, key_row + key, key_row + end, grads);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            RowInfo own = layout.rows[row + g + 8 * i];
            u32 keep = layout.keep[(row + g + 8 * i) * 4 + key / 32] >> 2 * t;
#pragma unroll
            for (int block = 0; block < 4; block++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float& weight = weights[block][2 * i + j];
                    float& grad = grads[block][2 * i + j];
                    bool real = key + 8 * block + 2 * t + j - own.start < own.count;
                    real = real && (block < 2 || key + 16 < end);
                    weight = real ? exp2_fast((finite(weight * scale) - own.top) * LOG2_E) * own.inv_sum : 0.0f;
                    grad = real && (keep >> 8 * block & 1 << j) ? grad * dropout_scale : 0.0f;
                }
        }
    }

    __device__ __forceinline__ void add_deltas(const float (&weights)[4][4], const float (&grads)[4][4]) {
#pragma unroll
        for (int block = 0; block < 4; block++)
#pragma unroll
            for (int e = 0; e < 4; e++) deltas[e / 2] = fmaf(weights[block][e], grads[block][e], deltas[e / 2]);
    }
    // Sums over lanes; every lane gets the result.
    __device__ __forceinline__ void finish_deltas() {
        deltas[0] = row_sum(deltas[0]);
        deltas[1] = row_sum(deltas[1]);
    }

    // dS of one half of 32 keys as a left factor.
    __device__ __forceinline__ void pack_grads(const float (&weights)[4][4], const float (&grads)[4][4], int half,
                                                u32 (&to)[4]) const {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int block = 2 * half + part / 2, e = part % 2 * 2;
            float delta = deltas[part % 2];
            to[part] = pack_bf16(weights[block][e] * (grads[block][e] - delta),
                                 weights[block][e + 1] * (grads[block][e + 1] - delta));
        }
    }

    // dQ += dS K.
    __device__ __forceinline__ void add_gradient(Sums<D>& sums, u32 k, int key_row, int key, int end,
                                                 const float (&weights)[4][4], const float (&grads)[4][4]) const {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (half == 1 && key + 16 >= end) continue;
            u32 left[4];
            pack_grads(weights, grads, half, left);
            sums.add(left, tile<D>(k, key_row + key + 16 * half));
        }
    }
};

// The gradients of 16 keys and their values, accumulated over the queries. Everything is transposed: rows are keys.
template <int D> struct KeyGradient {
    u32 keys, values;               // addresses of the tiles of K and V
    Sums<D> key_sums, value_sums;

    __device__ __forceinline__ void begin(u32 k, u32 v, int row) {
        keys = tile<D>(k, row);
        values = tile<D>(v, row);
        key_sums.clear();
        value_sums.clear();
    }

    // Processes queries in shared memory, the first of them at row `query_row`; `key` is the tile's first.
    __device__ __forceinline__ void accumulate(const SharedLayout& layout, u32 q, u32 d_o, int query_row, int key, Limits queries,
                                           float scale, float dropout_scale) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
#pragma unroll 1
        for (int query = queries.start; query < queries.end; query += 16) {
            int at = query_row + query;
            float weights[2][4], grads[2][4];
            dots<D>(keys, tile<D>(q, at), weights[0], weights[1]);
            dots<D>(values, tile<D>(d_o, at), grads[0], grads[1]);
#pragma unroll
            for (int block = 0; block < 2; block++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    int row = at + 8 * block + 2 * t + j;
                    RowInfo own = layout.rows[row];
                    float delta = layout.deltas[row];
                    u32 keep = ((const u16*)layout.keep)[row * 8 + key / 16] >> g;
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        float& weight = weights[block][2 * i + j];
                        float& grad = grads[block][2 * i + j];
                        bool real = key + g + 8 * i - own.start < own.count;
                        bool kept = real && (keep >> 8 * i & 1);
                        float before = exp2_fast((finite(weight * scale) - own.top) * LOG2_E) * own.inv_sum;
                        grad = real ? before * ((kept ? grad * dropout_scale : 0.0f) - delta) : 0.0f;
                        weight = kept ? before : 0.0f;
                    }
                }
            u32 left[4];
            pack(weights, left);
            value_sums.add(left, tile<D>(d_o, at));
            pack(grads, left);
            key_sums.add(left, tile<D>(q, at));
        }
    }
    static __device__ __forceinline__ void pack(const float (&from)[2][4], u32 (&to)[4]) {
#pragma unroll
        for (int part = 0; part < 4; part++)
            to[part] = pack_bf16(from[part / 2][part % 2 * 2], from[part / 2][part % 2 * 2 + 1]);
    }

    __device__ __forceinline__ void finish(const Attention& a, const Pair& pair, int key, int count, float dropout_scale) {
        int row = pair.k_row + key;
        if (a.dk) {
            key_sums.scale_rows(a.scale, a.scale);
            key_sums.write(to<D>(a.dk, a.dk_stride, row, pair.head), a.dk_stride, count);
        }
        if (a.dv) {
            value_sums.scale_rows(dropout_scale, dropout_scale);
            value_sums.write(to<D>(a.dv, a.dv_stride, row, pair.head), a.dv_stride, count);
        }
    }
};

// The range of queries in shared memory that see a tile of keys, from a multiple of 16 on.
__device__ __forceinline__ Limits queries_of(const Attention& a, const Pair& pair, int key, int count, int query,
                                             int queries) {
    Limits limits = visible_queries(a, key, key + count - 1, pair.m, pair.n);
    limits.start = clamp(limits.start - query, 0, queries) & ~15;
    limits.end = clamp(limits.end - query, 0, queries);
    return limits;
}

// dQ and the deltas of 64 queries of a long sequence.
template <int D>
__device__ __forceinline__ void backward_queries(const Attention& a, const Pair& pair) {
    SharedLayout layout(4, ROWS, D);
    Group group = { 128, 0 };
    u32 q = layout.tensor(0), k = layout.tensor(1), v = layout.tensor(2), d_o = layout.tensor(3), head = pair.head;
    u32 lane = threadIdx.x & 31;
    int first = pair.first, all = min(LONG, pair.m - first), own = 16 * group.warp(), count = min(16, all - own);
    copy_rows<D>(group, q, from<D>(a.q, a.q_stride, pair.q_row + first, head), a.q_stride, all);
    copy_rows<D>(group, d_o, from<D>(a.d_o, a.o_stride, pair.q_row + first, head), a.o_stride, all);
    wait_for_copies();
    __syncthreads();
    QueryGradient<D> tile;
    if (count > 0) tile.begin(q, d_o, own);
    Sums<D> sums;
    sums.clear();
    float dropout_scale = a.dropout->scale;
    Limits blocks = key_blocks(a, pair, first, all, ROWS);
    // First pass: the deltas; second pass: the gradient.
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
#pragma unroll 1
        for (int key = blocks.start; key < blocks.end; key += ROWS) {
            int keys = min(ROWS, pair.n - key);
            copy_rows<D>(group, k, from<D>(a.k, a.k_stride, pair.k_row + key, head), a.k_stride, keys);
            copy_rows<D>(group, v, from<D>(a.v, a.v_stride, pair.k_row + key, head), a.v_stride, keys);
            load_row_info(a, pair, group, layout, first, all, key, keys, true);
            wait_for_copies();
            __syncthreads();
            Limits part = { 0, 0 };
            if (count > 0) part = keys_of(a, pair, first + own, count, key, keys);
#pragma unroll 1
            for (int at = part.start; at < part.end; at += 32) {
                float weights[4][4], grads[4][4];
                tile.compute(layout, k, v, own, 0, at, part.end, a.scale, dropout_scale, weights, grads);
                if (pass == 0) tile.add_deltas(weights, grads);
                else tile.add_gradient(sums, k, 0, at, part.end, weights, grads);
            }
            __syncthreads();
        }
        if (pass == 0) tile.finish_deltas();
    }
    if (count <= 0) return;
    if (lane % 4 == 0) {
        float *deltas = a.delta + (u64)head * a.stats_rows + pair.q_row + first + own;
        int row = lane / 4;
        if (row < count) deltas[row] = tile.deltas[0];
        if (row + 8 < count) deltas[row + 8] = tile.deltas[1];
    }
    if (!a.dq) return;
    sums.scale_rows(a.scale, a.scale);
    sums.write(to<D>(a.dq, a.dq_stride, pair.q_row + first + own, head), a.dq_stride, count);
}

// dK and dV of 64 keys of a long sequence.
template <int D>
__device__ __forceinline__ void backward_keys(const Attention& a, const Pair& pair) {
    SharedLayout layout(4, ROWS, D);
    Group group = { 128, 0 };
    u32 q = layout.tensor(0), k = layout.tensor(1), v = layout.tensor(2), d_o = layout.tensor(3), head = pair.head;
    int first = pair.first, all = min(LONG, pair.n - first), own = 16 * group.warp(), count = min(16, all - own);
    copy_rows<D>(group, k, from<D>(a.k, a.k_stride, pair.k_row + first, head), a.k_stride, all);
    copy_rows<D>(group, v, from<D>(a.v, a.v_stride, pair.k_row + first, head), a.v_stride, all);
    wait_for_copies();
    __syncthreads();
    KeyGradient<D> tile;
    if (count > 0) tile.begin(k, v, own);
    float dropout_scale = a.dropout->scale;
    Limits range = visible_queries(a, first, first + all - 1, pair.m, pair.n);
#pragma unroll 1
    for (int query = range.start / ROWS * ROWS; query < range.end; query += ROWS) {
        int queries = min(ROWS, pair.m - query);
        copy_rows<D>(group, q, from<D>(a.q, a.q_stride, pair.q_row + query, head), a.q_stride, queries);
        copy_rows<D>(group, d_o, from<D>(a.d_o, a.o_stride, pair.q_row + query, head), a.o_stride, queries);
        load_row_info(a, pair, group, layout, query, queries, first, all, true);
        const float *deltas = a.delta + (u64)head * a.stats_rows + pair.q_row + query;
        for (int i = group.thread(); i < up16(queries); i += group.threads()) layout.deltas[i] = i < queries ? deltas[i] : 0.0f;
        wait_for_copies();
        __syncthreads();
        if (count > 0)
            tile.accumulate(layout, q, d_o, 0, own, queries_of(a, pair, first + own, count, query, queries), a.scale,
                        dropout_scale);
        __syncthreads();
    }
    if (count > 0) tile.finish(a, pair, first + own, count, dropout_scale);
}

}  // namespace fast
