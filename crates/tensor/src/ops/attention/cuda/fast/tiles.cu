// Attention in bf16 on tensor cores for d_k = d_v = 32, 64 or 128 and masks by position. W and dS are rounded to bf16
// as factors of products, all sums are f32.
//
// Most sequences are short, so what counts is that memory never waits. A block has four warps and room for 128 rows of
// queries, keys, values (and gradients). Sequences share it: up to 32 tokens a warp owns one head of a sequence, up to
// 64 two warps, up to 128 four. All of a head is in shared memory at once, so backward writes dQ, dK and dV in one
// go: first dQ by tiles of 16 queries, then dK and dV by tiles of 16 keys. Up to 32 tokens W and dS stay in registers;
// above, they are computed twice.
// Longer sequences take a block for 64 queries (or keys), which goes through the other side 128 rows at a time.
//
// Work lists: pairs (sequence, first row), by the longer of a sequence's queries and keys:
//   first all (sequence, first query) of the long ones (> 128), first = 0, 64, 128.. below the number of queries,
//   then (sequence, 0) of those with 65..128, then of those with 33..64, then of those with up to 32
//   work_count[0..4]: how many of each of the four kinds
// backward_keys has its own list: (sequence, first key), first = 0, 64.. of the long ones; work_count[0] says how many.
//
// Launch: 128 threads; grid: at least the number of jobs (blocks without one return at once), which is
//   forward: heads * (long + c128) + ceil(heads * c64 / 2) + ceil(heads * c32 / 4)
//   backward: the same without the long ones
//   backward_queries, then backward_keys: heads * long
// With T the sum over sequences of the longer of queries and keys, and S sequences, no batch has more than
//   heads * (3 T / 129 + S / 4) + 2 jobs (forward, backward), heads * 3 T / 129 (backward_queries, backward_keys).
// Dynamic shared memory: 128 * (tensors * 2 * d + 36) bytes; tensors: 3 forward, 4 backward (all three kernels).
// Pointers to bf16 are multiples of 16 bytes, row strides of bf16 multiples of 8 elements.

namespace fast {

const int ROWS = 128;           // of each tensor in shared memory
const int LONG = 64;            // rows of a long sequence that a block owns: a tile for every warp
const float LOG2_E = 1.44269504f;

extern __shared__ __align__(1024) u8 memory[];

// What is to be known of a query. Keys count from the first in shared memory; one of them is seen if
// (u32)(key - start) < count.
struct __align__(16) Row {
    float top, share;
    u32 start, count;
};

// Where things lie in shared memory: tensors first, then what is known of rows.
template <int D> struct Room {
    u32 tensors;            // address of the first
    Row *rows;              // [ROWS]
    u32 *keep;              // [ROWS][4]: a bit for every key, 1 = not dropped
    float *deltas;          // [ROWS]

    __device__ __forceinline__ Room(int count) {
        tensors = shared_address(memory);
        rows = (Row*)(memory + count * ROWS * D * 2);
        keep = (u32*)(rows + ROWS);
        deltas = (float*)(keep + ROWS * 4);
    }
    __device__ __forceinline__ u32 tensor(int i) const { return tensors + i * ROWS * D * 2; }
};

// Rows are 2 D bytes. Their 16-byte pieces are exchanged so that eight rows' pieces of one column lie in different
// banks.
template <int D> __device__ __forceinline__ u32 place(u32 row, u32 piece) {
    u32 turn = D == 32 ? row >> 1 & 3 : row & 7;
    return row * (2 * D) + ((piece ^ turn) << 4);
}

// What a lane hands to load_blocks for the 16 x 16 tile at a row that is a multiple of 16, columns 0 to 15.
// Exclusive or with 32 i moves 16 i columns on.
template <int D> __device__ __forceinline__ u32 tile(u32 tensor, int row) {
    u32 lane = threadIdx.x & 31;
    return tensor + place<D>(row + (lane & 15), lane >> 4);
}

// A group of warps that works on one head of a sequence, and its part of the room. (All but its size is found again
// where it is needed, which spares registers.)
struct Group {
    u32 shift;      // 1 << shift warps: 1, 2 or 4

