// Attention of single queries to cached rows on tensor cores: bf16, heads of width D = 32, 64 or 128.
//
// A warp has one head of up to eight neighbouring queries that see the same rows, as the hypotheses of one sentence do: their
// keys and values are read once for all of them, in chunks in shared memory. The columns of a product are independent, so the
// bits of a result depend on the query and its rows, in their order, and on nothing else.

const u32 QUERIES_PER_WARP = 8;             // queries that share a product

template <u32 D> struct Chunk {
    static const u32 KEYS = 2048 / D;           // of a chunk: a multiple of 16
    static const u32 PIECES = D / 8;            // of 16 bytes, of a row
    static const u32 BYTES = KEYS * D * 2;      // of its keys, and as many of its values

    // Offset of a piece of a row, swizzled: eight rows' pieces of one column are in different banks.
    static __device__ __forceinline__ u32 swizzle(u32 row, u32 piece) {
        u32 bits = PIECES >= 8 ? row & 7 : row / 2 & 3;
        return row * D * 2 + (piece ^ bits) * 16;
    }

    // Starts asynchronous copies of the keys, then of the values, of a chunk's remaining `left` rows; padding rows up to a
    // multiple of 16 become zero. With `newest` the last row is left to the caller. Lanes read the list of rows together and
    // shuffle it.
    static __device__ __forceinline__ void fetch(const Job& job, u32 to, u32 head, u32 lane, u32 first, u32 left) {
        u32 listed[(KEYS + 31) / 32];
        #pragma unroll
        for (u32 i = 0; i < (KEYS + 31) / 32; i++) {
            listed[i] = first + min(32 * i + lane, left - 1);
            if (job.slots) listed[i] = job.slots[listed[i]];
        }
        const bf16* from = (const bf16*)job.stored + head * D;
        #pragma unroll
        for (u32 part = 0; part < 2; part++) {
            #pragma unroll
            for (u32 i = 0; i < KEYS * PIECES / 32; i++) {
                u32 row = i * (32 / PIECES) + lane / PIECES, piece = lane % PIECES;
                if (i * (32 / PIECES) / 16 * 16 >= left) break;
                u32 at = __shfl_sync(0xffffffffu, listed[i / PIECES], row % 32);
                if (!job.newest || row + 1 != left) copy16(to + swizzle(row, piece), from + (u64)at * job.stored_width + piece * 8, row < left);
            }
            end_copies();
            to += BYTES;
            from += job.heads * D;
        }
    }
};

// Transposes an 8 x 8 block of bf16: lane 4 g + t has row g, columns 2 t and 2 t + 1, before and after.
__device__ __forceinline__ u32 transposed_block(u32 block) {
    u32 other;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(other) : "r"(block));
    return other;
}

