// Backward of up to 32, 64 or 128 queries and keys.
//
// All warps of a group first compute W and dS, 16 queries and half of the keys each, and store them in shared memory as
// bf16, in place of V, which is not needed any more. Then the warps divide the three products into pieces of 16 rows
// (or 32) and 32 columns.

namespace fast {

// Dropout bits of two neighbouring weights, from draw `index` on (1 = kept).
__device__ __forceinline__ u32 keep2(const Dropout& dropout, u64 index) {
    u32 first = (u32)(index >> 1), both = draw(dropout.low, dropout.high, first);
    if (index & 1) both = both >> 16 | draw(dropout.low, dropout.high, first + 1) << 16;
    return ((both & 0xffff) < dropout.threshold ? 0 : 1) | (both >> 16 < dropout.threshold ? 0 : 2);
}

// W and dS side by side: a row for each query, of 2 N elements.
template <int N> struct Factors {
    static const u32 GRADS = 2 * N;    // XOR with it leads from W to dS
    u32 at;                             // byte offset in shared memory

    __device__ __forceinline__ void write(int row, int key, u32 weights, u32 grads) const {
        u32 place = at + fast::swizzle<2 * N>(row, key / 8) + key % 8 * 2;
        *(u32*)(memory + place) = weights;
        *(u32*)(memory + (place ^ GRADS)) = grads;
    }
    __device__ __forceinline__ u32 weights() const { return shared_address(memory) + at; }
};

// Rows of one of the three gradients, 32 columns of them: a factor, or (TRANSPOSED) its transpose, times a tensor. `side` is
// 0 for W and Factors::GRADS for dS; `inner` is the number of rows of the tensor.
template <int D, int N, int TILES, bool TRANSPOSED>
__device__ __forceinline__ void gradient(u32 factors, u32 side, u32 tensor, int inner, float scale, int row, u32 slice,
                                         bf16 *to, u32 stride, int count) {
    if (count <= row) return;
    u32 left_address = tile<2 * N>(factors, 0) ^ side, right_address = tile<D>(tensor, 0) ^ 64 * slice;
    Sums<32> sums[TILES];
#pragma unroll
    for (int i = 0; i < TILES; i++) sums[i].clear();
#pragma unroll
    for (int at = 0; at < N; at += 16) {
        if (at >= inner) break;
        u32 right[2][4];
        load_blocks_transposed(right[0], right_address + at * 2 * D);
        load_blocks_transposed(right[1], (right_address ^ 32) + at * 2 * D);
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            if (row + 16 * i >= count) continue;
            u32 left[4];
            if (TRANSPOSED) {
                u32 transposed[4];
                load_blocks_transposed(transposed, (left_address ^ (row + 16 * i) * 2) + at * 4 * N);
                left[0] = transposed[0], left[1] = transposed[2], left[2] = transposed[1], left[3] = transposed[3];
            } else {
                load_blocks(left, (left_address ^ at * 2) + (row + 16 * i) * 4 * N);
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                multiply(sums[i].part[2 * half], left, right[half][0], right[half][1]);
                multiply(sums[i].part[2 * half + 1], left, right[half][2], right[half][3]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TILES; i++) {
        sums[i].scale_rows(scale, scale);
        sums[i].write(to + (u64)(row + 16 * i) * stride + 32 * slice, stride, count - row - 16 * i);
    }
}

// N is 32 (half a block of 256 threads), 64 (a whole block) or 128 (a block of 512, in a kernel of its own).
template <int D, int N>
__device__ __forceinline__ void backward_small(const Attention& a, const Pair& pair) {
    const Group group = { N == 128 ? 512 : 256, N == 32 };
    // Two warps for every 16 queries: the first and the second half of the keys.
    const int KEYS = N / 2, BLOCKS = KEYS / 8, MAX_ROWS = N == 32 ? N : 0;
    // W and dS take 4 N bytes a row, so V's buffer may be larger than V. (The halves of a block must not overlap there.)
    const u32 HEIGHT = N == 128 ? 128 : SHORT, WIDEST = N == 128 ? 512 : 256;
    const u32 LAST = HEIGHT * D * 6, STEP = D < 64 ? 128 : 2 * D, END = LAST + HEIGHT * (2 * D < WIDEST ? WIDEST : 2 * D);
    u32 start = shared_address(memory), head = pair.head;
    // copy_rows adds the group's first row to the address by itself; everything else is relative to the group's first row.
    u32 own = group.row() * 2 * D, q = start, k = q + HEIGHT * D * 2, d_o = k + HEIGHT * D * 2;
    u32 last = LAST + group.row() * STEP, v = start + last;
    float *deltas = (float*)(memory + END) + 2 * group.row();
    copy_rows<D, MAX_ROWS>(group, q, from<D>(a.q, a.q_stride, pair.q_row, head), a.q_stride, pair.m);
    copy_rows<D, MAX_ROWS>(group, k, from<D>(a.k, a.k_stride, pair.k_row, head), a.k_stride, pair.n);
    end_copies();
    copy_rows<D, MAX_ROWS>(group, d_o, from<D>(a.d_o, a.o_stride, pair.q_row, head), a.o_stride, pair.m);
    copy_rows<D, MAX_ROWS>(group, v - own, from<D>(a.v, a.v_stride, pair.k_row, head), a.v_stride, pair.n);
    end_copies();
    q += own;
    k += own;
    d_o += own;

    // Mask, statistics and dropout bits of a lane's two rows, while the copies are in flight.
    u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3, warp = group.warp();
    int query = warp / 2 * 16, key = warp % 2 * KEYS;
    Dropout dropout = *a.dropout;
    u32 starts[2], counts[2], keep[2];
    float2 stats[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = query + g + 8 * i;
        starts[i] = counts[i] = 0;
        stats[i] = make_float2(0.0f, 0.0f);
        keep[i] = 0xffff;
        if (row >= pair.m) continue;
        Limits limits = visible_keys(a, row, pair.m, pair.n);
        starts[i] = limits.start;
        counts[i] = limits.end - limits.start;
        stats[i] = ((const float2*)a.stats)[(u64)head * a.stats_rows + pair.q_row + row];
        if (dropout.threshold == 0) continue;
        u64 first = first_draw(a, head, pair.q_row + row) + key + 2 * t;
        keep[i] = 0;
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) keep[i] |= keep2(dropout, first + 8 * block) << 2 * block;
    }

    // P and dP.
    float weights[BLOCKS][4], grads[BLOCKS][4];
    wait_for_earlier_copies();
    group.sync();
    bool in_range = query < pair.m && key < pair.n;
    if (in_range) products<D>(tile<D>(q, query), k, key, weights);
    wait_for_copies();
    group.sync();
    if (in_range) products<D>(tile<D>(d_o, query), v, key, grads);
    float sums[2] = { 0.0f, 0.0f };
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float& weight = weights[block][e];
            float& grad = grads[block][e];
            bool real = in_range && key + 8 * block + 2 * t + (e & 1) - starts[e / 2] < counts[e / 2];
            bool kept = keep[e / 2] >> 2 * block & 1 << (e & 1);
            weight = real ? exp2_fast((finite(weight * a.scale) - stats[e / 2].x) * LOG2_E) * stats[e / 2].y : 0.0f;
            grad = real && kept ? grad * dropout.scale : 0.0f;
            sums[e / 2] = fmaf(weight, grad, sums[e / 2]);
        }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sums[i] = row_sum(sums[i]);
        if (t == 0) deltas[2 * (query + g + 8 * i) + warp % 2] = sums[i];
    }
    group.sync();   // V is not read after this