    __device__ __forceinline__ u32 warps() const { return 1 << shift; }
    __device__ __forceinline__ u32 threads() const { return 32 << shift; }
    // Among the block's groups.
    __device__ __forceinline__ u32 number() const { return threadIdx.x >> 5 + shift; }
    // Within the group.
    __device__ __forceinline__ u32 warp() const { return threadIdx.x / 32 & warps() - 1; }
    __device__ __forceinline__ u32 thread() const { return threadIdx.x & threads() - 1; }
    // Its first row in shared memory.
    __device__ __forceinline__ int row() const { return threadIdx.x & ~(threads() - 1); }
    // Waits for the group's other threads.
    __device__ __forceinline__ void meet() const {
        __syncwarp();
        if (shift != 0) barrier(1 + number(), threads());
    }
};

// One head of one sequence.
struct Pair {
    u32 head;
    int q_row, m, k_row, n;

    __device__ __forceinline__ Pair(const Attention& a, u32 sequence, u32 head) : head(head) {
        q_row = a.q_offsets[sequence];
        m = a.q_offsets[sequence + 1] - q_row;
        k_row = a.k_offsets[sequence];
        n = a.k_offsets[sequence + 1] - k_row;
    }
};

__device__ __forceinline__ int up16(int x) { return (x + 15) & ~15; }

template <int D>
__device__ __forceinline__ const bf16 *from(const void *part, u32 stride, int row, u32 head) {
    return (const bf16*)part + (u64)row * stride + head * D;
}
template <int D>
__device__ __forceinline__ bf16 *to(void *part, u32 stride, int row, u32 head) {
    return (bf16*)part + (u64)row * stride + head * D;
}

// Begins to copy rows into a tensor; up to a multiple of 16 they become 0, because 0 times what lies there must be 0.
template <int D>
__device__ __forceinline__ void copy_rows(const Group& group, u32 tensor, const bf16 *from, u32 stride, int count) {
    const u32 pieces = D / 8;
#pragma unroll 4
    for (u32 i = group.thread(); i < up16(count) * pieces; i += group.threads()) {
        u32 row = i / pieces, piece = i % pieces;
        bool real = (int)row < count;
        const bf16 *source = real ? from + (u64)row * stride + piece * 8 : from;
        copy16(tensor + place<D>(group.row() + row, piece), source, real);
    }
}

// Which of 16 neighbouring weights are kept, from draw `index` on. Two share a draw; if the first is the second of its
// two, a ninth draw has the last.
__device__ __forceinline__ u32 keep16(const Dropout& dropout, u64 index) {
    u32 first = (u32)(index >> 1), bits = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 both = draw(dropout.low, dropout.high, first + i);
        bits |= (both & 0xffff) < dropout.threshold ? 0 : 1u << 2 * i;
        bits |= both >> 16 < dropout.threshold ? 0 : 2u << 2 * i;
    }
    if (index & 1) {
        u32 both = draw(dropout.low, dropout.high, first + 8);
        bits |= (both & 0xffff) < dropout.threshold ? 0 : 1u << 16;
        bits >>= 1;
    }
    return bits;
}

// Finds what is to be known of `count` queries from `query` on, with `keys` keys from `key` on in shared memory.
template <int D>
__device__ __forceinline__ void know_rows(const Attention& a, const Pair& pair, const Group& group, const Room<D>& room,
                                          int query, int count, int key, int keys, bool peaks) {
#pragma unroll 1
    for (int i = group.thread(); i < up16(count); i += group.threads()) {
        Row row = { 0.0f, 0.0f, 0, 0 };
        if (i < count) {
            Limits limits = seen(a, query + i, pair.m, pair.n);
            row.start = limits.start - key;
            row.count = limits.end - limits.start;
            if (peaks) {
                float2 peak = ((const float2*)a.peaks)[(u64)pair.head * a.peak_rows + pair.q_row + query + i];
                row.top = peak.x;
                row.share = peak.y;
            }
        }
        room.rows[group.row() + i] = row;
    }
    Dropout dropout = *a.dropout;
    u32 halves = (keys + 15) / 16;
    u64 first = first_draw(a, pair.head, pair.q_row + query) + key;
    u32 longest = a.sizes[1];
#pragma unroll 1
    for (u32 i = group.thread(); i < up16(count) * halves; i += group.threads()) {
        u32 row = i / halves, half = i % halves;
        u32 bits = 0xffff;
        if (dropout.threshold != 0) bits = keep16(dropout, first + (u64)row * longest + 16 * half);
        ((u16*)room.keep)[(group.row() + row) * 8 + half] = bits;
    }
}

