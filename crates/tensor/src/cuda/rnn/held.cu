// Matrix products whose right operand stays in registers over all steps: each of a block's eight warps has a
// slice of k and all columns; the partial sums are added in shared memory.
//
// Tensor cores take 16 values of k at a time, in pairs that are not adjacent. The order of k does not matter,
// so each lane has eight neighbours of 32: one 16-byte load, which covers its share of two 16 x 16 tiles.

static constexpr u32 WARPS = 8, ROWS = 16;

// BLOCKS x 32 values of k, COLUMNS x 8 columns.
template <int BLOCKS, int COLUMNS> struct Held {
    u32 right[BLOCKS][2][COLUMNS][2];
};

// The first k of the warp.
template <int BLOCKS> __device__ __forceinline__ u32 first_term() { return threadIdx.x / 32 * (32 * BLOCKS); }

// Loads the right operand. `pair(term, column)` returns two neighbouring k of a column, the first in the low
// half.
template <int BLOCKS, int COLUMNS, class P> __device__ __forceinline__ void hold(Held<BLOCKS, COLUMNS>& held, const P& pair) {
    u32 lane = threadIdx.x % 32, first = first_term<BLOCKS>() + 8 * (lane % 4);
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int n = 0; n < COLUMNS; n++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    held.right[block][half][n][i] = pair(first + 32 * block + 4 * half + 2 * i, 8 * n + lane / 4);
}

// Loads the lane's values of its two rows, which other blocks publish as pairs, and waits for them; null for
// a row that has no such step.
template <int BLOCKS>
__device__ __forceinline__ void await_rows(u32 (&left)[BLOCKS][2][4], const bf16* low, const bf16* high, u32 first, u32 width) {
    u32 at = first + 8 * (threadIdx.x % 4);
    bool is_incomplete;
    do {
        is_incomplete = false;
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
            bool is_there = at + 32 * block < width;
            look16(left[block][0], low + at + 32 * block, low && is_there);
            look16(left[block][1], high + at + 32 * block, high && is_there);
        }
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
            bool is_there = at + 32 * block < width;
            is_incomplete |= low && is_there && is_missing(left[block][0]);
            is_incomplete |= high && is_there && is_missing(left[block][1]);
        }
        // Polls only the first piece until it is there: polling all would load the L2 cache, through which
        // they arrive.
        while (low && at < width && is_missing(left[0][0])) look16(left[0][0], low + at, true);
    } while (is_incomplete);
    __syncwarp();
}

// The same for f32 rows that exist already, rounded to bf16.
template <int BLOCKS>
__device__ __forceinline__ void round_rows(u32 (&left)[BLOCKS][2][4], const float* low, const float* high, u32 first, u32 width) {
    u32 at = first + 8 * (threadIdx.x % 4);
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float* row = half ? high : low;
            bool is_there = row && at + 32 * block < width;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float2 two = is_there ? *(const float2*)(row + at + 32 * block + 2 * i) : make_float2(0.0f, 0.0f);
                left[block][half][i] = pack_bf16(two.x, two.y);
            }
        }
    __syncwarp();
}

// The two rows of this lane in an array indexed by token; null for rows without such a step.
__device__ __forceinline__ void lane_rows(const bf16*& low, const bf16*& high, const bf16* from, u32 width, Rows rows, u32 first,
                                          u32 count, u32 step, u32 at, u32 is_reversed) {
    u32 r = first + threadIdx.x % 32 / 4;
    uint4 a = rows[min(r, count - 1)], b = rows[min(r + 8, count - 1)];
    low = r < count && a.y > step ? from + (u64)token_of(a, at, is_reversed) * width : nullptr;
    high = r + 8 < count && b.y > step ? from + (u64)token_of(b, at, is_reversed) * width : nullptr;
}

