// y = f(x W + b) for one row as for thousands, and the bits of a row are the same among any others: a sum is one chain of
// products of 16 numbers of k each, in order, whatever tile it lies in. So the host may choose tiles by how many rows there are.
//
// bf16: tiles of 64 numbers of k arrive in shared memory by copies that nobody waits for, STAGES of them under way at a time.
// f32: one multiplication after the other.

const u32 DEPTH = 64;   // numbers of k of a tile

__device__ __forceinline__ void store2(float* to, const float* x) { *(float2*)to = make_float2(x[0], x[1]); }
__device__ __forceinline__ void store2(bf16* to, const float* x) { *(u32*)to = pack_bf16(x[0], x[1]); }

// Columns c and c + 1 of a row, as far as there are.
template <class T> __device__ __forceinline__ void put(T* to, const float* two, u32 c, u32 outputs) {
    if (outputs % 2 == 0) return store2(to, two);
    to[0] = narrow<T>(two[0]);
    if (c + 1 < outputs) to[1] = narrow<T>(two[1]);
}

// Stores two neighbouring sums.
__device__ __forceinline__ void finish(const Job& job, const float* sums, u32 r, u32 c) {
    float two[2] = {sums[0], sums[1]};
    #pragma unroll
    for (u32 e = 0; e < 2; e++) {
        if (job.bias && c + e < job.outputs) two[e] += job.bias[c + e];
        two[e] = activated(two[e], job.activation);
    }
    u64 at = (u64)r * job.outputs + c;
    if (job.is_wide) put((float*)job.y + at, two, c, job.outputs);
    else put((bf16*)job.y + at, two, c, job.outputs);
}

// Where a piece of 16 bytes of a row lies in a tile with rows of PIECES pieces: exchanged so that eight rows' pieces of one column
// lie in different banks.
template <u32 PIECES> __device__ __forceinline__ u32 place(u32 row, u32 piece) {
    u32 turn = PIECES == 4 ? row >> 1 & 3 : row & 7;
    return (row * PIECES + (piece ^ turn)) * 16;
}

// Copies a tile of HEIGHT rows of PIECES pieces from a matrix with rows of `stride` numbers of which `width` count: from row
// `row`, of which there are `rows`, and number `column` on. What lies outside is zero.
template <u32 HEIGHT, u32 PIECES, u32 THREADS, bool ALIGNED>
__device__ __forceinline__ void fetch(u32 to, u8* memory, const bf16* from, u32 row, u32 rows, u32 column, u32 width) {
    for (u32 i = threadIdx.x; i < HEIGHT * PIECES; i += THREADS) {
        u32 r = i / PIECES, piece = i % PIECES, c = column + piece * 8;
        u32 at = place<PIECES>(r, piece);
        bool real = row + r < rows && c < width;
        const bf16* source = from + (real ? (u64)(row + r) * width + c : 0);
        if (ALIGNED) {
            copy16(to + at, source, real);
        } else {
            bf16* target = (bf16*)(memory + at);
            for (u32 j = 0; j < 8; j++) {
                bf16 zero = {0};
                target[j] = real && c + j < width ? source[j] : zero;
            }
        }
    }
}

// A block computes BM x BN sums; each of its WM x WN warps BM / WM x BN / WN of them. TURNED: W lies as outputs x inputs.
template <u32 BM, u32 BN, u32 WM, u32 WN, u32 STAGES, bool TURNED, bool ALIGNED>
__device__ __forceinline__ void product(const Job& job) {
    const u32 THREADS = WM * WN * 32, TM = BM / WM / 16, TN = BN / WN / 16;
    const u32 LEFT = BM * DEPTH * 2, RIGHT = BN * DEPTH * 2, STAGE = LEFT + RIGHT;
    const u32 WIDE = BN / 8;    // pieces of a row of a tile of W that is not turned
    extern __shared__ __align__(128) u8 memory[];
    await_earlier_and_let_come();
    u32 shared = shared_address(memory), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 row = blockIdx.y * BM, column = blockIdx.x * BN;
    u32 m = warp / WN * (BM / WM), n = warp % WN * (BN / WN);
    const bf16* x = (const bf16*)job.x;
    const bf16* weight = (const bf16*)job.weight;
    float sums[TM][2 * TN][4] = {};

    u32 tiles = (job.inputs + DEPTH - 1) / DEPTH;
    auto fetch_stage = [&](u32 tile) {
        if (tile < tiles) {
            u32 at = tile % STAGES * STAGE, k = tile * DEPTH;
            fetch<BM, 8, THREADS, ALIGNED>(shared + at, memory + at, x, row, job.rows, k, job.inputs);
            at += LEFT;
            if (TURNED) fetch<BN, 8, THREADS, ALIGNED>(shared + at, memory + at, weight, column, job.outputs, k, job.inputs);
            else fetch<DEPTH, WIDE, THREADS, ALIGNED>(shared + at, memory + at, weight, k, job.inputs, column, job.outputs);
        }
        end_copies();
    };
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_stage(tile);
    for (u32 tile = 0; tile < tiles; tile++) {
        wait_for_copies_but<STAGES - 2>();
        __syncthreads();
        // Its place is that of the tile before this one, which all warps are through with.
        fetch_stage(tile + STAGES - 1);
        u32 left = shared + tile % STAGES * STAGE, right = left + LEFT;
        #pragma unroll
        for (u32 k = 0; k < DEPTH; k += 16) {
            u32 a[TM][4], b[2 * TN][2];
            #pragma unroll
            for (u32 i = 0; i < TM; i++) {
                load_blocks(a[i], left + place<8>(m + i * 16 + (lane & 15), k / 8 + (lane >> 4)));
            }
            #pragma unroll
            for (u32 j = 0; j < TN; j++) {
                u32 four[4], at = n + j * 16;
                if (TURNED) {
                    load_blocks(four, right + place<8>(at + (lane & 15), k / 8 + (lane >> 4)));
                    b[2 * j][0] = four[0], b[2 * j][1] = four[2], b[2 * j + 1][0] = four[1], b[2 * j + 1][1] = four[3];
                } else {
                    load_turned_blocks(four, right + place<WIDE>(k + (lane & 15), at / 8 + (lane >> 4)));
                    b[2 * j][0] = four[0], b[2 * j][1] = four[1], b[2 * j + 1][0] = four[2], b[2 * j + 1][1] = four[3];
                }
            }
            #pragma unroll
            for (u32 i = 0; i < TM; i++) {
                #pragma unroll
                for (u32 j = 0; j < 2 * TN; j++) multiply(sums[i][j], a[i], b[j][0], b[j][1]);
            }
        }
    }

    #pragma unroll
    for (u32 i = 0; i < TM; i++) {
        #pragma unroll
        for (u32 j = 0; j < 2 * TN; j++) {
            u32 c = column + n + j * 8 + lane % 4 * 2;
            #pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 r = row + m + i * 16 + half * 8 + lane / 4;
                if (r < job.rows && c < job.outputs) finish(job, &sums[i][j][half * 2], r, c);
            }
        }
    }
}

