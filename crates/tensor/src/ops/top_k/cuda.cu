// The best columns of every row of scores, and the logarithm of the sum of their powers. A block has a row, which it reads twice:
// for the largest score of every thread, then for the sum and for all scores that may be among the best. They are no smaller than
// the k-th largest of the threads' largest ones, so there are hardly more than k of them.

// As in cuda.rs.
struct Job {
    const float* scores;
    double* normalizers;
    uint2* best;            // rows x count: column, bits of the score
    const u32* other_count;
    const uint2* others;    // row, column
    float* other_scores;
    u32 width, count;
};

#define MINUS_INFINITY __int_as_float(0xff800000)
const u32 THREADS = 256;
const u32 ROOM = 2048;      // scores that may be among the best: a power of two

// Numbers that are ordered as the scores are; of two scores that are equal, that of the first column is larger.
__device__ __forceinline__ u64 key_of(float score, u32 column) {
    u32 bits = __float_as_uint(score + 0.0f);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (u64)bits << 32 | (0xffffffffu - column);
}
__device__ __forceinline__ float score_of(u64 key) {
    u32 bits = (u32)(key >> 32);
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}
__device__ __forceinline__ u32 column_of(u64 key) { return 0xffffffffu - (u32)key; }

// Sorts keys, the largest first; `size` is a power of two.
__device__ void sort(u64* keys, u32 size) {
    for (u32 run = 2; run <= size; run *= 2) {
        for (u32 step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < size / 2; i += THREADS) {
                u32 low = 2 * i - (i & (step - 1)), high = low + step;
                u64 a = keys[low], b = keys[high];
                if ((a < b) == ((low & run) == 0)) keys[low] = b, keys[high] = a;
            }
        }
    }
    __syncthreads();
}

// The largest of all threads' keys.
__device__ u64 largest(u64 key, u64* room) {
    for (u32 step = 16; step > 0; step /= 2) {
        u64 other = __shfl_xor_sync(0xffffffffu, key, step);
        if (other > key) key = other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = key;
    __syncthreads();
    for (u32 i = 0; i < THREADS / 32; i++) if (room[i] > key) key = room[i];
    return key;
}

// The sum of all threads' numbers, in one order.
__device__ double sum_of_all(double x, double* room) {
    for (u32 step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = x;
    __syncthreads();
    double sum = 0.0;
    for (u32 i = 0; i < THREADS / 32; i++) sum += room[i];
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) top_k(Job job) {
    __shared__ u64 keys[ROOM];
    __shared__ double sums[THREADS / 32];
    __shared__ u32 found;
    await_earlier_and_let_come();
    u32 row = blockIdx.x;
    const float* scores = job.scores + (u64)row * job.width;

    // Four neighbours at a time where rows begin at multiples of four.
    u32 fours = job.width % 4 == 0 ? job.width / 4 : 0;
    float largest_own = MINUS_INFINITY;
    for (u32 i = threadIdx.x; i < fours; i += THREADS) {
        float4 four = ((const float4*)scores)[i];
        largest_own = fmaxf(fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w)), largest_own);
    }
    for (u32 i = 4 * fours + threadIdx.x; i < job.width; i += THREADS) largest_own = fmaxf(scores[i], largest_own);
    keys[threadIdx.x] = key_of(largest_own, 0);
    if (threadIdx.x == 0) found = 0;
    sort(keys, THREADS);
    // The smallest score that may be among the best.
    float least = job.count ? score_of(keys[job.count - 1]) : -MINUS_INFINITY, top = score_of(keys[0]);
    __syncthreads();

    double sum = 0.0;
    auto look = [&](float score, u32 i) {
        if (score >= least && job.count) {
            u32 at = atomicAdd(&found, 1);
            if (at < ROOM) keys[at] = key_of(score, i);
        }
        return expf(score - top);
    };
    for (u32 i = threadIdx.x; i < fours; i += THREADS) {
        float4 four = ((const float4*)scores)[i];
        float one = look(four.x, 4 * i) + look(four.y, 4 * i + 1), other = look(four.z, 4 * i + 2) + look(four.w, 4 * i + 3);
        sum += (double)(one + other);
    }
    for (u32 i = 4 * fours + threadIdx.x; i < job.width; i += THREADS) sum += (double)look(scores[i], i);
    sum = sum_of_all(sum, sums);
    if (threadIdx.x == 0) job.normalizers[row] = (double)top + log(sum);
    uint2* best = job.best + (u64)row * job.count;
    if (found <= ROOM) {
        u32 size = 32;
        while (size < found) size *= 2;
        for (u32 i = found + threadIdx.x; i < size; i += THREADS) keys[i] = 0;
        sort(keys, size);
        for (u32 i = threadIdx.x; i < job.count; i += THREADS) {
            u32 column = keys[i] ? column_of(keys[i]) : 0;
            best[i] = make_uint2(column, __float_as_uint(scores[column]));
        }
    } else {
        // As good as all scores are the same: one after the other.
        u64 before = ~0ull;
        for (u32 i = 0; i < job.count; i++) {
            u64 next = 0;
            for (u32 j = threadIdx.x; j < job.width; j += THREADS) {
                u64 key = key_of(scores[j], j);
                if (key < before && key > next) next = key;
            }
            before = largest(next, keys);
            u32 column = before ? column_of(before) : 0;
            if (threadIdx.x == 0) best[i] = make_uint2(column, __float_as_uint(scores[column]));
        }
    }
}

// The scores of some columns of some rows.
extern "C" __global__ void others(Job job) {
    await_earlier_and_let_come();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < *job.other_count) job.other_scores[i] = job.scores[(u64)job.others[i].x * job.width + job.others[i].y];
}
