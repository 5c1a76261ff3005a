// Heads of any width. As the kernels above, but products of rows go over 64 columns of a head at a time, and a block has 256
// columns of what is summed over rows: those beside each other compute the same weights.
//
// Launch: 256 threads; grid (work items, heads, the wider of d_k and d_v in steps of 256); work items and counts as above.
//   bytes of forward:  4 * (64 * 68 + 32 * 260 + 32 * 36)
//   bytes of backward: 4 * (64 * 68 + 64 * 260 + 64 * 36)

namespace wide {

using namespace generic;

const int NEAR = 64;        // columns of products
const int COLUMNS = 256;    // columns of sums

// Some rows of a part of one head.
template <class T> struct Rows {
    const T *at;
    u32 stride;
    int count;

    __device__ __forceinline__ Rows from(int row) const { return { at + (u64)row * stride, stride, count - row }; }
};

template <class T> __device__ __forceinline__ Rows<T> rows_of(const void *part, u32 stride, int row, int count, u32 head, u32 width) {
    return { head_of<T>(part, stride, row, head, width), stride, count };
}

// The columns of a block among `width`, from the first one on; 0 where there are none.
__device__ __forceinline__ int own_columns(int width) { return clamp(width - (int)blockIdx.z * COLUMNS, 0, COLUMNS); }
__device__ __forceinline__ int first_column() { return blockIdx.z * COLUMNS; }

// Fills a tile that has room for WIDTH columns, of which `tile.width` are there. WIDTH is known to the compiler, so that no
// thread has to divide.
template <int WIDTH, class T> __device__ __forceinline__ void fill_columns(Tile tile, Rows<T> rows, int first) {
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * WIDTH; i += 256) {
        int row = i / WIDTH, column = i % WIDTH;
        bool real = row < rows.count && column < tile.width;
        tile.at[row * (WIDTH + 4) + column] = real ? widen(rows.at[(u64)row * rows.stride + first + column]) : 0.0f;
    }
}

// Products of 32 rows by 32 rows, each of `width` columns. Both tiles are free afterwards only for whoever waits.
template <class T>
__device__ __forceinline__ void products_of(Tile a, Tile b, Rows<T> left, Rows<T> right, int width, float (&products)[2][2]) {
    products[0][0] = products[0][1] = products[1][0] = products[1][1] = 0.0f;
    for (int column = 0; column < width; column += NEAR) {
        a.width = b.width = min(NEAR, width - column);
        __syncthreads();
        fill_columns<NEAR>(a, left, column);
        fill_columns<NEAR>(b, right, column);
        __syncthreads();
        float part[2][2];
        dots(a, b, part);
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) products[i][j] += part[i][j];
    }
}

// A block's columns of 32 rows.
template <class T> __device__ __forceinline__ void fill_own(Tile& tile, Rows<T> rows, int width) {
    tile.width = own_columns(width);
    fill_columns<COLUMNS>(tile, rows, first_column());
}

template <class T>
__device__ void forward(const Attention& a) {
    if (blockIdx.x >= a.work_count[0] || first_column() >= (int)a.d_v) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    Rows<T> queries = rows_of<T>(a.q, a.q_stride, pair.q_row + query, count, head, a.d_k);
    Rows<T> keys = rows_of<T>(a.k, a.k_stride, pair.k_row, pair.n, head, a.d_k);
    Rows<T> values = rows_of<T>(a.v, a.v_stride, pair.k_row, pair.n, head, a.d_v);

    float *free = (float*)memory;
    Tile q = take(free, NEAR), k = take(free, NEAR), v = take(free, COLUMNS);
    float *block = free;

    // First the peaks, then the weights: all of a row's weights are divided by one sum.
    Limits blocks = key_blocks(a, pair, query, count);
    bool once = blocks.end - blocks.start <= ROWS;
    float scores[2][2], tops[2], sums[2] = { 0.0f, 0.0f };
    tops[0] = tops[1] = minus_infinity();
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        products_of(q, k, queries, keys.from(key), a.d_k, scores);
        finish_scores(a, pair, query, key, scores);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float top = row_max(scores[i][0] > scores[i][1] ? scores[i][0] : scores[i][1]);
            top = tops[i] > top ? tops[i] : top;
            if (top == minus_infinity()) continue;  // the same for all threads of the row
            sums[i] *= expf(tops[i] - top);
            sums[i] += expf(scores[i][0] - top) + expf(scores[i][1] - top);
            tops[i] = top;
        }
    }
    float shares[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        shares[i] = 1.0f / row_sum(sums[i]);
        int row = 2 * ty + i;
        if (tx == 0 && row < count && blockIdx.z == 0) {
            float *peak = a.peaks + 2 * ((u64)head * a.peak_rows + pair.q_row + query + row);
            peak[0] = tops[i];
            peak[1] = shares[i];
        }
    }

    Sums<4> context;
    clear(context);
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        if (!once) {
            products_of(q, k, queries, keys.from(key), a.d_k, scores);
            finish_scores(a, pair, query, key, scores);
        }
        float weights[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int row = query + 2 * ty + i, column = key + tx + 16 * j;
                bool hidden = scores[i][j] == minus_infinity();
                float weight = hidden ? 0.0f : expf(scores[i][j] - tops[i]) * shares[i];
                if (blockIdx.z == 0) hand_out(a, pair, row, column, weight, scores[i][j]);
                weights[i][j] = hidden ? 0.0f : weight * kept(pair, row, column);
            }
        // Nobody reads values and weights of a block before any more: the products have waited for all threads.
        fill_own(v, values.from(key), a.d_v);
        put(block, weights);
        __syncthreads();
        accumulate(block, v, context);
    }
    if (blockIdx.z == 0) hand_out_hidden(a, pair, query, count, blocks);
    T *to = head_of<T>(a.o, a.o_stride, pair.q_row + query, head, a.d_v) + first_column();
    write(to, a.o_stride, count, own_columns(a.d_v), context, 1.0f);
}

