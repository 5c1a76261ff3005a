// Products whose right side stays in registers over all steps: of a block's eight warps each has a part of the sum's terms
// and all columns; the parts are added in shared memory.
//
// The tensor cores take 16 terms at a time, in pairs that lie apart. Terms may come in any order, so each lane has eight
// neighbours of 32: one load of 16 bytes, which is two times what a tile of 16 x 16 wants of it.

static constexpr u32 WARPS = 8, ROWS = 16;

// BLOCKS times 32 terms, COLUMNS times 8 columns.
template <int BLOCKS, int COLUMNS> struct Held {
    u32 right[BLOCKS][2][COLUMNS][2];
};

// The term that the warp's first block begins with.
template <int BLOCKS> __device__ __forceinline__ u32 first_term() { return threadIdx.x / 32 * (32 * BLOCKS); }

// `pair(term, column)` is two neighbouring terms of a column, the first in the low half.
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

// The lane's numbers of its two rows, which are handed over as pairs; null for a row that has no part in this. Waits for them.
template <int BLOCKS>
__device__ __forceinline__ void take_rows(u32 (&left)[BLOCKS][2][4], const bf16* low, const bf16* high, u32 first, u32 width) {
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
        // Until the first piece is there the others are not looked at again: that would keep the L2 cache busy, through which all
        // of them have to come.
        while (low && at < width && is_missing(left[0][0])) look16(left[0][0], low + at, true);
    } while (is_incomplete);
    __syncwarp();
}

// The same of rows of singles that are there already.
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

// The two rows of this lane in an array by token; null for rows that have no such step.
__device__ __forceinline__ void lane_rows(const bf16*& low, const bf16*& high, const bf16* from, u32 width, Rows rows, u32 first,
                                          u32 count, u32 step, u32 at, u32 is_reversed) {
    u32 r = first + threadIdx.x % 32 / 4;
    uint4 a = rows[min(r, count - 1)], b = rows[min(r + 8, count - 1)];
    low = r < count && a.y > step ? from + (u64)token_of(a, at, is_reversed) * width : nullptr;
    high = r + 8 < count && b.y > step ? from + (u64)token_of(b, at, is_reversed) * width : nullptr;
}

// The states before a step.
template <int WIDE>
__device__ __forceinline__ void take_states(u32 (&left)[WIDE][2][4], const Layer& a, Rows rows, u32 first, u32 count, u32 step, u32 d) {
    if (step > 0) {
        const bf16 *low, *high;
        lane_rows(low, high, a.narrow, d, rows, first, count, step, step - 1, a.is_reversed);
        take_rows<WIDE>(left, low, high, first_term<WIDE>(), d);
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

// Columns of a matrix terms x columns as pairs of terms, for `hold`.
__device__ __forceinline__ u32 column_pair(const void* weight, u32 terms, u32 stride, u32 term, u32 column, bool is_there) {
    if (term >= terms || !is_there) return 0;
    const bf16* at = (const bf16*)weight + (u64)term * stride + column;
    return (u32)at[0].bits | (u32)at[stride].bits << 16;
}
// The same with the weight's rows as columns.
__device__ __forceinline__ u32 row_pair(const void* weight, u32 rows, u32 terms, u32 term, u32 row) {
    return term < terms && row < rows ? *(const u32*)((const bf16*)weight + (u64)row * terms + term) : 0;
}

// sums += left . right, from the left side's block FIRST of those that are held on.
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

// Numbers from one row of a warp's sums to the next: so many that neither writers nor readers get into each other's way.
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

// Which of a launch's blocks this is: of which layer, with which units, and which 16 rows of every `groups` times 16.
struct Place {
    u32 slice, group, groups;
    bool is_first;
    __device__ __forceinline__ Place(u32 slices, u32 groups) : groups(groups) {
        u32 block = blockIdx.x;
        is_first = block < slices * groups;
        if (!is_first) block -= slices * groups;
        slice = block % slices;
        group = block / slices;
    }
};
