// The best columns of every row of scores, and the logarithm of the sum of their powers. A row has parts, as many as its width
// asks for, whatever the number of rows; a block reads its part once and keeps it in registers. There it finds the largest score,
// then the sum and all scores that may be among the best: those no smaller than the k-th largest of the largest ones of a few
// threads each, hardly more than k. Another kernel joins the parts.

// What is known of a part.
struct Part {
    double sum;             // of the powers of scores less the largest
    float top;              // the largest
    u32 nothing;
};

// As in cuda.rs.
struct Job {
    const float* scores;
    Part* parts;            // rows x parts of a row
    u64* keys;              // rows x parts of a row x count, the largest first: 0 where a part has no more
    double* normalizers;
    uint2* best;            // rows x count: column, bits of the score
    const u32* other_count;
    const uint2* others;    // row, column
    float* other_scores;
    u32 rows, width, count;
    u32 parts_of_row, part; // columns of a part, a multiple of four
    u32 blocks_of_rows;     // of the kernel that joins: those behind them have other scores
};

#define MINUS_INFINITY __int_as_float(0xff800000)
const u32 THREADS = 128;    // of a part
const u32 OWN = 64;         // scores that a thread keeps: a part has THREADS * OWN at most
const u32 ROOM = 256;       // scores that may be among the best
const u32 FEW = 24;         // if no more are wanted, groups of four threads tell what may be among the best
const u32 JOINED = 8;       // rows that a block joins, a warp each
const u32 MOST = 64;        // best columns

