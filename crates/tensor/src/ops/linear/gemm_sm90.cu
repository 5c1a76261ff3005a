// Batch-invariant GEMM, y = f(x W + b), as in gemm_decode.cu, with the warpgroup MMA (wgmma) of Hopper.
//
// It computes yᵀ: a warpgroup has 64 outputs, which are the M dimension of wgmma, and the rows of x are its N
// dimension, a multiple of 8, so that few rows cost little. A sum is one chain of MMAs over 16 elements of k
// each, in order, from the first stage of 64 to the last, in every tile size: a row has the same bits
// whatever the other rows.
//
// Stages are filled by asynchronous copies. While the MMAs of one stage run, the stage before is refilled:
// that takes a second barrier, and keeps all stages but one in flight.

const u32 DEPTH = 64;               // elements of k in a stage
const u32 ROW = DEPTH * 2;          // bytes of a slab's row
const u32 SLAB = 64 * ROW;          // bytes of 64 outputs
const u32 STRIDE = 64 + 4;          // floats from one row of staged sums to the next: padded against bank conflicts

// Copies one operand, stage after stage: a thread copies 16-byte chunks, one in every STEP rows. A stage has
// HEIGHT rows in each of SLABS slabs. Elements outside the matrix become zero.
template <u32 HEIGHT, u32 SLABS, u32 THREADS> struct TileCopy {
    static const u32 CHUNKS = ROW / 16;
    static const u32 STEP = THREADS / CHUNKS;   // a multiple of 8: all chunks of a thread have the same swizzle
    const bf16* from;       // the thread's first chunk of the next stage
    u32 rows, columns;      // of the matrix, remaining from there
    u32 width;              // of the matrix
    u32 offset;             // of the thread's first chunk in a slab

    // Begins at a row and column of a matrix.
    __device__ __forceinline__ TileCopy(const void* matrix, u32 height, u32 width, u32 row, u32 column) : width(width) {
        u32 first = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
        row += first, column += chunk * 8;
        from = (const bf16*)matrix + (u64)row * width + column;
        rows = height > row ? height - row : 0;
        columns = width > column ? width - column : 0;
        offset = first * ROW + (chunk ^ (first & 7)) * 16;
    }

    __device__ __forceinline__ void copy(u32 to) const {
        #pragma unroll
        for (u32 slab = 0; slab < SLABS; slab++) {
            bool inside = slab * 64 < columns;
            #pragma unroll
            for (u32 r = 0; r < HEIGHT; r += STEP) {
                if (HEIGHT % STEP && threadIdx.x / CHUNKS + r >= HEIGHT) continue;
                copy16(to + offset + slab * SLAB + r * ROW, from + slab * 64 + (u64)width * r, inside && r < rows);
            }
        }
    }

    // Moves to the next stage.
    __device__ __forceinline__ void advance(u32 down, u32 right) {
        from += (u64)width * down + right;
        rows = rows > down ? rows - down : 0;
        columns = columns > right ? columns - right : 0;
    }
};
// For W as inputs x outputs, and TRANSPOSED.
template <u32 OUTPUTS, bool TRANSPOSED> struct WeightCopy { typedef TileCopy<DEPTH, OUTPUTS / 64, OUTPUTS * 2> Type; };
template <u32 OUTPUTS> struct WeightCopy<OUTPUTS, true> { typedef TileCopy<OUTPUTS, 1, OUTPUTS * 2> Type; };

// Stores four neighbouring outputs of a row, if they exist.
template <class T> __device__ __forceinline__ void store_four(T* to, const float* four, u32 output, u32 outputs) {
    if (outputs % 4 == 0) return store4(to, four);
    for (u32 e = 0; e < 4 && output + e < outputs; e++) to[e] = narrow<T>(four[e]);
}

// The epilogue of the sums that a warpgroup has staged: ROWS rows of 64 outputs, stored from `row` and
// `output` of y on. A thread has four outputs of several rows in flight.
template <u32 ROWS, class T> __device__ __forceinline__ void epilogue(const GemmArgs& args, const float* staged, u32 row, u32 output) {
    const u32 LANES = 64 / 4;       // threads of a row
    const u32 STEP = 128 / LANES, BATCH = ROWS >= 4 * STEP ? 4 : 1;
    static_assert(BATCH == 1 || ROWS % (BATCH * STEP) == 0, "rows are a multiple of a batch");
    u32 thread = threadIdx.x % 128, first = thread % LANES * 4;
    output += first;
    bool is_inside = output < args.outputs;
    if (!is_inside && !args.block_stats) return;
    float bias[4] = {};
    if (args.bias) {
        for (u32 e = 0; e < 4 && output + e < args.outputs; e++) bias[e] = args.bias[output + e];
    }
    for (u32 r = thread / LANES; r < ROWS && row + r < args.rows; r += BATCH * STEP) {
        float four[BATCH][4];
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) load4(staged + (r + b * STEP) * STRIDE + first, four[b]);
        #pragma unroll
        for (u32 i = 0; i < BATCH * 4; i++) four[i / 4][i % 4] = activated(four[i / 4][i % 4] + bias[i % 4], args.activation);
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) {
            u64 at = (u64)(row + r + b * STEP) * args.outputs + output;
            if (is_inside && row + r + b * STEP < args.rows) store_four((T*)args.y + at, four[b], output, args.outputs);
        }
        if (sizeof(T) < 4 || !args.block_stats) continue;
        u32 blocks = (args.outputs + STATS_BLOCK - 1) / STATS_BLOCK;
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) {
            u32 at = row + r + b * STEP;
            // All lanes take part in the shuffles; a width of 0 keeps rows outside the matrix from being
            // written.
            write_block_stats(four[b], output, at < args.rows ? args.outputs : 0, args.block_stats + (u64)at * blocks + output / STATS_BLOCK);
        }
    }
}