template <class T>
__device__ void backward_queries(const Attention& a) {
    if (blockIdx.x >= a.work_count[0] || (blockIdx.z > 0 && (!a.dq || first_column() >= (int)a.d_k))) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    Rows<T> queries = rows_of<T>(a.q, a.q_stride, pair.q_row + query, count, head, a.d_k);
    Rows<T> gradient = rows_of<T>(a.d_o, a.o_stride, pair.q_row + query, count, head, a.d_v);
    Rows<T> keys = rows_of<T>(a.k, a.k_stride, pair.k_row, pair.n, head, a.d_k);
    Rows<T> values = rows_of<T>(a.v, a.v_stride, pair.k_row, pair.n, head, a.d_v);

    float *free = (float*)memory;
    Tile left = take(free, NEAR), right = take(free, NEAR), k = take(free, COLUMNS);
    float *block = free;
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
        products_of(left, right, queries, keys.from(key), a.d_k, scores);
        finish_scores(a, pair, query, key, scores);
        products_of(left, right, gradient, values.from(key), a.d_v, products);
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
        if (tx == 0 && 2 * ty + i < count && blockIdx.z == 0) a.delta[first + 2 * ty + i] = deltas[i];
    }
    if (!a.dq) return;

    Sums<4> sums;
    clear(sums);
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        if (!once) {
            products_of(left, right, queries, keys.from(key), a.d_k, scores);
            finish_scores(a, pair, query, key, scores);
            products_of(left, right, gradient, values.from(key), a.d_v, products);
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
        fill_own(k, keys.from(key), a.d_k);
        put(block, slopes);
        __syncthreads();
        accumulate(block, k, sums);
    }
    T *to = head_of<T>(a.dq, a.dq_stride, pair.q_row + query, head, a.d_k) + first_column();
    write(to, a.dq_stride, count, own_columns(a.d_k), sums, a.scale);
}

template <class T>
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

    float *free = (float*)memory;
    Tile left = take(free, NEAR), right = take(free, NEAR), q = take(free, COLUMNS), d_o = take(free, COLUMNS);
    float *weight_block = free, *slope_block = free + ROWS * SCORES;

    Sums<4> key_sums, value_sums;
    clear(key_sums);
    clear(value_sums);
    Limits range = seen_by(a, key, key + count - 1, pair.m, pair.n);
    for (int query = range.start / ROWS * ROWS; query < range.end; query += ROWS) {
        // Everything is turned: rows are keys, columns are queries.
        float scores[2][2], products[2][2], weights[2][2], slopes[2][2];
        products_of(left, right, keys, queries.from(query), a.d_k, scores);
        products_of(left, right, values, gradient.from(query), a.d_v, products);
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
        fill_own(q, queries.from(query), a.d_k);
        fill_own(d_o, gradient.from(query), a.d_v);
        put(weight_block, weights);
        put(slope_block, slopes);
        __syncthreads();
        accumulate(weight_block, d_o, value_sums);
        accumulate(slope_block, q, key_sums);
    }
    int row = pair.k_row + key, first = first_column();
    if (a.dk) write(head_of<T>(a.dk, a.dk_stride, row, head, a.d_k) + first, a.dk_stride, count, own_columns(a.d_k), key_sums, a.scale);
    if (a.dv) write(head_of<T>(a.dv, a.dv_stride, row, head, a.d_v) + first, a.dv_stride, count, own_columns(a.d_v), value_sums, 1.0f);
}

}  // namespace wide

#define WIDE(type, name)                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1) attention_forward_##name##_wide(Attention a) {         \
        wide::forward<type>(a);                                                                                \
    }                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_queries_##name##_wide(Attention a) {\
        wide::backward_queries<type>(a);                                                                       \
    }                                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 1) attention_backward_keys_##name##_wide(Attention a) {   \
        wide::backward_keys<type>(a);                                                                          \
    }

WIDE(float, f32)
WIDE(bf16, bf16)
