// Attention for heads of any width, any mask, f32 or bf16, in f32 arithmetic: simple, and the reference for the fast
// kernels.
//
// A block works on 32 rows of one head (forward and dQ: queries; dK and dV: keys) and iterates over the other side 32
// rows at a time. Thread (ty, tx) of 16 x 16 has rows 2 ty and 2 ty + 1; of products of rows the columns tx and
// tx + 16, of sums over rows the columns 4 tx + 64 c + 0..3. Products go over 64 columns of a head at a time. A block
// has 64 C columns of the sums over rows: blocks with the same rows compute the same weights.
//
// Launch: 256 threads; grid (at least the number of work items, heads, the wider of d_k and d_v in steps of 64 C); dynamic
// shared memory as below.
//   work items of forward and backward_queries: (sequence, first query), first = 0, 32, 64.. below the sequence's length
//   work items of backward_keys: (sequence, first key), likewise of the key sequences
//   work_count[0]: the number of items
//   backward_keys runs after backward_queries, which writes delta
// Kernels whose names end in _64 have C = 1 and are for d_k and d_v <= 64; the others have C = 4.
//   bytes of forward:  4 * (64 * 68 + 32 * (64 C + 4) + 32 * 36)
//   bytes of backward: 4 * (64 * 68 + 64 * (64 C + 4) + 64 * 36)

namespace generic {

const int ROWS = 32;
const int SCORES = 36;  // row stride of a block of scores
const int PRODUCT_COLUMNS = 64;    // columns of products at a time

extern __shared__ __align__(128) u8 memory[];

// Rows of WIDTH columns in shared memory, `width` of them valid. The stride puts 16-byte reads of rows into different banks.
template <int WIDTH> struct Tile {
    static const int STRIDE = WIDTH + 4;
    float *at;
    int width;
};

template <int WIDTH> __device__ __forceinline__ Tile<WIDTH> allocate(float*& free) {
    Tile<WIDTH> tile = { free, WIDTH };
    free += ROWS * Tile<WIDTH>::STRIDE;
    return tile;
}

// Some rows of one head of a tensor.
template <class T> struct Rows {
    const T *at;
    u32 stride;
    int count;

    __device__ __forceinline__ Rows from(int row) const { return { at + (u64)row * stride, stride, count - row }; }
};

template <class T> __device__ __forceinline__ Rows<T> rows_of(const void *part, u32 stride, int row, int count, u32 head, u32 width) {
    return { head_of<T>(part, stride, row, head, width), stride, count };
}

// A block's columns among `width`, and the first of them; no columns past the end.
template <int C> __device__ __forceinline__ int first_column() { return blockIdx.z * 64 * C; }
template <int C> __device__ __forceinline__ int own_columns(int width) { return clamp(width - first_column<C>(), 0, 64 * C); }

// Fills a tile with columns from `first` on; rows and columns past the end become 0.
template <int WIDTH, class T> __device__ __forceinline__ void fill(const Tile<WIDTH>& tile, Rows<T> rows, int first) {
#pragma unroll 2
    for (int i = threadIdx.x; i < ROWS * WIDTH; i += 256) {
        int row = i / WIDTH, column = i % WIDTH;
        bool real = row < rows.count && column < tile.width;
        tile.at[row * (WIDTH + 4) + column] = real ? widen(rows.at[(u64)row * rows.stride + first + column]) : 0.0f;
    }
}

// The same for the block's own columns.
template <int C, class T> __device__ __forceinline__ void fill_own(Tile<64 * C>& tile, Rows<T> rows, int width) {
    tile.width = own_columns<C>(width);
    fill(tile, rows, first_column<C>());
}

__device__ __forceinline__ float4 load_float4(const float *at) { return *(const float4*)at; }

// products[i][j] += row (2 ty + i) of a times row (tx + 16 j) of b.
__device__ __forceinline__ void dots(const Tile<PRODUCT_COLUMNS>& a, const Tile<PRODUCT_COLUMNS>& b, float (&products)[2][2]) {
    const int STRIDE = Tile<PRODUCT_COLUMNS>::STRIDE;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float *left = a.at + 2 * ty * STRIDE, *right = b.at + tx * STRIDE;
    for (int k = 0; k < a.width; k += 4) {
        float4 x[2] = { load_float4(left + k), load_float4(left + STRIDE + k) };
        float4 y[2] = { load_float4(right + k), load_float4(right + 16 * STRIDE + k) };
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float& sum = products[i][j];
                sum = fmaf(x[i].x, y[j].x, sum);
                sum = fmaf(x[i].y, y[j].y, sum);
                sum = fmaf(x[i].z, y[j].z, sum);
                sum = fmaf(x[i].w, y[j].w, sum);
            }
    }
}