// `count` queries from `row` on, which all see `span`. `memory` is the warp's own. Queries are the columns of all products: a
// lane has two of them, 2 t and 2 t + 1.
template <u32 D> __device__ __forceinline__ void attend_shared(const Job& job, u8* memory, u32 head, u32 row, u32 count, uint2 span) {
    typedef Chunk<D> Chunk;
    u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, base = shared_address(memory);
    // A row that is not stored yet is read from `newest`, and stored for later steps: a lane has a piece of its key or value.
    bool has_piece = job.newest && span.y > 0 && lane < 2 * Chunk::PIECES;
    uint4 newest;
    if (has_piece) {
        u64 offset = (lane / Chunk::PIECES * job.heads + head) * D + lane % Chunk::PIECES * 8;
        newest = *(const uint4*)((const bf16*)job.newest + (u64)row * job.newest_stride + offset);
        *(uint4*)((bf16*)job.stored + (u64)job.slots[span.x + span.y - 1] * job.stored_width + offset) = newest;
    }
    u32 queries[D / 16][2];
    const bf16* own = (const bf16*)job.queries + (u64)(row + g) * job.query_stride + head * D + 2 * t;
    #pragma unroll
    for (u32 i = 0; i < D / 8; i++) queries[i / 2][i % 2] = g < count ? *(const u32*)(own + i * 8) : 0;
    float sums[D / 16][4] = {}, tops[2] = { MINUS_INFINITY, MINUS_INFINITY }, totals[2] = {};
    for (u32 start = 0; start < span.y; start += Chunk::KEYS) {
        u32 left = span.y - start;
        Chunk::fetch(job, base, head, lane, span.x + start, left);
        if (has_piece && left <= Chunk::KEYS)
            *(uint4*)(memory + lane / Chunk::PIECES * Chunk::BYTES + Chunk::swizzle(left - 1, lane % Chunk::PIECES)) = newest;

        // Rows are keys.
        float scores[Chunk::KEYS / 16][4] = {}, highest[2] = { tops[0], tops[1] };
        wait_for_earlier_copies();
        __syncwarp();
        #pragma unroll
        for (u32 n = 0; n < Chunk::KEYS / 16; n++) {
            if (n * 16 < left) {
                #pragma unroll
                for (u32 k = 0; k < D / 16; k++) {
                    u32 block[4];
                    load_blocks(block, base + Chunk::swizzle(n * 16 + lane % 16, 2 * k + lane / 16));
                    multiply(scores[n], block, queries[k][0], queries[k][1]);
                }
            }
            #pragma unroll
            for (u32 i = 0; i < 4; i++) {
                scores[n][i] = n * 16 + g + i / 2 * 8 < left ? scores[n][i] * job.scale : MINUS_INFINITY;
                highest[i % 2] = fmaxf(highest[i % 2], scores[n][i]);
            }
        }
        #pragma unroll
        for (u32 i = 0; i < 2; i++) {
            #pragma unroll
            for (u32 step = 4; step < 32; step *= 2) highest[i] = fmaxf(highest[i], __shfl_xor_sync(0xffffffffu, highest[i], step));
            // In the first chunk exp(-inf) = 0 scales sums that are 0.
            float factor = expf(tops[i] - highest[i]);
            tops[i] = highest[i];
            totals[i] *= factor;
            #pragma unroll
            for (u32 m = 0; m < D / 16; m++) sums[m][i] *= factor, sums[m][i + 2] *= factor;
        }

        // Rows are columns of the values.
        wait_for_copies();
        __syncwarp();
        #pragma unroll
        for (u32 k = 0; k < Chunk::KEYS / 16; k++) {
            if (k * 16 >= left) break;
            float weights[4];
            #pragma unroll
            for (u32 i = 0; i < 4; i++) {
                weights[i] = expf(scores[k][i] - highest[i % 2]);
                totals[i % 2] += weights[i];
            }
            u32 low = transposed_block(pack_bf16(weights[0], weights[1])), high = transposed_block(pack_bf16(weights[2], weights[3]));
            #pragma unroll
            for (u32 m = 0; m < D / 16; m++) {
                u32 block[4];
                load_blocks_transposed(block, base + Chunk::BYTES + Chunk::swizzle(k * 16 + lane / 16 * 8 + lane % 8, 2 * m + lane / 8 % 2));
                multiply(sums[m], block, low, high);
            }
        }
        // The next chunk overwrites this one.
        __syncwarp();
    }
    #pragma unroll
    for (u32 i = 0; i < 2; i++) {
        #pragma unroll
        for (u32 step = 4; step < 32; step *= 2) totals[i] += __shfl_xor_sync(0xffffffffu, totals[i], step);
        // A query without rows is padding.
        totals[i] = span.y > 0 ? 1.0f / totals[i] : 0.0f;
    }
    u32* out = (u32*)((bf16*)job.out + ((u64)(row + g) * job.heads + head) * D) + t;
    #pragma unroll
    for (u32 i = 0; i < D / 8; i++) {
        const float* pair = sums[i / 2] + i % 2 * 2;
        u32 both = transposed_block(pack_bf16(pair[0] * totals[0], pair[1] * totals[1]));
        if (g < count) out[i * 4] = both;
    }
}

// Queries with their own lists of rows: a warp has one head of one of them.
template <u32 D> __device__ __forceinline__ void attend_single(const Job& job) {
    __shared__ __align__(128) u8 memory[WARPS][2 * Chunk<D>::BYTES];
    launch_dependents_and_wait();
    u32 warp = threadIdx.x / 32, number = blockIdx.x * WARPS + warp, row = number / job.heads;
    if (row >= job.rows) return;
    attend_shared<D>(job, memory[warp], number % job.heads, row, 1, job.spans[row]);
}

// Neighbouring queries see the same rows: a block has one head of a tile of at most 32 queries, and distributes the groups that
// share rows over its warps.
template <u32 D> __device__ __forceinline__ void attend_in_tiles(const Job& job) {
    __shared__ __align__(128) u8 memory[WARPS][2 * Chunk<D>::BYTES];
    launch_dependents_and_wait();
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x / job.heads * job.tile;
    u32 rows = min(job.tile, job.rows - first);
    uint2 span = job.spans[first + min(lane, rows - 1)];
    u32 before_x = __shfl_up_sync(0xffffffffu, span.x, 1), before_y = __shfl_up_sync(0xffffffffu, span.y, 1);
    u32 changes = __ballot_sync(0xffffffffu, lane == 0 || span.x != before_x || span.y != before_y);
    u32 in_group = lane - (31 - __clz(changes & (0xffffffffu >> (31 - lane))));
    u32 group_starts = __ballot_sync(0xffffffffu, lane < rows && in_group % QUERIES_PER_WARP == 0);
    for (u32 number = 0; group_starts; number++) {
        u32 row = __ffs(group_starts) - 1;
        group_starts &= group_starts - 1;
        if (number % WARPS != warp) continue;
        u32 end = group_starts ? __ffs(group_starts) - 1 : rows;
        uint2 common = { __shfl_sync(0xffffffffu, span.x, row), __shfl_sync(0xffffffffu, span.y, row) };
        attend_shared<D>(job, memory[warp], blockIdx.x % job.heads, first + row, end - row, common);
    }
}

#define ATTEND_FAST(D, RESIDENT)                                                                                                \
    extern "C" __global__ void __launch_bounds__(128, RESIDENT) attend_##D##_bf16(Job job) { attend_single<D>(job); }           \
    extern "C" __global__ void __launch_bounds__(128, RESIDENT) attend_##D##_tiled(Job job) { attend_in_tiles<D>(job); }
ATTEND_FAST(32, 5)
ATTEND_FAST(64, 5)
ATTEND_FAST(128, 3)