// The states before a step.
template <int WIDE>
__device__ __forceinline__ void await_states(u32 (&left)[WIDE][2][4], const Layer& a, Rows rows, u32 first, u32 count, u32 step, u32 d) {
    if (step > 0) {
        const bf16 *low, *high;
        lane_rows(low, high, a.narrow, d, rows, first, count, step, step - 1, a.is_reversed);
        await_rows<WIDE>(left, low, high, first_term<WIDE>(), d);
    } else {
        u32 r = first + threadIdx.x % 32 / 4;
        uint4 one = rows[min(r, count - 1)], other = rows[min(r + 8, count - 1)];
        const float* low = r < count && one.y > 0 ? a.initial_h + (u64)one.z * d : nullptr;
        const float* high = r + 8 < count && other.y > 0 ? a.initial_h + (u64)other.z * d : nullptr;
        round_rows<WIDE>(left, low, high, first_term<WIDE>(), d);
    }
}

template <int COLUMNS> __device__ __forceinline__ void clear_sums(float (&sums)[COLUMNS][4]) {
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) sums[n][0] = sums[n][1] = sums[n][2] = sums[n][3] = 0.0f;
}

// Pairs of k from a k x columns matrix, for `hold`.
__device__ __forceinline__ u32 column_pair(const void* weight, u32 terms, u32 stride, u32 term, u32 column, bool is_there) {
    if (term >= terms || !is_there) return 0;
    const bf16* at = (const bf16*)weight + (u64)term * stride + column;
    return (u32)at[0].bits | (u32)at[stride].bits << 16;
}
// The same for the transposed weight.
__device__ __forceinline__ u32 row_pair(const void* weight, u32 rows, u32 terms, u32 term, u32 row) {
    return term < terms && row < rows ? *(const u32*)((const bf16*)weight + (u64)row * terms + term) : 0;
}

// sums += left . right, with the register blocks from FIRST on.
template <int FIRST, int PART, int BLOCKS, int COLUMNS>
__device__ __forceinline__ void multiply_held(float (&sums)[COLUMNS][4], const u32 (&left)[PART][2][4],
                                              const Held<BLOCKS, COLUMNS>& held) {
#pragma unroll
    for (int block = 0; block < PART; block++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32(&low)[4] = left[block][0];
            const u32(&high)[4] = left[block][1];
            u32 tile[4] = {low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]};
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                const u32(&right)[2] = held.right[FIRST + block][half][n];
                multiply(sums[n], tile, right[0], right[1]);
            }
        }
}

// Row stride of a warp's sums, padded to avoid bank conflicts of writers and readers.
__device__ constexpr u32 sums_stride(u32 columns, u32 units) {
    return units == 16 ? columns + (columns % 32 == 16 ? 0 : 16) : columns + (columns % 16 == 8 ? 0 : 8);
}

template <int COLUMNS> __device__ __forceinline__ void share_sums(float* to, const float (&sums)[COLUMNS][4], u32 stride) {
    u32 lane = threadIdx.x % 32;
    float* own = to + (threadIdx.x / 32 * ROWS + lane / 4) * stride + 2 * (lane % 4);
#pragma unroll
    for (int n = 0; n < COLUMNS; n++) {
        *(float2*)(own + 8 * n) = make_float2(sums[n][0], sums[n][1]);
        *(float2*)(own + 8 * stride + 8 * n) = make_float2(sums[n][2], sums[n][3]);
    }
}

__device__ __forceinline__ float shared_sum(const float* sums, u32 row, u32 column, u32 stride) {
    float sum = 0.0f;
#pragma unroll
    for (u32 warp = 0; warp < WARPS; warp++) sum += sums[(warp * ROWS + row) * stride + column];
    return sum;
}

// The position of this block in the launch: which layer, which slice of units, and which 16 rows of every
// `groups` times 16.
struct BlockPosition {
    u32 slice, group, groups;
    bool is_first;
    __device__ __forceinline__ BlockPosition(u32 slices, u32 groups) : groups(groups) {
        u32 block = blockIdx.x;
        is_first = block < slices * groups;
        if (!is_first) block -= slices * groups;
        slice = block % slices;
        group = block / slices;
    }
};
