// Batch-invariant GEMM, y = f(x W + b): a row has the same bits whatever the other rows. An output element is
// one chain of MMAs over 16 elements of k each, in order, in every tile size. So the host may choose the tile
// by the number of rows.
//
// bf16: tiles of 64 elements of k are copied to shared memory asynchronously, STAGES of them in flight.
// f32: one FMA after the other.

const u32 DEPTH = 64;   // elements of k in a tile

__device__ __forceinline__ void store2(float* to, const float* x) { *(float2*)to = make_float2(x[0], x[1]); }
__device__ __forceinline__ void store2(bf16* to, const float* x) { *(u32*)to = pack_bf16(x[0], x[1]); }

// Stores columns c and c + 1 of a row, if they exist.
template <class T> __device__ __forceinline__ void store_pair(T* to, const float* two, u32 c, u32 outputs) {
    if (outputs % 2 == 0) return store2(to, two);
    to[0] = narrow<T>(two[0]);
    if (c + 1 < outputs) to[1] = narrow<T>(two[1]);
}

// The epilogue of two neighbouring sums: bias, activation, store.
__device__ __forceinline__ void epilogue(const GemmArgs& args, const float* sums, u32 r, u32 c) {
    float two[2] = {sums[0], sums[1]};
    #pragma unroll
    for (u32 e = 0; e < 2; e++) {
        if (args.bias && c + e < args.outputs) two[e] += args.bias[c + e];
        two[e] = activated(two[e], args.activation);
    }
    u64 at = (u64)r * args.outputs + c;
    if (args.is_y_f32) store_pair((float*)args.y + at, two, c, args.outputs);
    else store_pair((bf16*)args.y + at, two, c, args.outputs);
}

// The offset of a 16-byte chunk in a tile whose rows have CHUNKS chunks, XOR-swizzled so that the chunks of
// one column of eight rows lie in different banks.
template <u32 CHUNKS> __device__ __forceinline__ u32 swizzled(u32 row, u32 chunk) {
    u32 mask = CHUNKS == 4 ? row >> 1 & 3 : row & 7;
    return (row * CHUNKS + (chunk ^ mask)) * 16;
}

// Copies a tile of HEIGHT rows of CHUNKS chunks from a `rows` x `width` matrix, beginning at row `row` and
// column `column`. Elements outside the matrix become zero.
template <u32 HEIGHT, u32 CHUNKS, u32 THREADS, bool ALIGNED>
__device__ __forceinline__ void fetch(u32 to, u8* memory, const bf16* from, u32 row, u32 rows, u32 column, u32 width) {
    for (u32 i = threadIdx.x; i < HEIGHT * CHUNKS; i += THREADS) {
        u32 r = i / CHUNKS, chunk = i % CHUNKS, c = column + chunk * 8;
        u32 at = swizzled<CHUNKS>(r, chunk);
        bool is_inside = row + r < rows && c < width;
        const bf16* source = from + (is_inside ? (u64)(row + r) * width + c : 0);
        if (ALIGNED) {
            copy16(to + at, source, is_inside);
        } else {
            bf16* target = (bf16*)(memory + at);
            for (u32 j = 0; j < 8; j++) {
                bf16 zero = {0};
                target[j] = is_inside && c + j < width ? source[j] : zero;
            }
        }
    }
}

