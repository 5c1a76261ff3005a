// Attention in bf16 on tensor cores for d_k = d_v = 32, 64 or 128 and masks by position. W and dS are rounded to bf16
// as factors of products; all sums are f32.
//
// Most sequences are short, so the kernels hide memory latency: many small blocks on a multiprocessor, several warps for
// one head of a sequence, and asynchronous copies during computation.
//   forward: a block has 64 queries of a head and iterates over 64 keys at a time; every 16 queries belong to D / 64 warps
//     (at least one), which compute the same weights and 64 columns of the context each.
//   backward: shared memory for 64 queries and 64 keys; up to 32 tokens in half a block, up to 64 in a block: see small.cu.
//   backward_whole: the same for 65 to 128 tokens. (Its blocks are large, and would leave no room for small ones.)
//   backward_queries: dQ of 64 queries of a longer sequence, iterating over 128 keys at a time.
//   backward_keys: dK and dV of 64 keys of a long sequence, iterating over 128 queries at a time.
//
// Work lists: items of 8 u32 (first query row, queries, first key row, keys, first of the item's own rows, 0, 0, 0).
//   forward: all sequences, own rows from 0, 64, 128.. on, below the number of queries; work_count[0]: the number of items
//   backward, by the longer of a sequence's queries and keys: first all long ones (> 128), own rows likewise,
//     then those with 65..128, then those with 33..64, then those with up to 32 (own rows from 0 on)
//     work_count[0..4]: the number of each of the four kinds
//   backward_keys: own rows are keys of the long ones; work_count[0]: the number of items
//
// Launch: threads: forward 256 for D = 128, else 128; backward 256; backward_whole 512; the other two 128.
// Grid: at least the number of jobs (blocks without one return at once), which is
//   forward: heads * items
//   backward: heads * c64 + ceil(heads * c32 / 2)
//   backward_whole: heads * c128
//   backward_queries, then backward_keys: heads * long
// With T the sum over sequences of the longer of queries and keys, and S sequences, no batch has more than
//   heads * (T / 64 + S) jobs (forward), heads * (T / 33 + S / 2) + 1 (backward), heads * T / 65 (backward_whole), heads * 3 T / 129 (others).
// Dynamic shared memory in bytes:
//   forward: 64 * (6 d + 36)     backward: 64 * (6 d + 264)     backward_whole: 128 * (6 d + 520)
//   backward_queries, backward_keys: 128 * (8 d + 36)
// Pointers to bf16 are multiples of 16 bytes, row strides of bf16 multiples of 8 elements.

namespace fast {

const int SHORT = 64;           // rows of each tensor in shared memory: forward and backward
const int ROWS = 128;           // the same: backward_queries and backward_keys
const int LONG = 64;            // rows of a long sequence that a block owns: four tiles
const float LOG2_E = 1.44269504f;

extern __shared__ __align__(1024) u8 memory[];

// Mask and softmax statistics of a query. Keys are indexed from the first in shared memory; one of them is visible if
// (u32)(key - start) < count.
struct __align__(16) RowInfo {
    float top, inv_sum;
    u32 start, count;
};

// Layout of shared memory: first tensors, then row information.
struct SharedLayout {
    u32 tensors, bytes;     // address of the first, size of each
    RowInfo *rows;              // one for every row
    u32 *keep;              // four for every row: a bit for every key, 1 = not dropped
    float *deltas;          // one for every row

    __device__ __forceinline__ SharedLayout(int count, int height, int width) {
        bytes = height * width * 2;
        tensors = shared_address(memory);
        rows = (RowInfo*)(memory + count * bytes);
        keep = (u32*)(rows + height);
        deltas = (float*)(keep + height * 4);
    }
    __device__ __forceinline__ u32 tensor(int i) const { return tensors + i * bytes; }
};

// Rows are 2 D bytes. Their 16-byte pieces are swizzled so that eight rows' pieces of one column are in different
// banks.
template <int D> __device__ __forceinline__ u32 swizzle(u32 row, u32 piece) {
    u32 bits = D == 32 ? row >> 1 & 3 : row & 7;
    return row * (2 * D) + ((piece ^ bits) << 4);
}

// A lane's address argument of load_blocks for the 16 x 16 tile at a row that is a multiple of 16, columns 0 to 15.
// XOR with 32 i moves 16 i columns on.
template <int D> __device__ __forceinline__ u32 tile(u32 tensor, int row) {
    u32 lane = threadIdx.x & 31;
    return tensor + swizzle<D>(row + (lane & 15), lane >> 4);
}

// The warps that work on one head of a sequence, and their rows in shared memory: a block, or half of it (up to 32 tokens).
struct Group {
    u32 block;      // the block's threads
    u32 split;      // 0: all of the block, 1: a half

    __device__ __forceinline__ u32 threads() const { return block >> split; }
    // Index among the block's groups.
    __device__ __forceinline__ u32 number() const { return threadIdx.x / threads(); }
    // Index within the group.
    __device__ __forceinline__ u32 thread() const { return threadIdx.x & threads() - 1; }
    __device__ __forceinline__ u32 warp() const { return thread() / 32; }
    // Its first row in shared memory.
    __device__ __forceinline__ int row() const { return split ? number() * 32 : 0; }
    // Barrier for the group's threads.
    __device__ __forceinline__ void sync() const {
        if (split) barrier(1 + number(), threads());
        else __syncthreads();
    }
};

// One head of one sequence.
struct Pair {
    u32 head;
    int q_row, m, k_row, n;
    int first;      // of the item's own rows