// Tiles of both factors of a product. For narrow heads (C = 1) they stay filled: the left factor is the same for all
// blocks of the other side, and the right one is summed over afterwards.
template <int C> struct Sides {
    Tile<PRODUCT_COLUMNS> left, right;

    // Products of 32 rows by 32 rows, each of `width` columns and one chain of fmas. `is_later`: the left tile is filled already.
    template <class T>
    __device__ __forceinline__ void multiply(Rows<T> a, Rows<T> b, int width, bool is_later, float (&products)[2][2]) {
        products[0][0] = products[0][1] = products[1][0] = products[1][1] = 0.0f;
        for (int column = 0; column < width; column += PRODUCT_COLUMNS) {
            left.width = right.width = min(PRODUCT_COLUMNS, width - column);
            __syncthreads();
            if (C > 1 || !is_later) fill(left, a, column);
            fill(right, b, column);
            __syncthreads();
            dots(left, right, products);
        }
    }
};

// A thread's part of 32 rows of sums: C groups of four columns.
template <int C> struct Sums { float4 part[2][C]; };

template <int C> __device__ __forceinline__ void clear(Sums<C>& sums) {
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < C; c++) sums.part[i][c] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__device__ __forceinline__ void add(float4& sum, float factor, float4 x) {
    sum.x = fmaf(factor, x.x, sum.x);
    sum.y = fmaf(factor, x.y, sum.y);
    sum.z = fmaf(factor, x.z, sum.z);
    sum.w = fmaf(factor, x.w, sum.w);
}

// sums += factors (32 x 32) b.
template <int C>
__device__ __forceinline__ void accumulate(const float *factors, const Tile<64 * C>& b, Sums<C>& sums) {
    const int STRIDE = Tile<64 * C>::STRIDE;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float *row = factors + 2 * ty * SCORES;
    for (int k = 0; k < ROWS; k += 4) {
        float4 x[2] = { load_float4(row + k), load_float4(row + SCORES + k) };
#pragma unroll
        for (int c = 0; c < C; c++) {
            int column = 4 * tx + 64 * c;
            if (column >= b.width) continue;
            const float *at = b.at + k * STRIDE + column;
            float4 y[4] = { load_float4(at), load_float4(at + STRIDE), load_float4(at + 2 * STRIDE), load_float4(at + 3 * STRIDE) };
#pragma unroll
            for (int i = 0; i < 2; i++) {
                add(sums.part[i][c], x[i].x, y[0]);
                add(sums.part[i][c], x[i].y, y[1]);
                add(sums.part[i][c], x[i].z, y[2]);
                add(sums.part[i][c], x[i].w, y[3]);
            }
        }
    }
}

template <class T, int C>
__device__ __forceinline__ void write(T *to, u32 stride, int count, int width, const Sums<C>& sums, float scale) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < C; c++) {
            int row = 2 * ty + i, column = 4 * tx + 64 * c;
            const float4& part = sums.part[i][c];
            float values[4] = { part.x, part.y, part.z, part.w };
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (row < count && column + e < width)
                    to[(u64)row * stride + column + e] = narrow<T>(values[e] * scale);
        }
}

// Stores a thread's four values in a block of 32 x 32.
__device__ __forceinline__ void store_block(float *block, const float (&values)[2][2]) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) block[(2 * ty + i) * SCORES + tx + 16 * j] = values[i][j];
}

// Reduction over the 16 threads that share rows; every one gets the result.
__device__ __forceinline__ float row_sum(float x) {
    for (int step = 8; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
__device__ __forceinline__ float row_max(float x) {
    for (int step = 8; step > 0; step >>= 1) {
        float y = __shfl_xor_sync(0xffffffffu, x, step);
        x = y > x ? y : x;
    }
    return x;
}

// Turns products of 32 queries and 32 keys into scores; hidden ones are -inf.
__device__ __forceinline__ void finish_scores(const Attention& a, const Pair& pair, int query, int key, float (&scores)[2][2]) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            bool real = visible(a, pair, query + 2 * ty + i, key + tx + 16 * j);
            scores[i][j] = real ? finite(scores[i][j] * a.scale) : minus_infinity();
        }
}