// Numbers that are ordered as scores are.
__device__ __forceinline__ u32 ordered(float score) {
    u32 bits = __float_as_uint(score);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float score_of(u32 bits) {
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}
// Of two scores that are equal, the key of the first column is larger. No key is 0.
__device__ __forceinline__ u64 key_of(float score, u32 column) {
    return (u64)ordered(score + 0.0f) << 32 | (0xffffffffu - column);
}
__device__ __forceinline__ u32 column_of(u64 key) { return 0xffffffffu - (u32)key; }

// e^x for x no larger than 0: off by less than a millionth of itself while it is not negligible.
__device__ __forceinline__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

struct Shared {
    float shown[THREADS / 32][OWN];
    u64 keys[ROOM];
    double sums[THREADS / 32];
    u64 largest[THREADS / 32];
    __align__(16) u32 tops[THREADS];   // of the groups
    uint2 bounds[THREADS / 32];
    u32 found;
};

// The smallest score that may be among the best, and the largest of all. Every thread gets both.
__device__ __forceinline__ float2 least_and_top(float own, u32 count, Shared& shared) {
    u32 lanes = count <= FEW ? 4 : 1, groups = THREADS / lanes;
    u32 top = ordered(own);
    if (lanes > 1) {
        top = max(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = max(top, __shfl_xor_sync(0xffffffffu, top, 2));
    }
    if (threadIdx.x % lanes == 0) shared.tops[threadIdx.x / lanes] = top;
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    // As many are no smaller than the k-th largest, and than nothing that is larger. With few groups every warp has them all.
    top = shared.tops[threadIdx.x % groups];
    u32 no_smaller = 0;
    #pragma unroll 8
    for (u32 i = 0; i < groups; i += 4) {
        uint4 four = *(const uint4*)&shared.tops[i];
        no_smaller += (four.x >= top) + (four.y >= top) + (four.z >= top) + (four.w >= top);
    }
    u32 least = __reduce_max_sync(0xffffffffu, no_smaller >= count ? top : 0);
    top = __reduce_max_sync(0xffffffffu, top);
    if (lanes == 1) {
        if (threadIdx.x % 32 == 0) shared.bounds[threadIdx.x / 32] = make_uint2(least, top);
        __syncthreads();
        for (u32 i = 0; i < THREADS / 32; i++) least = max(least, shared.bounds[i].x), top = max(top, shared.bounds[i].y);
    }
    return make_float2(score_of(least), score_of(top));
}

// The largest of all threads' keys.
__device__ u64 largest(u64 key, Shared& shared) {
    for (u32 step = 16; step > 0; step /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared.largest[threadIdx.x / 32] = key;
    __syncthreads();
    for (u32 i = 0; i < THREADS / 32; i++) key = max(key, shared.largest[i]);
    return key;
}

// A thread's scores are RUN neighbours in every RUN * THREADS: where its i-th lies in the part.
template <u32 RUN> __device__ __forceinline__ u32 place(u32 i, u32 thread) {
    return (i / RUN * THREADS + thread) * RUN + i % RUN;
}

template <u32 RUN> __device__ __forceinline__ void load(const float* from, float* to) {
    if (RUN == 4) {
        float4 four = __ldcs((const float4*)from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
        to[0] = __ldcs(from);
    }
}

template <u32 RUN> __device__ __forceinline__ void look_through(const Job& job, Shared& shared) {
    u32 row = blockIdx.x / job.parts_of_row, first = (blockIdx.x - row * job.parts_of_row) * job.part;
    u32 length = first < job.width ? min(job.part, job.width - first) : 0;
    const float* scores = job.scores + (u64)row * job.width + first + threadIdx.x * RUN;     // the first of its own
    u32 runs = length / RUN, present = threadIdx.x < runs ? ((runs - threadIdx.x - 1) / THREADS + 1) * RUN : 0;

    // All loads are under way together. In a part that is nearly full only the last of them has to be looked at.
    float own[OWN];
    if (length >= (OWN - RUN) * THREADS) {
        #pragma unroll
        for (u32 i = 0; i < OWN - RUN; i += RUN) load<RUN>(scores + i * THREADS, own + i);
        #pragma unroll
        for (u32 e = 0; e < RUN; e++) own[OWN - RUN + e] = MINUS_INFINITY;
        if (present == OWN) load<RUN>(scores + (OWN - RUN) * THREADS, own + OWN - RUN);
    } else {
        #pragma unroll
        for (u32 i = 0; i < OWN; i += RUN) {
            #pragma unroll
            for (u32 e = 0; e < RUN; e++) own[i + e] = MINUS_INFINITY;
            if (i < present) load<RUN>(scores + i * THREADS, own + i);
        }
    }
    float largest_own = MINUS_INFINITY;
    #pragma unroll
    for (u32 i = 0; i < OWN; i++) largest_own = fmaxf(largest_own, own[i]);
    float2 bounds = least_and_top(largest_own, job.count, shared);
    float least = bounds.x, top = bounds.y;

    // Less than nothing is nothing: -inf less itself would be no number.
    float less = top == MINUS_INFINITY ? 0.0f : top, sum = 0.0f;
    #pragma unroll
    for (u32 i = 0; i < OWN; i += 4) {
        sum += (power(own[i] - less) + power(own[i + 1] - less)) + (power(own[i + 2] - less) + power(own[i + 3] - less));
    }
    double all = sum;
    for (u32 step = 16; step > 0; step /= 2) all += __shfl_xor_sync(0xffffffffu, all, step);
    if (threadIdx.x % 32 == 0) shared.sums[threadIdx.x / 32] = all;

    // Few threads have some of the best: each in turn shows its scores to its warp.
    u32 warp = threadIdx.x / 32;
    u32 having = job.count ? __ballot_sync(0xffffffffu, largest_own >= least) : 0;
    while (having) {
        u32 lane = __ffs(having) - 1;
        having &= having - 1;
        float* shown = shared.shown[warp];
        if (threadIdx.x % 32 == lane) {
            #pragma unroll
            for (u32 i = 0; i < OWN; i += 4) store4(shown + i, own + i);
        }
        u32 there = __shfl_sync(0xffffffffu, present, lane);
        __syncwarp();
        for (u32 i = threadIdx.x % 32; i < there; i += 32) {
            if (shown[i] >= least) {
                u32 at = atomicAdd(&shared.found, 1);
                if (at < ROOM) shared.keys[at] = key_of(shown[i], first + place<RUN>(i, warp * 32 + lane));
            }
        }
        __syncwarp();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Part part = {0.0, top, 0};
        for (u32 i = 0; i < THREADS / 32; i++) part.sum += shared.sums[i];
        job.parts[blockIdx.x] = part;
    }
    u64* keys = job.keys + (u64)blockIdx.x * job.count;
    u32 found = shared.found;
    if (found <= ROOM) {
        for (u32 i = threadIdx.x; i < found; i += THREADS) {
            u64 key = shared.keys[i];
            u32 rank = 0;
            for (u32 j = 0; j < found; j++) rank += shared.keys[j] > key;
            if (rank < job.count) keys[rank] = key;
        }
        for (u32 i = found + threadIdx.x; i < job.count; i += THREADS) keys[i] = 0;
        return;
    }
    // As good as all scores are the same: one after the other. Who had the last one looks for its next.
    float score = -MINUS_INFINITY;
    u32 from = 0;           // those that are equal to `score` are used up to here
    u64 next = 0;
    bool is_used = true;
    for (u32 n = 0; n < job.count; n++) {
        if (is_used) {
            float next_score = MINUS_INFINITY;
            u32 at = OWN;
            #pragma unroll
            for (u32 i = 0; i < OWN; i++) {
                bool is_left = own[i] < score || (own[i] == score && i >= from);
                if (is_left && i < present && (at == OWN || own[i] > next_score)) next_score = own[i], at = i;
            }
            next = at == OWN ? 0 : key_of(next_score, first + place<RUN>(at, threadIdx.x));
            score = next_score, from = at + 1;
        }
        u64 best = largest(next, shared);
        is_used = next == best;
        if (threadIdx.x == 0) keys[n] = best;
    }
}

// Every block has a part of a row. Where rows begin at multiples of four columns, four neighbours are read at a time.
extern "C" __global__ void __launch_bounds__(128, 5) top_k_of_parts(Job job) {
    __shared__ Shared shared;
    await_earlier_and_let_come();
    if (job.width % 4 == 0) look_through<4>(job, shared);
    else look_through<1>(job, shared);
}

// Joins the parts of rows, a warp for each. What is found is written into memory of the host: all that the block has at once.
__device__ __forceinline__ void join_parts(const Job& job) {
    __shared__ uint2 best[JOINED * MOST];
    __shared__ double normalizers[JOINED];
    u32 first = blockIdx.x * JOINED, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = first + warp;
    if (row < job.rows) {
        const Part* parts = job.parts + (u64)row * job.parts_of_row;
        float top = MINUS_INFINITY;
        for (u32 i = lane; i < job.parts_of_row; i += 32) top = fmaxf(top, parts[i].top);
        top = warp_max(top);
        double sum = 0.0;
        for (u32 i = lane; i < job.parts_of_row; i += 32) sum += parts[i].sum * exp((double)parts[i].top - (double)top);
        for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) normalizers[warp] = (double)top + log(sum);

        const u64* keys = job.keys + (u64)row * job.parts_of_row * job.count;
        const float* scores = job.scores + (u64)row * job.width;
        for (u32 i = lane; i < job.parts_of_row * job.count; i += 32) {
            // Before it come those before it in its part, and the larger ones of every other part.
            u64 key = keys[i];
            u32 own = i / job.count, rank = i - own * job.count;
            for (u32 part = 0; part < job.parts_of_row && rank < job.count; part++) {
                if (part == own) continue;
                const u64* others = keys + part * job.count;
                for (u32 j = 0; j < job.count && rank < job.count && others[j] > key; j++) rank++;
            }
            // Where there are fewer than wanted, the first part has as many zeros as it takes.
            if (rank >= job.count || (key == 0 && own > 0)) continue;
            u32 column = key ? column_of(key) : 0;
            best[warp * job.count + rank] = make_uint2(column, __float_as_uint(scores[column]));
        }
    }
    __syncthreads();
    u32 rows = min(JOINED, job.rows - first);
    if (threadIdx.x < rows) job.normalizers[first + threadIdx.x] = normalizers[threadIdx.x];
    for (u32 i = threadIdx.x; i < rows * job.count; i += 32 * JOINED) job.best[(u64)first * job.count + i] = best[i];
}

// The scores of some columns of some rows.
__device__ __forceinline__ void take_others(const Job& job) {
    u32 i = (blockIdx.x - job.blocks_of_rows) * blockDim.x + threadIdx.x;
    if (i < *job.other_count) job.other_scores[i] = job.scores[(u64)job.others[i].x * job.width + job.others[i].y];
}

extern "C" __global__ void __launch_bounds__(256) top_k(Job job) {
    await_earlier_and_let_come();
    if (blockIdx.x < job.blocks_of_rows) join_parts(job);
    else take_others(job);
}