// A block computes BM x BN sums; each of its WM x WN warps BM / WM x BN / WN of them. TRANSPOSED: W is
// outputs x inputs.
template <u32 BM, u32 BN, u32 WM, u32 WN, u32 STAGES, bool TRANSPOSED, bool ALIGNED>
__device__ __forceinline__ void gemm(const GemmArgs& args) {
    const u32 THREADS = WM * WN * 32, TM = BM / WM / 16, TN = BN / WN / 16;
    const u32 LEFT = BM * DEPTH * 2, RIGHT = BN * DEPTH * 2, STAGE = LEFT + RIGHT;
    const u32 ROW_CHUNKS = BN / 8;      // of a tile of W that is not transposed
    extern __shared__ __align__(128) u8 memory[];
    launch_dependents_and_wait();
    u32 shared = shared_address(memory), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 row = blockIdx.y * BM, column = blockIdx.x * BN;
    u32 m = warp / WN * (BM / WM), n = warp % WN * (BN / WN);
    const bf16* x = (const bf16*)args.x;
    const bf16* weight = (const bf16*)args.weight;
    float sums[TM][2 * TN][4] = {};

    u32 tiles = (args.inputs + DEPTH - 1) / DEPTH;
    auto fetch_stage = [&](u32 tile) {
        if (tile < tiles) {
            u32 at = tile % STAGES * STAGE, k = tile * DEPTH;
            fetch<BM, 8, THREADS, ALIGNED>(shared + at, memory + at, x, row, args.rows, k, args.inputs);
            at += LEFT;
            if (TRANSPOSED) fetch<BN, 8, THREADS, ALIGNED>(shared + at, memory + at, weight, column, args.outputs, k, args.inputs);
            else fetch<DEPTH, ROW_CHUNKS, THREADS, ALIGNED>(shared + at, memory + at, weight, k, args.inputs, column, args.outputs);
        }
        end_copies();
    };
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_stage(tile);
    for (u32 tile = 0; tile < tiles; tile++) {
        wait_for_copies_but<STAGES - 2>();
        __syncthreads();
        // It overwrites the tile before this one, which all warps have finished reading.
        fetch_stage(tile + STAGES - 1);
        u32 left = shared + tile % STAGES * STAGE, right = left + LEFT;
        #pragma unroll
        for (u32 k = 0; k < DEPTH; k += 16) {
            u32 a[TM][4], b[2 * TN][2];
            #pragma unroll
            for (u32 i = 0; i < TM; i++) {
                load_blocks(a[i], left + swizzled<8>(m + i * 16 + (lane & 15), k / 8 + (lane >> 4)));
            }
            #pragma unroll
            for (u32 j = 0; j < TN; j++) {
                u32 four[4], at = n + j * 16;
                if (TRANSPOSED) {
                    load_blocks(four, right + swizzled<8>(at + (lane & 15), k / 8 + (lane >> 4)));
                    b[2 * j][0] = four[0], b[2 * j][1] = four[2], b[2 * j + 1][0] = four[1], b[2 * j + 1][1] = four[3];
                } else {
                    load_blocks_transposed(four, right + swizzled<ROW_CHUNKS>(k + (lane & 15), at / 8 + (lane >> 4)));
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
                if (r < args.rows && c < args.outputs) epilogue(args, &sums[i][j][half * 2], r, c);
            }
        }
    }
}

#define GEMM(NAME, BM, BN, WM, WN, STAGES, ALIGNED)                                                                          \
    extern "C" __global__ void __launch_bounds__(WM * WN * 32) NAME##_nn(GemmArgs args) {                                    \
        gemm<BM, BN, WM, WN, STAGES, false, ALIGNED>(args);                                                                  \
    }                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(WM * WN * 32) NAME##_nt(GemmArgs args) {                                    \
        gemm<BM, BN, WM, WN, STAGES, true, ALIGNED>(args);                                                                   \
    }
GEMM(bf16_128x128, 128, 128, 2, 4, 3, true)
GEMM(bf16_64x64, 64, 64, 2, 2, 4, true)
GEMM(bf16_16x32, 16, 32, 1, 2, 8, true)
GEMM(bf16_unaligned, 64, 64, 2, 2, 2, false)

// f32: a thread computes HEIGHT / 16 rows of 4 columns, a block HEIGHT x 64.
template <u32 HEIGHT, bool TRANSPOSED> __device__ __forceinline__ void gemm_f32(const GemmArgs& args) {
    const u32 STEP = 16, WIDTH = 64, OWN = HEIGHT / 16;
    __shared__ float left[STEP][HEIGHT + 4], right[STEP][WIDTH + 4];
    launch_dependents_and_wait();
    const float* x = (const float*)args.x;
    const float* weight = (const float*)args.weight;
    u32 row = blockIdx.y * HEIGHT, column = blockIdx.x * WIDTH;
    u32 own_row = threadIdx.x / 16 * OWN, own_column = threadIdx.x % 16 * 4;
    float sums[OWN][4] = {};
    for (u32 k = 0; k < args.inputs; k += STEP) {
        for (u32 i = threadIdx.x; i < HEIGHT * STEP; i += 256) {
            u32 r = i / STEP, d = i % STEP;
            left[d][r] = row + r < args.rows && k + d < args.inputs ? x[(u64)(row + r) * args.inputs + k + d] : 0.0f;
        }
        for (u32 i = threadIdx.x; i < WIDTH * STEP; i += 256) {
            u32 c = TRANSPOSED ? i / STEP : i % WIDTH, d = TRANSPOSED ? i % STEP : i / WIDTH;
            bool is_inside = column + c < args.outputs && k + d < args.inputs;
            u64 at = TRANSPOSED ? (u64)(column + c) * args.inputs + k + d : (u64)(k + d) * args.outputs + column + c;
            right[d][c] = is_inside ? weight[at] : 0.0f;
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
    float* y = (float*)args.y;
    #pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        #pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 r = row + own_row + i, c = column + own_column + j;
            if (r < args.rows && c < args.outputs) {
                float sum = sums[i][j] + (args.bias ? args.bias[c] : 0.0f);
                y[(u64)r * args.outputs + c] = activated(sum, args.activation);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) f32_64x64_nn(GemmArgs args) { gemm_f32<64, false>(args); }
extern "C" __global__ void __launch_bounds__(256) f32_64x64_nt(GemmArgs args) { gemm_f32<64, true>(args); }
extern "C" __global__ void __launch_bounds__(256) f32_16x64_nn(GemmArgs args) { gemm_f32<16, false>(args); }
extern "C" __global__ void __launch_bounds__(256) f32_16x64_nt(GemmArgs args) { gemm_f32<16, true>(args); }
