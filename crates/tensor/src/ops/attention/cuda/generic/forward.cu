// Attention for heads of up to 256 numbers (wide.cu has wider ones), any mask, f32 or bf16, in f32 arithmetic: plain, and what
// the fast kernels are checked against.
//
// A block works on 32 rows of one head (forward and dQ: queries; dK and dV: keys) and goes through the other side 32
// rows at a time. Thread (ty, tx) of 16 x 16 has rows 2 ty and 2 ty + 1; of products of rows the columns tx and
// tx + 16, of sums over rows the columns 4 tx + 64 c + 0..3.
//
// Launch: 256 threads; grid (at least the number of work items, heads); dynamic shared memory as below.
//   work items of forward and backward_queries: (sequence, first query), first = 0, 32, 64.. below the sequence's length
//   work items of backward_keys: (sequence, first key), likewise of the key sequences
//   work_count[0]: how many
//   backward_keys comes after backward_queries, which leaves delta
// Kernels whose names end in _64 are for d_k and d_v <= 64.
//   stride(d) = round_up(d, 8) + 4 floats
//   bytes of forward:  4 * (64 * stride(d_k) + 32 * stride(d_v) + 32 * 36)
//   bytes of backward: 4 * (64 * stride(d_k) + 64 * stride(d_v) + 64 * 36)

namespace generic {

const int ROWS = 32;
const int SCORES = 36;  // row stride of a block of scores

extern __shared__ __align__(128) u8 memory[];

// Rows in shared memory, 16-byte steps apart that fall into different banks.
struct Tile {
    float *at;
    int width, stride;
};

__device__ __forceinline__ int stride_of(int width) { return (width + 7) / 8 * 8 + 4; }

__device__ __forceinline__ Tile take(float*& free, int width) {
    Tile tile = { free, width, stride_of(width) };
    free += ROWS * tile.stride;
    return tile;
}

// Fills a tile; rows and columns beyond what is there become 0.
template <class T>
__device__ void fill(Tile tile, const T *from, u32 stride, int count) {
    int padded = tile.stride - 4;
    for (int i = threadIdx.x; i < ROWS * padded; i += 256) {
        int row = i / padded, column = i % padded;
        bool real = row < count && column < tile.width;
        tile.at[row * tile.stride + column] = real ? widen(from[(u64)row * stride + column]) : 0.0f;
    }
}

__device__ __forceinline__ float4 four(const float *at) { return *(const float4*)at; }

// products[i][j] = row (2 ty + i) of a times row (tx + 16 j) of b.
__device__ __forceinline__ void dots(Tile a, Tile b, float (&products)[2][2]) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float *left = a.at + 2 * ty * a.stride, *right = b.at + tx * b.stride;
    float sums[2][2] = {};
    for (int k = 0; k < a.width; k += 4) {
        float4 x[2] = { four(left + k), four(left + a.stride + k) };
        float4 y[2] = { four(right + k), four(right + 16 * b.stride + k) };
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                sums[i][j] = fmaf(x[i].x, y[j].x, sums[i][j]);
                sums[i][j] = fmaf(x[i].y, y[j].y, sums[i][j]);
                sums[i][j] = fmaf(x[i].z, y[j].z, sums[i][j]);
                sums[i][j] = fmaf(x[i].w, y[j].w, sums[i][j]);
            }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) products[i][j] = sums[i][j];
}