    Factors<N> factors = { last };
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int row = query + g + 8 * i;
        float delta = deltas[2 * row] + deltas[2 * row + 1];
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
            float *p = weights[block] + 2 * i, *dp = grads[block] + 2 * i;
            u32 kept = keep[i] >> 2 * block;
            factors.write(row, key + 8 * block + 2 * t, pack_bf16(kept & 1 ? p[0] : 0.0f, kept & 2 ? p[1] : 0.0f),
                          pack_bf16(p[0] * (dp[0] - delta), p[1] * (dp[1] - delta)));
        }
    }
    group.sync();

    // Each warp computes a piece of every gradient; narrow heads have fewer pieces than warps, so the pieces rotate over them.
    const int TILES = D == 128 ? 2 : 1, SLICES = D / 32, PIECES = N / 16 / TILES * SLICES, WARPS = N / 8;
    u32 sides = factors.weights();
    u32 piece = warp, slice = piece % SLICES;
    if (a.dq && piece < PIECES)
        gradient<D, N, TILES, false>(sides, Factors<N>::GRADS, k, pair.n, a.scale, piece / SLICES * 16 * TILES, slice,
                                     to<D>(a.dq, a.dq_stride, pair.q_row, head), a.dq_stride, pair.m);
    piece = (warp + PIECES) % WARPS, slice = piece % SLICES;
    if (a.dk && piece < PIECES)
        gradient<D, N, TILES, true>(sides, Factors<N>::GRADS, q, pair.m, a.scale, piece / SLICES * 16 * TILES, slice,
                                    to<D>(a.dk, a.dk_stride, pair.k_row, head), a.dk_stride, pair.n);
    piece = warp, slice = piece % SLICES;
    if (a.dv && piece < PIECES)
        gradient<D, N, TILES, true>(sides, 0, d_o, pair.m, dropout.scale, piece / SLICES * 16 * TILES, slice,
                                    to<D>(a.dv, a.dv_stride, pair.k_row, head), a.dv_stride, pair.n);
}

}  // namespace fast