// The blocks of 32 keys that any of 32 queries sees.
__device__ __forceinline__ Limits key_blocks(const Attention& a, const Pair& pair, int query, int count) {
    Limits limits;
    limits.start = visible_keys(a, query, pair.m, pair.n).start / ROWS * ROWS;
    limits.end = visible_keys(a, query + count - 1, pair.m, pair.n).end;
    return limits;
}

// Writes zero weights for hidden keys outside of the visited blocks.
__device__ __forceinline__ void store_hidden(const Attention& a, const Pair& pair, int query, int count, Limits blocks) {
    if (!a.weights) return;
    int end = blocks.start + (blocks.end - blocks.start + ROWS - 1) / ROWS * ROWS;
    u64 start = weights_offset(a, pair) + (u64)query * pair.n;
    for (int i = threadIdx.x; i < count * pair.n; i += 256) {
        int column = i % pair.n;
        if (column >= blocks.start && column < end) continue;
        a.weights[start + i] = 0.0f;
        if (a.scores) a.scores[start + i] = minus_infinity();
    }
}

template <class T, int C>
__device__ void forward(const Attention& a) {
    if (blockIdx.x >= a.work_count[0] || first_column<C>() >= (int)a.d_v) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    Rows<T> queries = rows_of<T>(a.q, a.q_stride, pair.q_row + query, count, head, a.d_k);
    Rows<T> keys = rows_of<T>(a.k, a.k_stride, pair.k_row, pair.n, head, a.d_k);
    Rows<T> values = rows_of<T>(a.v, a.v_stride, pair.k_row, pair.n, head, a.d_v);

    float *free = (float*)memory;
    Sides<C> of_scores = { allocate<PRODUCT_COLUMNS>(free), allocate<PRODUCT_COLUMNS>(free) };
    Tile<64 * C> v = allocate<64 * C>(free);
    float *block = free;

    // First pass: maximum and sum of exponentials; second pass: the weights, all divided by one sum.
    Limits blocks = key_blocks(a, pair, query, count);
    bool single_block = blocks.end - blocks.start <= ROWS;
    float scores[2][2], tops[2], sums[2] = { 0.0f, 0.0f };
    tops[0] = tops[1] = minus_infinity();
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        of_scores.multiply(queries, keys.from(key), a.d_k, key > blocks.start, scores);
        finish_scores(a, pair, query, key, scores);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float top = row_max(scores[i][0] > scores[i][1] ? scores[i][0] : scores[i][1]);
            top = tops[i] > top ? tops[i] : top;
            if (top == minus_infinity()) continue;  // uniform over the row's threads
            sums[i] *= expf(tops[i] - top);
            sums[i] += expf(scores[i][0] - top) + expf(scores[i][1] - top);
            tops[i] = top;
        }
    }
    float inv_sums[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        inv_sums[i] = 1.0f / row_sum(sums[i]);
        int row = 2 * ty + i;
        if (tx == 0 && row < count && blockIdx.z == 0) {
            float *row_stats = a.stats + 2 * ((u64)head * a.stats_rows + pair.q_row + query + row);
            row_stats[0] = tops[i];
            row_stats[1] = inv_sums[i];
        }
    }

    Sums<C> context;
    clear(context);
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        if (!single_block) {
            of_scores.multiply(queries, keys.from(key), a.d_k, true, scores);
            finish_scores(a, pair, query, key, scores);
        }
        float weights[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int row = query + 2 * ty + i, column = key + tx + 16 * j;
                bool hidden = scores[i][j] == minus_infinity();
                float weight = hidden ? 0.0f : expf(scores[i][j] - tops[i]) * inv_sums[i];
                if (blockIdx.z == 0) store_weight(a, pair, row, column, weight, scores[i][j]);
                weights[i][j] = hidden ? 0.0f : weight * dropout_factor(pair, row, column);
            }
        // All threads have finished reading the previous block's values and weights: `multiply` has synchronized them.
        fill_own<C>(v, values.from(key), a.d_v);
        store_block(block, weights);
        __syncthreads();
        accumulate<C>(block, v, context);
    }
    if (blockIdx.z == 0) store_hidden(a, pair, query, count, blocks);
    T *to = head_of<T>(a.o, a.o_stride, pair.q_row + query, head, a.d_v) + first_column<C>();
    write(to, a.o_stride, count, own_columns<C>(a.d_v), context, 1.0f);
}

}  // namespace generic