#define PRODUCT(NAME, BM, BN, WM, WN, STAGES, ALIGNED)                                                                       \
    extern "C" __global__ void __launch_bounds__(WM * WN * 32) NAME(Job job) {                                               \
        product<BM, BN, WM, WN, STAGES, false, ALIGNED>(job);                                                                \
    }                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(WM * WN * 32) NAME##_turned(Job job) {                                      \
        product<BM, BN, WM, WN, STAGES, true, ALIGNED>(job);                                                                 \
    }
PRODUCT(large, 128, 128, 2, 4, 3, true)
PRODUCT(middle, 64, 64, 2, 2, 4, true)
PRODUCT(small, 16, 32, 1, 2, 8, true)
PRODUCT(uneven, 64, 64, 2, 2, 2, false)

// Singles: a thread has HEIGHT / 16 rows of 4 columns, a block HEIGHT x 64.
template <u32 HEIGHT, bool TURNED> __device__ __forceinline__ void product_of_singles(const Job& job) {
    const u32 STEP = 16, WIDTH = 64, OWN = HEIGHT / 16;
    __shared__ float left[STEP][HEIGHT + 4], right[STEP][WIDTH + 4];
    await_earlier_and_let_come();
    const float* x = (const float*)job.x;
    const float* weight = (const float*)job.weight;
    u32 row = blockIdx.y * HEIGHT, column = blockIdx.x * WIDTH;
    u32 own_row = threadIdx.x / 16 * OWN, own_column = threadIdx.x % 16 * 4;
    float sums[OWN][4] = {};
    for (u32 k = 0; k < job.inputs; k += STEP) {
        for (u32 i = threadIdx.x; i < HEIGHT * STEP; i += 256) {
            u32 r = i / STEP, d = i % STEP;
            left[d][r] = row + r < job.rows && k + d < job.inputs ? x[(u64)(row + r) * job.inputs + k + d] : 0.0f;
        }
        for (u32 i = threadIdx.x; i < WIDTH * STEP; i += 256) {
            u32 c = TURNED ? i / STEP : i % WIDTH, d = TURNED ? i % STEP : i / WIDTH;
            bool real = column + c < job.outputs && k + d < job.inputs;
            u64 at = TURNED ? (u64)(column + c) * job.inputs + k + d : (u64)(k + d) * job.outputs + column + c;
            right[d][c] = real ? weight[at] : 0.0f;
        }
        __syncthreads();
        #pragma unroll
        for (u32 d = 0; d < STEP; d++) {
            #pragma unroll
            for (u32 i = 0; i < OWN; i++) {
                #pragma unroll
                for (u32 j = 0; j < 4; j++) sums[i][j] = fmaf(left[d][own_row + i], right[d][own_column + j], sums[i][j]);
            }
        }
        __syncthreads();
    }
    float* y = (float*)job.y;
    #pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        #pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 r = row + own_row + i, c = column + own_column + j;
            if (r < job.rows && c < job.outputs) {
                float sum = sums[i][j] + (job.bias ? job.bias[c] : 0.0f);
                y[(u64)r * job.outputs + c] = activated(sum, job.activation);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) singles(Job job) { product_of_singles<64, false>(job); }
extern "C" __global__ void __launch_bounds__(256) singles_turned(Job job) { product_of_singles<64, true>(job); }
extern "C" __global__ void __launch_bounds__(256) few_singles(Job job) { product_of_singles<16, false>(job); }
extern "C" __global__ void __launch_bounds__(256) few_singles_turned(Job job) { product_of_singles<16, true>(job); }
