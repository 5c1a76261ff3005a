// Forward: 16 queries of a warp go through the keys.

namespace fast {

// 16 queries on their way through the keys: the sums belong to the largest score so far.
template <int D> struct Attending {
    u32 queries;                // where the tile of Q is
    Sums<D> context;
    float tops[2], sums[2];

    __device__ __forceinline__ void begin(u32 q, int row) {
        queries = tile<D>(q, row);
        context.clear();
        tops[0] = tops[1] = minus_infinity();
        sums[0] = sums[1] = 0.0f;
    }

    // Goes through keys in shared memory, whose first is at `key_row` there; `row` is the tile's.
    __device__ __forceinline__ void attend(const Room<D>& room, u32 k, u32 v, int row, int key_row, Limits keys,
                                           float scale) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        Row rows[2] = { room.rows[row + g], room.rows[row + g + 8] };
#pragma unroll 1
        for (int key = keys.start; key < keys.end; key += 32) {
            // Two halves of 16 keys, two blocks of 8 in each.
            float scores[4][4];
            dots32<D>(queries, k, key_row + key, key_row + keys.end, scores);
            float highest[2] = { tops[0], tops[1] };
#pragma unroll
            for (int block = 0; block < 4; block++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const Row& own = rows[e / 2];
                    bool real = key + 8 * block + 2 * t + (e & 1) - own.start < own.count;
                    real = real && (block < 2 || key + 16 < keys.end);
                    float score = real ? finite(scores[block][e] * scale) : minus_infinity();
                    scores[block][e] = score;
                    highest[e / 2] = fmaxf(highest[e / 2], score);
                }
            // Before the first key that is seen there is nothing to subtract.
            float base[2], shrink[2];
            u32 keep[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                highest[i] = row_max(highest[i]);
                base[i] = highest[i] == minus_infinity() ? 0.0f : highest[i];
                shrink[i] = exp2_fast((tops[i] - base[i]) * LOG2_E);
                tops[i] = highest[i];
                sums[i] *= shrink[i];
                keep[i] = room.keep[(row + g + 8 * i) * 4 + key / 32] >> 2 * t;
            }
            context.scale_rows(shrink[0], shrink[1]);
            u32 left[2][4];
#pragma unroll
            for (int block = 0; block < 4; block++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float x = exp2_fast((scores[block][2 * i] - base[i]) * LOG2_E);
                    float y = exp2_fast((scores[block][2 * i + 1] - base[i]) * LOG2_E);
                    sums[i] += x + y;
                    x = keep[i] >> 8 * block & 1 ? x : 0.0f;
                    y = keep[i] >> 8 * block & 2 ? y : 0.0f;
                    left[block / 2][block % 2 * 2 + i] = pack_bf16(x, y);
                }
#pragma unroll
            for (int half = 0; half < 2; half++)
                if (half == 0 || key + 16 < keys.end) context.add(left[half], tile<D>(v, key_row + key + 16 * half));
        }
    }

    // Writes the rows' context and peaks; `query` is the tile's first among the sequence's.
    __device__ __forceinline__ void finish(const Attention& a, const Pair& pair, int query, int count, float kept_scale) {
        u32 lane = threadIdx.x & 31, g = lane / 4, t = lane & 3;
        float shares[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            shares[i] = 1.0f / row_sum(sums[i]);
            int row = g + 8 * i;
            if (t == 0 && row < count)
                ((float2*)a.peaks)[(u64)pair.head * a.peak_rows + pair.q_row + query + row] =
                    make_float2(tops[i], shares[i]);
        }
        context.scale_rows(shares[0] * kept_scale, shares[1] * kept_scale);
        context.write(to<D>(a.o, a.o_stride, pair.q_row + query, pair.head), a.o_stride, count);
    }
};

template <int D>
__device__ __forceinline__ void forward_short(const Attention& a, const Pair& pair, Group group) {
    Room<D> room(3);
    u32 q = room.tensor(0), k = room.tensor(1), v = room.tensor(2), head = pair.head;
    copy_rows<D>(group, q, from<D>(a.q, a.q_stride, pair.q_row, head), a.q_stride, pair.m);
    copy_rows<D>(group, k, from<D>(a.k, a.k_stride, pair.k_row, head), a.k_stride, pair.n);
    copy_rows<D>(group, v, from<D>(a.v, a.v_stride, pair.k_row, head), a.v_stride, pair.n);
    know_rows(a, pair, group, room, 0, pair.m, 0, pair.n, false);
    wait_for_copies();
    group.meet();
#pragma unroll 1
    for (int query = 16 * group.warp(); query < pair.m; query += 16 * group.warps()) {
        int count = min(16, pair.m - query);
        Attending<D> attending;
        attending.begin(q, group.row() + query);
        Limits keys = keys_of(a, pair, query, count, 0, pair.n);
        attending.attend(room, k, v, group.row() + query, group.row(), keys, a.scale);
        attending.finish(a, pair, query, count, a.dropout->scale);
    }
}

// The blocks of ROWS keys that some queries see any of.
__device__ __forceinline__ Limits key_blocks(const Attention& a, const Pair& pair, int query, int count) {
    Limits limits;
    limits.start = seen(a, query, pair.m, pair.n).start / ROWS * ROWS;
    limits.end = seen(a, query + count - 1, pair.m, pair.n).end;
    return limits;
}

template <int D>
__device__ __forceinline__ void forward_long(const Attention& a, const Pair& pair, int first) {
    Room<D> room(3);
    Group group = { 2 };
    u32 q = room.tensor(0), k = room.tensor(1), v = room.tensor(2), head = pair.head;
    int all = min(LONG, pair.m - first), own = 16 * group.warp(), count = min(16, all - own);
    copy_rows<D>(group, q, from<D>(a.q, a.q_stride, pair.q_row + first, head), a.q_stride, all);
    wait_for_copies();
    __syncthreads();
    Attending<D> attending;
    if (count > 0) attending.begin(q, own);
    Limits blocks = key_blocks(a, pair, first, all);
#pragma unroll 1
    for (int key = blocks.start; key < blocks.end; key += ROWS) {
        int keys = min(ROWS, pair.n - key);
        copy_rows<D>(group, k, from<D>(a.k, a.k_stride, pair.k_row + key, head), a.k_stride, keys);
        copy_rows<D>(group, v, from<D>(a.v, a.v_stride, pair.k_row + key, head), a.v_stride, keys);
        know_rows(a, pair, group, room, first, all, key, keys, false);
        wait_for_copies();
        __syncthreads();
        if (count > 0)
            attending.attend(room, k, v, own, 0, keys_of(a, pair, first + own, count, key, keys), a.scale);
        __syncthreads();
    }
    if (count > 0) attending.finish(a, pair, first + own, count, a.dropout->scale);
}

}  // namespace fast
