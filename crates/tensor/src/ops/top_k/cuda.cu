// The best columns of every row of scores, and the logarithm of the sum of their powers, from the marks of the row (marks.cu): the best
// columns lie where the largest marks are, so hardly more than these are read of a row.

// As in cuda.rs.
struct Job {
    const float* scores;
    float2* marks;          // rows x marks of a row
    double* normalizers;
    uint2* best;            // rows x count: column, bits of the score
    const u32* other_count;
    const uint2* others;    // row, column
    float* other_scores;
    u32 rows, width, count;
    u32 blocks_of_rows;     // of the kernel for rows: those behind them have other scores
};

const u32 ROWS = 8;         // of a block, a warp each
const u32 MOST = 64;        // best columns

__device__ __forceinline__ u32 marks_of(u32 width) { return (width + MARKED - 1) / MARKED; }

// Numbers that are ordered as scores are.
__device__ __forceinline__ u32 ordered(float score) {
    u32 bits = __float_as_uint(score);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
// Of two scores that are equal, the key of the first column is larger. What is no number comes last. No key is 0, none all ones.
__device__ __forceinline__ u64 key_of(float score, u32 column) {
    u32 order = score == score ? ordered(score + 0.0f) : 0;
    return (u64)order << 32 | (0xffffffffu - column);
}
__device__ __forceinline__ u32 column_of(u64 key) { return 0xffffffffu - (u32)key; }

__device__ __forceinline__ u64 warp_largest(u64 key) {
    for (u32 step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, step));
    return key;
}

// For scores that were not marked when they were computed. Sixteen lanes make a mark.
extern "C" __global__ void __launch_bounds__(256) top_k_marks(Job job) {
    await_earlier_and_let_come();
    u32 marks = marks_of(job.width), number = blockIdx.x * 16 + threadIdx.x / 16;
    u32 row = number / marks, column = (number - row * marks) * MARKED + threadIdx.x % 16 * 4;
    if (row >= job.rows) return;
    const float* scores = job.scores + (u64)row * job.width + column;
    float four[4] = {};
    if (job.width % 4 == 0 && column < job.width) load4(scores, four);
    else for (u32 e = 0; e < 4 && column + e < job.width; e++) four[e] = scores[e];
    mark(four, column, job.width, job.marks + number);
}

// The logarithm of the sum of the powers of a row's scores. A warp.
__device__ __forceinline__ double normalizer(const float2* marks, u32 count) {
    u32 lane = threadIdx.x % 32;
    float top = MINUS_INFINITY;
    for (u32 i = lane; i < count; i += 32) top = fmaxf(top, marks[i].x);
    top = warp_max(top);
    float less = top == MINUS_INFINITY ? 0.0f : top;
    double sum = 0.0;
    for (u32 i = lane; i < count; i += 32) sum += marks[i].y * power(marks[i].x - less);
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return (double)top + log(sum);
}

// Finds what a block's rows have, and writes it into memory of the host: all of it at once.
__device__ __forceinline__ void find_in_rows(const Job& job) {
    __shared__ uint2 best[ROWS * MOST];
    __shared__ double normalizers[ROWS];
    __shared__ u32 chosen[ROWS][MOST];
    u32 first = blockIdx.x * ROWS, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = first + warp;
    if (row < job.rows) {
        u32 count = marks_of(job.width), wanted = min(job.count, count);
        const float2* marks = job.marks + (u64)row * count;
        double found = normalizer(marks, count);
        if (lane == 0) normalizers[warp] = found;

        // As many marks as columns are wanted: whatever is best outside of them comes after the best of each of them.
        u64 last = ~0ull;
        for (u32 n = 0; n < wanted; n++) {
            u64 next = 0;
            for (u32 i = lane; i < count; i += 32) {
                u64 key = key_of(marks[i].x, i);
                if (key < last) next = max(next, key);
            }
            last = warp_largest(next);
            if (lane == 0) chosen[warp][n] = column_of(last);
        }
        __syncwarp();
        const float* scores = job.scores + (u64)row * job.width;
        last = ~0ull;
        for (u32 n = 0; n < job.count; n++) {
            u64 next = 0;
            for (u32 i = lane; i < wanted * MARKED; i += 32) {
                u32 column = chosen[warp][i / MARKED] * MARKED + i % MARKED;
                if (column >= job.width) continue;
                u64 key = key_of(scores[column], column);
                if (key < last) next = max(next, key);
            }
            last = warp_largest(next);
            if (lane == 0) best[warp * job.count + n] = make_uint2(column_of(last), __float_as_uint(scores[column_of(last)]));
        }
    }
    __syncthreads();
    u32 rows = min(ROWS, job.rows - first);
    if (threadIdx.x < rows) job.normalizers[first + threadIdx.x] = normalizers[threadIdx.x];
    for (u32 i = threadIdx.x; i < rows * job.count; i += 32 * ROWS) job.best[(u64)first * job.count + i] = best[i];
}

// The scores of some columns of some rows.
__device__ __forceinline__ void take_others(const Job& job) {
    u32 i = (blockIdx.x - job.blocks_of_rows) * blockDim.x + threadIdx.x;
    if (i < *job.other_count) job.other_scores[i] = job.scores[(u64)job.others[i].x * job.width + job.others[i].y];
}

extern "C" __global__ void __launch_bounds__(256) top_k(Job job) {
    await_earlier_and_let_come();
    if (blockIdx.x < job.blocks_of_rows) find_in_rows(job);
    else take_others(job);
}
