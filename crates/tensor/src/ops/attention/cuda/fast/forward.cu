// Forward: each warp iterates over the keys with 16 queries.

namespace fast {

// Columns of the context that a warp owns. All warps with the same queries compute the same weights.
template <int D> struct Columns {
    static const int OWN = D < 64 ? D : 64, PARTS = D / OWN;
    static __device__ __forceinline__ u32 part() { return threadIdx.x / 32 % PARTS; }
};

// Online softmax of 16 queries: the sums are relative to the largest score so far.
template <int D> struct RunningSoftmax {
    Sums<Columns<D>::OWN> context;
    float tops[2], sums[2];

    __device__ __forceinline__ void begin() {
        context.clear();
        tops[0] = tops[1] = minus_infinity();
        sums[0] = sums[1] = 0.0f;
    }

    static const int BLOCKS = 2;    // of 8 keys (more would not fit into registers)

    // The scores of some keys in shared memory, from `key` on; `row` is the first row of the tile.
    __device__ __forceinline__ void score(const SharedLayout& layout, u32 q, u32 k, int row, int key, float scale,
                                          float (&scores)[BLOCKS][4]) const {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        products<D>(tile<D>(q, row), k, key, scores);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 start = layout.rows[row + g + 8 * i].start, count = layout.rows[row + g + 8 * i].count;
#pragma unroll
            for (int block = 0; block < BLOCKS; block++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float& score = scores[block][2 * i + j];
                    bool real = key + 8 * block + 2 * t + j - start < count;
                    score = real ? finite(score * scale) : minus_infinity();
                }
        }
    }

    // Adds the values of these keys, weighted by their scores. Keys from `end` on are padding.
    __device__ __forceinline__ void add(const SharedLayout& layout, u32 v, int row, int key, int end,
                                        const float (&scores)[BLOCKS][4]) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        u32 left[BLOCKS / 2][4];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float highest = tops[i];
#pragma unroll
            for (int block = 0; block < BLOCKS; block++)
                highest = fmaxf(highest, fmaxf(scores[block][2 * i], scores[block][2 * i + 1]));
            highest = row_max(highest);
            // While no key has been visible, the maximum is -inf and nothing is subtracted.
            float base = highest == minus_infinity() ? 0.0f : highest;
            float rescale = exp2_fast((tops[i] - base) * LOG2_E);
            sums[i] *= rescale;
            context.scale_rows(i == 0 ? rescale : 1.0f, i == 1 ? rescale : 1.0f);
            tops[i] = highest;
            const u32 *words = layout.keep + (row + g + 8 * i) * 4;
#pragma unroll
            for (int block = 0; block < BLOCKS; block++) {
                u32 keep = words[(key + 8 * block) / 32] >> 2 * t + (key + 8 * block) % 32;
                float x = exp2_fast((scores[block][2 * i] - base) * LOG2_E);
                float y = exp2_fast((scores[block][2 * i + 1] - base) * LOG2_E);
                sums[i] += x + y;
                left[block / 2][block % 2 * 2 + i] = pack_bf16(keep & 1 ? x : 0.0f, keep & 2 ? y : 0.0f);
            }
        }
        u32 address = tile<D>(v, key) ^ Columns<D>::OWN * 2 * Columns<D>::part();
#pragma unroll
        for (int part = 0; part < BLOCKS / 2; part++)
            if (key + 16 * part < end) {
#pragma unroll
                for (int i = 0; i < Columns<D>::OWN / 16; i++) {
                    u32 right[4];
                    load_blocks_transposed(right, (address ^ 32 * i) + part * 32 * D);
                    multiply(context.part[2 * i], left[part], right[0], right[1]);
                    multiply(context.part[2 * i + 1], left[part], right[2], right[3]);
                }
            }
    }

    // Processes keys, which are in shared memory from row 0 on.
    __device__ __forceinline__ void process_keys(const SharedLayout& layout, u32 q, u32 k, u32 v, int row, Limits keys, float scale) {
#pragma unroll 1
        for (int key = keys.start; key < keys.end; key += 8 * BLOCKS) {
            float scores[BLOCKS][4];
            score(layout, q, k, row, key, scale, scores);
            add(layout, v, row, key, keys.end, scores);
        }
    }

    // Writes the rows' context and softmax statistics; `query` is the index of the tile's first query in its sequence.
    __device__ __forceinline__ void finish(const Attention& a, const Pair& pair, int query, int count, float dropout_scale) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        float inv_sums[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            inv_sums[i] = 1.0f / row_sum(sums[i]);
            int row = g + 8 * i;
            if (t == 0 && Columns<D>::part() == 0 && row < count)
                ((float2*)a.stats)[(u64)pair.head * a.stats_rows + pair.q_row + query + row] =
                    make_float2(tops[i], inv_sums[i]);
        }
        context.scale_rows(inv_sums[0] * dropout_scale, inv_sums[1] * dropout_scale);
        bf16 *o = to<D>(a.o, a.o_stride, pair.q_row + query, pair.head) + Columns<D>::OWN * Columns<D>::part();
        context.write(o, a.o_stride, count);
    }
};

// The blocks of `step` keys that any of some queries sees.
__device__ __forceinline__ Limits key_blocks(const Attention& a, const Pair& pair, int query, int count, int step) {
    Limits limits;
    limits.start = visible_keys(a, query, pair.m, pair.n).start / step * step;
    limits.end = visible_keys(a, query + count - 1, pair.m, pair.n).end;
    return limits;
}

// 64 queries of a sequence.
template <int D>
__device__ __forceinline__ void forward(const Attention& a, const Pair& pair, int first) {
    const Group group = { Columns<D>::PARTS * 128, 0 };
    SharedLayout layout(3, SHORT, D);
    u32 q = layout.tensor(0), k = layout.tensor(1), v = layout.tensor(2), head = pair.head;
    int all = min(LONG, pair.m - first), own = group.warp() / Columns<D>::PARTS * 16, count = min(16, all - own);
    if (all <= 0) return;
    copy_rows<D>(group, q, from<D>(a.q, a.q_stride, pair.q_row + first, head), a.q_stride, all);
    RunningSoftmax<D> running;
    running.begin();
    Limits blocks = key_blocks(a, pair, first, all, SHORT);
#pragma unroll 1
    for (int block = blocks.start; block < blocks.end; block += SHORT) {
        int keys = min(SHORT, pair.n - block);
        copy_rows<D>(group, k, from<D>(a.k, a.k_stride, pair.k_row + block, head), a.k_stride, keys);
        copy_rows<D>(group, v, from<D>(a.v, a.v_stride, pair.k_row + block, head), a.v_stride, keys);
        load_row_info(a, pair, group, layout, first, all, block, keys, false);
        wait_for_copies();
        __syncthreads();
        Limits part = { 0, 0 };
        if (count > 0) part = keys_of(a, pair, first + own, count, block, keys);
        running.process_keys(layout, q, k, v, own, part, a.scale);
        __syncthreads();
    }
    if (count > 0) running.finish(a, pair, first + own, count, a.dropout->scale);
}

}  // namespace fast
