// Top-k and log-sum-exp of every row of scores, from the block statistics of the row (cuda/block_stats.cu): the best
// columns lie in the blocks with the largest maxima, so only these are read.

// As in cuda.rs.
struct TopKArgs {
    const float* scores;
    float2* block_stats;    // rows x blocks of a row
    double* normalizers;
    uint2* best;            // rows x count: column, bits of the score
    const u32* extra_count;
    const uint2* extra;     // row, column
    float* extra_scores;
    u32 rows, width, count;
    u32 row_blocks;         // thread blocks for rows; those after them copy the extra scores
};

const u32 ROWS = 8;         // of a block, a warp each
const u32 MAX_COUNT = 64;   // best columns

__device__ __forceinline__ u32 blocks_of_row(u32 width) { return (width + STATS_BLOCK - 1) / STATS_BLOCK; }

// Integers in the order of the scores.
__device__ __forceinline__ u32 sort_key(float score) {
    u32 bits = __float_as_uint(score);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
// Of two equal scores, the first column has the larger key. NaN sorts last. No key is 0 or all ones.
__device__ __forceinline__ u64 key_of(float score, u32 column) {
    u32 order = score == score ? sort_key(score + 0.0f) : 0;
    return (u64)order << 32 | (0xffffffffu - column);
}
__device__ __forceinline__ u32 column_of(u64 key) { return 0xffffffffu - (u32)key; }

__device__ __forceinline__ u64 warp_largest(u64 key) {
    for (u32 step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, step));
    return key;
}

// Block statistics of scores that the GEMM computed without them. Sixteen lanes reduce one block.
extern "C" __global__ void __launch_bounds__(256) top_k_block_stats(TopKArgs args) {
    launch_dependents_and_wait();
    u32 blocks = blocks_of_row(args.width), number = blockIdx.x * 16 + threadIdx.x / 16;
    u32 row = number / blocks, column = (number - row * blocks) * STATS_BLOCK + threadIdx.x % 16 * 4;
    if (row >= args.rows) return;
    const float* scores = args.scores + (u64)row * args.width + column;
    float four[4] = {};
    if (args.width % 4 == 0 && column < args.width) load4(scores, four);
    else for (u32 e = 0; e < 4 && column + e < args.width; e++) four[e] = scores[e];
    write_block_stats(four, column, args.width, args.block_stats + number);
}

// The log-sum-exp of a row's scores, computed by a warp.
__device__ __forceinline__ double log_sum_exp(const float2* stats, u32 count) {
    u32 lane = threadIdx.x % 32;
    float top = MINUS_INFINITY;
    for (u32 i = lane; i < count; i += 32) top = fmaxf(top, stats[i].x);
    top = warp_max(top);
    float shift = top == MINUS_INFINITY ? 0.0f : top;
    double sum = 0.0;
    for (u32 i = lane; i < count; i += 32) sum += stats[i].y * fast_exp(stats[i].x - shift);
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return (double)top + log(sum);
}

// Searches a thread block's rows and writes all results to host memory at once.
__device__ __forceinline__ void find_in_rows(const TopKArgs& args) {
    __shared__ uint2 best[ROWS * MAX_COUNT];
    __shared__ double normalizers[ROWS];
    __shared__ u32 chosen[ROWS][MAX_COUNT];
    u32 first = blockIdx.x * ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = first + warp;
    if (row < args.rows) {
        u32 count = blocks_of_row(args.width), candidates = min(args.count, count);
        const float2* stats = args.block_stats + (u64)row * count;
        double found = log_sum_exp(stats, count);
        if (lane == 0) normalizers[warp] = found;

        // As many blocks as columns are requested: a column outside of them is worse than the best column of
        // each of them.
        u64 last = ~0ull;
        for (u32 n = 0; n < candidates; n++) {
            u64 next = 0;
            for (u32 i = lane; i < count; i += 32) {
                u64 key = key_of(stats[i].x, i);
                if (key < last) next = max(next, key);
            }
            last = warp_largest(next);
            if (lane == 0) chosen[warp][n] = column_of(last);
        }
        __syncwarp();
        const float* scores = args.scores + (u64)row * args.width;
        last = ~0ull;
        for (u32 n = 0; n < args.count; n++) {
            u64 next = 0;
            for (u32 i = lane; i < candidates * STATS_BLOCK; i += 32) {
                u32 column = chosen[warp][i / STATS_BLOCK] * STATS_BLOCK + i % STATS_BLOCK;
                if (column >= args.width) continue;
                u64 key = key_of(scores[column], column);
                if (key < last) next = max(next, key);
            }
            last = warp_largest(next);
            if (lane == 0) best[warp * args.count + n] = make_uint2(column_of(last), __float_as_uint(scores[column_of(last)]));
        }
    }
    __syncthreads();
    u32 rows = min(ROWS, args.rows - first);
    if (threadIdx.x < rows) args.normalizers[first + threadIdx.x] = normalizers[threadIdx.x];
    for (u32 i = threadIdx.x; i < rows * args.count; i += 32 * ROWS) args.best[(u64)first * args.count + i] = best[i];
}

// Copies the scores of the extra rows and columns.
__device__ __forceinline__ void copy_extra(const TopKArgs& args) {
    u32 i = (blockIdx.x - args.row_blocks) * blockDim.x + threadIdx.x;
    if (i < *args.extra_count) args.extra_scores[i] = args.scores[(u64)args.extra[i].x * args.width + args.extra[i].y];
}

extern "C" __global__ void __launch_bounds__(256) top_k(TopKArgs args) {
    launch_dependents_and_wait();
    if (blockIdx.x < args.row_blocks) find_in_rows(args);
    else copy_extra(args);
}