// A block computes OUTPUTS x ROWS sums. TRANSPOSED: W is outputs x inputs.
template <u32 OUTPUTS, u32 ROWS, u32 STAGES, bool TRANSPOSED> __device__ __forceinline__ void gemm(const GemmArgs& args) {
    const u32 GROUPS = OUTPUTS / 64, LEFT = GROUPS * SLAB, STAGE = LEFT + ROWS * ROW;
    static_assert(GROUPS * ROWS * STRIDE * 4 <= STAGES * STAGE, "sums are staged in the memory of the slabs");
    extern __shared__ __align__(1024) u8 memory[];
    launch_dependents();
    u32 shared = shared_address(memory), group = threadIdx.x / 128;
    u32 row = blockIdx.x * ROWS, output = blockIdx.y * OUTPUTS;
    TileCopy<ROWS, 1, OUTPUTS * 2> x(args.x, args.rows, args.inputs, row, 0);
    typedef typename WeightCopy<OUTPUTS, TRANSPOSED>::Type Weight;
    Weight weight = TRANSPOSED ? Weight(args.weight, args.outputs, args.inputs, output, 0)
                               : Weight(args.weight, args.inputs, args.outputs, 0, output);
    float sums[ROWS / 2] = {};

    u32 tiles = (args.inputs + DEPTH - 1) / DEPTH;
    auto fetch_weight = [&](u32 tile) {
        if (tile >= tiles) return;
        weight.copy(shared + tile % STAGES * STAGE);
        weight.advance(TRANSPOSED ? 0 : DEPTH, TRANSPOSED ? DEPTH : 0);
    };
    auto fetch_rows = [&](u32 tile) {
        if (tile < tiles) {
            x.copy(shared + tile % STAGES * STAGE + LEFT);
            x.advance(0, DEPTH);
        }
        end_copies();
    };
    // The previous kernel does not write weights: their first stages are loaded while it still runs.
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_weight(tile);
    grid_dependency_wait();
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_rows(tile);
    pin_registers(sums);
    auto multiply_stage = [&](u32 tile) {
        u32 at = shared + tile % STAGES * STAGE;
        u64 left = operand(at + group * SLAB), right = operand(at + LEFT);
        #pragma unroll
        for (u32 k = 0; k < DEPTH / 16; k++) {
            // 16 elements of k are 32 bytes of each row, or 16 rows.
            multiply<!TRANSPOSED>(sums, left + k * ((TRANSPOSED ? 32 : 16 * ROW) >> 4), right + k * (32 >> 4));
        }
    };
    // If all of k fits in the stages, one wait is enough for all of them: faster for few rows.
    if (STAGES > 4 && tiles < STAGES) {
        wait_for_copies_but<0>();
        make_visible_to_mma();
        __syncthreads();
        begin_mma();
        for (u32 tile = 0; tile < tiles; tile++) multiply_stage(tile);
        commit_mma();
        tiles = 0;
    }
    for (u32 tile = 0; tile < tiles; tile++) {
        wait_for_copies_but<STAGES - 2>();
        make_visible_to_mma();
        __syncthreads();
        begin_mma();
        multiply_stage(tile);
        commit_mma();
        // While these MMAs run, the stage before is refilled, once all warps have finished reading it.
        wait_for_mma_but<1>();
        __syncthreads();
        fetch_weight(tile + STAGES - 1);
        fetch_rows(tile + STAGES - 1);
    }
    wait_for_mma_but<0>();
    pin_registers(sums);
    __syncthreads();

    float* staged = (float*)memory + group * ROWS * STRIDE;
    u32 warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    #pragma unroll
    for (u32 i = 0; i < ROWS / 2; i++) {
        u32 r = i / 4 * 8 + lane % 4 * 2 + i % 2, own = warp * 16 + lane / 4 + i % 4 / 2 * 8;
        staged[r * STRIDE + own] = sums[i];
    }
    __syncthreads();
    if (args.is_y_f32) epilogue<ROWS, float>(args, staged, row, output + group * 64);
    else epilogue<ROWS, bf16>(args, staged, row, output + group * 64);
}

#define GEMM(OUTPUTS, ROWS, STAGES, RESIDENT)                                                                                \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) gemm_##OUTPUTS##x##ROWS##_nn(GemmArgs args) {        \
        gemm<OUTPUTS, ROWS, STAGES, false>(args);                                                                            \
    }                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) gemm_##OUTPUTS##x##ROWS##_nt(GemmArgs args) {        \
        gemm<OUTPUTS, ROWS, STAGES, true>(args);                                                                             \
    }
GEMM(128, 128, 3, 2)
GEMM(128, 64, 4, 2)
GEMM(64, 64, 4, 3)
GEMM(64, 32, 4, 4)
GEMM(64, 16, 9, 2)
GEMM(64, 8, 9, 2)