// A thread's share of 32 rows of sums: C steps of four columns.
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
__device__ __forceinline__ void accumulate(const float *factors, Tile b, Sums<C>& sums) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float *row = factors + 2 * ty * SCORES;
    for (int k = 0; k < ROWS; k += 4) {
        float4 x[2] = { four(row + k), four(row + SCORES + k) };
#pragma unroll
        for (int c = 0; c < C; c++) {
            int column = 4 * tx + 64 * c;
            if (column >= b.width) continue;
            const float *at = b.at + k * b.stride + column;
            float4 y[4] = { four(at), four(at + b.stride), four(at + 2 * b.stride), four(at + 3 * b.stride) };
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

// Leaves a thread's four numbers in a block of 32 x 32.
__device__ __forceinline__ void put(float *block, const float (&values)[2][2]) {
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) block[(2 * ty + i) * SCORES + tx + 16 * j] = values[i][j];
}

// Over the 16 threads that share rows; every one gets the result.
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

// From products of 32 queries and 32 keys to their scores; hidden ones are -inf.
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

// The scores of 32 queries and 32 keys.
__device__ __forceinline__ void score(const Attention& a, const Pair& pair, Tile q, Tile k, int query, int key,
                                      float (&scores)[2][2]) {
    dots(q, k, scores);
    finish_scores(a, pair, query, key, scores);
}

// The blocks of 32 keys that 32 queries see any of.
__device__ __forceinline__ Limits key_blocks(const Attention& a, const Pair& pair, int query, int count) {
    Limits limits;
    limits.start = seen(a, query, pair.m, pair.n).start / ROWS * ROWS;
    limits.end = seen(a, query + count - 1, pair.m, pair.n).end;
    return limits;
}

// Keys that no block of 32 from the first visible one on touched are hidden.
__device__ __forceinline__ void hand_out_hidden(const Attention& a, const Pair& pair, int query, int count, Limits blocks) {
    if (!a.weights) return;
    int end = blocks.start + (blocks.end - blocks.start + ROWS - 1) / ROWS * ROWS;
    u64 start = handed_out(a, pair) + (u64)query * pair.n;
    for (int i = threadIdx.x; i < count * pair.n; i += 256) {
        int column = i % pair.n;
        if (column >= blocks.start && column < end) continue;
        a.weights[start + i] = 0.0f;
        if (a.scores) a.scores[start + i] = minus_infinity();
    }
}

template <class T, int C>
__device__ void forward(const Attention& a) {
    if (blockIdx.x >= a.work_count[0]) return;
    Pair pair = pair_of(a, a.work[2 * blockIdx.x], blockIdx.y);
    int query = a.work[2 * blockIdx.x + 1], count = min(ROWS, pair.m - query);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 head = pair.head;
    const T *keys = head_of<T>(a.k, a.k_stride, pair.k_row, head, a.d_k);
    const T *values = head_of<T>(a.v, a.v_stride, pair.k_row, head, a.d_v);

    float *free = (float*)memory;
    Tile q = take(free, a.d_k), k = take(free, a.d_k), v = take(free, a.d_v);
    float *block = free;
    fill(q, head_of<T>(a.q, a.q_stride, pair.q_row + query, head, a.d_k), a.q_stride, count);

    // First the peaks, then the weights: all of a row's weights are divided by one sum.
    Limits blocks = key_blocks(a, pair, query, count);
    bool once = blocks.end - blocks.start <= ROWS;
    float scores[2][2], tops[2], sums[2] = { 0.0f, 0.0f };
    tops[0] = tops[1] = minus_infinity();
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        __syncthreads();
        fill(k, keys + (u64)key * a.k_stride, a.k_stride, pair.n - key);
        __syncthreads();
        score(a, pair, q, k, query, key, scores);
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
        if (tx == 0 && row < count) {
            float *peak = a.peaks + 2 * ((u64)head * a.peak_rows + pair.q_row + query + row);
            peak[0] = tops[i];
            peak[1] = shares[i];
        }
    }

    Sums<C> context;
    clear(context);
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        __syncthreads();
        if (!once) fill(k, keys + (u64)key * a.k_stride, a.k_stride, pair.n - key);
        fill(v, values + (u64)key * a.v_stride, a.v_stride, pair.n - key);
        __syncthreads();
        if (!once) score(a, pair, q, k, query, key, scores);
        float weights[2][2];
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int row = query + 2 * ty + i, column = key + tx + 16 * j;
                bool hidden = scores[i][j] == minus_infinity();
                float weight = hidden ? 0.0f : expf(scores[i][j] - tops[i]) * shares[i];
                hand_out(a, pair, row, column, weight, scores[i][j]);
                weights[i][j] = hidden ? 0.0f : weight * kept(pair, row, column);
            }
        put(block, weights);
        __syncthreads();
        accumulate(block, v, context);
    }
    hand_out_hidden(a, pair, query, count, blocks);
    write(head_of<T>(a.o, a.o_stride, pair.q_row + query, head, a.d_v), a.o_stride, count, a.d_v, context, 1.0f);
}

}  // namespace generic