// A tile of 16 rows as left factor.
template <int D> struct Left {
    u32 part[D / 16][4];

    __device__ __forceinline__ void load(u32 address) {
#pragma unroll
        for (int i = 0; i < D / 16; i++) load_blocks(part[i], address ^ 32 * i);
    }
};

// products (16 x 16) = left times the 16 rows at `address`.
template <int D>
__device__ __forceinline__ void dots(const Left<D>& left, u32 address, float (&low)[4], float (&high)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) low[e] = high[e] = 0.0f;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        u32 right[4];
        load_blocks(right, address ^ 32 * i);
        multiply(low, left.part[i], right[0], right[2]);
        multiply(high, left.part[i], right[1], right[3]);
    }
}

// Products of the 16 rows at `left_address` and 32 rows of a tensor from `row` on; of the latter those from `end` on are
// skipped. The left tile is loaded anew every time: that costs less than the registers to hold it.
template <int D>
__device__ __forceinline__ void dots32(u32 left_address, u32 tensor, int row, int end, float (&products)[4][4]) {
    Left<D> left;
    left.load(left_address);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (half == 0 || row + 16 < end)
            dots(left, tile<D>(tensor, row + 16 * half), products[2 * half], products[2 * half + 1]);
}

// The same as dots with the left tile loaded on the way, for want of registers to hold it.
template <int D>
__device__ __forceinline__ void dots(u32 left_address, u32 address, float (&low)[4], float (&high)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) low[e] = high[e] = 0.0f;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        u32 left[4], right[4];
        load_blocks(left, left_address ^ 32 * i);
        load_blocks(right, address ^ 32 * i);
        multiply(low, left, right[0], right[2]);
        multiply(high, left, right[1], right[3]);
    }
}

// The transpose of a left tile.
__device__ __forceinline__ void turn(const u32 (&from)[4], u32 (&to)[4]) {
    to[0] = turned(from[0]);
    to[1] = turned(from[2]);
    to[2] = turned(from[1]);
    to[3] = turned(from[3]);
}

// Sums of 16 rows.
template <int D> struct Sums {
    float part[D / 8][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < D / 8; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) part[i][e] = 0.0f;
    }
    // += left (16 x 16) times the 16 rows at `address`.
    __device__ __forceinline__ void add(const u32 (&left)[4], u32 address) {
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
            u32 right[4];
            load_turned_blocks(right, address ^ 32 * i);
            multiply(part[2 * i], left, right[0], right[1]);
            multiply(part[2 * i + 1], left, right[2], right[3]);
        }
    }
    __device__ __forceinline__ void scale_rows(float upper, float lower) {
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            part[i][0] *= upper;
            part[i][1] *= upper;
            part[i][2] *= lower;
            part[i][3] *= lower;
        }
    }
    // Writes the first `count` rows. Four neighbouring lanes exchange what they have, so that each writes 16 bytes.
    __device__ __forceinline__ void write(bf16 *to, u32 stride, int count) const {
        u32 lane = threadIdx.x & 31, t = lane & 3;
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < D / 32; i++) {
                u32 words[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    words[j] = pack_bf16(part[4 * i + j][2 * half], part[4 * i + j][2 * half + 1]);
                exchange(words[0], words[1], t & 1, 1);
                exchange(words[2], words[3], t & 1, 1);
                exchange(words[0], words[2], t & 2, 2);
                exchange(words[1], words[3], t & 2, 2);
                int row = lane / 4 + 8 * half;
                if (row < count)
                    *(uint4*)(to + (u64)row * stride + (4 * i + t) * 8) = make_uint4(words[0], words[1], words[2], words[3]);
            }
    }
    // Of two lanes `step` apart, the upper one's first word changes place with the lower one's second.
    static __device__ __forceinline__ void exchange(u32& first, u32& second, bool upper, int step) {
        u32 got = __shfl_xor_sync(0xffffffffu, upper ? first : second, step);
        if (upper) first = got;
        else second = got;
    }
};

// Over the four lanes that share a row; each gets the result.
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// What part of the keys in shared memory a tile of queries sees, from a multiple of 32 on.
__device__ __forceinline__ Limits keys_of(const Attention& a, const Pair& pair, int query, int count, int key, int keys) {
    Limits limits;
    limits.start = clamp(seen(a, query, pair.m, pair.n).start - key, 0, keys) & ~31;
    limits.end = clamp(seen(a, query + count - 1, pair.m, pair.n).end - key, 0, keys);
    return limits;
}

}  // namespace fast