    __device__ __forceinline__ Pair(const u32 *item, u32 head) : head(head) {
        q_row = item[0];
        m = item[1];
        k_row = item[2];
        n = item[3];
        first = item[4];
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

// Starts asynchronous copies of rows into a tensor, at most MAX_ROWS if that is known (not 0); padding rows up to a multiple
// of 16 become 0, because 0 times their contents must be 0. Each thread copies one piece of a row at a time. (The step is
// a multiple of 8 rows, so the piece's place in a row stays the same.)
template <int D, int MAX_ROWS = 0>
__device__ __forceinline__ void copy_rows(const Group& group, u32 tensor, const bf16 *from, u32 stride, int count) {
    const u32 pieces = D / 8;
    const int step = group.threads() / pieces;
    u32 piece = group.thread() % pieces;
    int first = group.thread() / pieces;
    u32 place = tensor + fast::swizzle<D>(group.row() + first, piece);
    const bf16 *source = from + (u64)first * stride + piece * 8;
#pragma unroll
    for (int i = 0; i < MAX_ROWS; i += step) {
        int row = first + i;
        if (row < up16(count)) copy16(place + i * 2 * D, row < count ? source + (u64)i * stride : from, row < count);
    }
#pragma unroll 4
    for (int row = first; MAX_ROWS == 0 && row < up16(count); row += step) {
        copy16(place, row < count ? source : from, row < count);
        place += step * 2 * D;
        source += (u64)step * stride;
    }
}

// Dropout bits of 16 neighbouring weights, from draw `index` on (1 = kept). Two weights share a draw; if the first is the
// second of its two, a ninth draw has the last.
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

// Fills in the row information of `count` queries from `query` on, with `keys` keys from `key` on in shared memory.
__device__ __forceinline__ void load_row_info(const Attention& a, const Pair& pair, const Group& group, const SharedLayout& layout,
                                          int query, int count, int key, int keys, bool stats) {
#pragma unroll 1
    for (int i = group.thread(); i < up16(count); i += group.threads()) {
        RowInfo row = { 0.0f, 0.0f, 0, 0 };
        if (i < count) {
            Limits limits = visible_keys(a, query + i, pair.m, pair.n);
            row.start = limits.start - key;
            row.count = limits.end - limits.start;
            if (stats) {
                float2 row_stats = ((const float2*)a.stats)[(u64)pair.head * a.stats_rows + pair.q_row + query + i];
                row.top = row_stats.x;
                row.inv_sum = row_stats.y;
            }
        }
        layout.rows[group.row() + i] = row;
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
        ((u16*)layout.keep)[(group.row() + row) * 8 + half] = bits;
    }
}

// A tile of 16 rows as left factor, in registers.
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

// Products of the 16 rows at `left_address` and 32 rows of a tensor from `row` on; those of the latter from `end` on are
// skipped. The left tile is loaded each time: that costs less than the registers to hold it.
template <int D>
__device__ __forceinline__ void dots32(u32 left_address, u32 tensor, int row, int end, float (&products)[4][4]) {
    Left<D> left;
    left.load(left_address);
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (half == 0 || row + 16 < end)
            dots(left, tile<D>(tensor, row + 16 * half), products[2 * half], products[2 * half + 1]);
}

// The same as dots, but loads the left tile on the fly to save registers.
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

// Products of the 16 rows at `left_address` and 16 or 32 rows of a tensor from `row` on, valid or not.
template <int D, int BLOCKS>
__device__ __forceinline__ void products(u32 left_address, u32 tensor, int row, float (&sums)[BLOCKS][4]) {
    u32 address = tile<D>(tensor, row);
#pragma unroll
    for (int block = 0; block < BLOCKS; block++)
#pragma unroll
        for (int e = 0; e < 4; e++) sums[block][e] = 0.0f;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        u32 left[4];
        load_blocks(left, left_address ^ 32 * i);
#pragma unroll
        for (int block = 0; block < BLOCKS; block += 2) {
            u32 right[4];
            load_blocks(right, (address ^ 32 * i) + block * 16 * D);     // the offset is part of the instruction
            multiply(sums[block], left, right[0], right[2]);
            multiply(sums[block + 1], left, right[1], right[3]);
        }
    }
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
            load_blocks_transposed(right, address ^ 32 * i);
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
    // Writes the first `count` rows. Four neighbouring lanes exchange values, so that each writes 16 bytes.
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
                if (row < count) store16(to + (u64)row * stride + (4 * i + t) * 8, words);
            }
    }
    // Between two lanes `step` apart: swaps the upper lane's first word with the lower lane's second.
    static __device__ __forceinline__ void exchange(u32& first, u32& second, bool upper, int step) {
        u32 got = __shfl_xor_sync(0xffffffffu, upper ? first : second, step);
        if (upper) first = got;
        else second = got;
    }
};

// Reduction over the four lanes that share a row; each gets the result.
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float minus_infinity() { return __uint_as_float(0xff800000u); }

// The range of keys in shared memory that a tile of queries sees, from a multiple of 32 on.
__device__ __forceinline__ Limits keys_of(const Attention& a, const Pair& pair, int query, int count, int key, int keys) {
    Limits limits;
    limits.start = clamp(visible_keys(a, query, pair.m, pair.n).start - key, 0, keys) & ~31;
    limits.end = clamp(visible_keys(a, query + count - 1, pair.m, pair.n).end - key, 0, keys);
    return limits;
}

}  // namespace fast
