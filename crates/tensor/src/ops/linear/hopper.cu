// y = f(x W + b) for one row as for thousands, as in few.cu, for GPUs with products of warpgroups.
//
// In every tile a warpgroup has 64 outputs, which are the rows of its product, and the rows of x are its columns: a multiple of 8,
// so that few rows cost little. A sum is one chain of products of 16 numbers of k each, in order, from the first slab of 64 to the
// last, whatever tile it lies in: the bits of a row are the same among any others.
//
// Slabs arrive by copies that nobody waits for. While the products of one stage are under way, the stage before is filled again: that
// takes a second barrier, and leaves all stages but one to what is on its way.

const u32 DEPTH = 64;               // numbers of k of a stage
const u32 ROW = DEPTH * 2;          // bytes of a slab's row
const u32 SLAB = 64 * ROW;          // bytes of 64 outputs
const u32 STRIDE = 64 + 4;          // numbers from a row of staged sums to the next: what a warp writes lies in different banks

// A thread's share in copying one operand, stage after stage: pieces of 16 bytes, one in every STEP rows. A stage has HEIGHT rows, in
// each of SLABS slabs. What lies outside the matrix is zero.
template <u32 HEIGHT, u32 SLABS, u32 THREADS> struct Share {
    static const u32 PIECES = ROW / 16;
    static const u32 STEP = THREADS / PIECES;   // a multiple of 8: all of a thread's pieces are exchanged alike
    const bf16* from;       // its first piece of the next stage
    u32 rows, columns;      // how many there are in the matrix from there on
    u32 width;              // of the matrix
    u32 place;              // of its first piece in a slab

    // Begins at a row and column of a matrix.
    __device__ __forceinline__ Share(const void* matrix, u32 height, u32 width, u32 row, u32 column) : width(width) {
        u32 first = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
        row += first, column += piece * 8;
        from = (const bf16*)matrix + (u64)row * width + column;
        rows = height > row ? height - row : 0;
        columns = width > column ? width - column : 0;
        place = first * ROW + (piece ^ (first & 7)) * 16;
    }

    __device__ __forceinline__ void copy(u32 to) const {
        #pragma unroll
        for (u32 slab = 0; slab < SLABS; slab++) {
            bool inside = slab * 64 < columns;
            #pragma unroll
            for (u32 r = 0; r < HEIGHT; r += STEP) {
                if (HEIGHT % STEP && threadIdx.x / PIECES + r >= HEIGHT) continue;
                copy16(to + place + slab * SLAB + r * ROW, from + slab * 64 + (u64)width * r, inside && r < rows);
            }
        }
    }

    // To what lies so many rows below and so many columns to the right.
    __device__ __forceinline__ void go_on(u32 down, u32 right) {
        from += (u64)width * down + right;
        rows = rows > down ? rows - down : 0;
        columns = columns > right ? columns - right : 0;
    }
};
// W as it is, and turned.
template <u32 OUTPUTS, bool TURNED> struct ShareOfWeight { typedef Share<DEPTH, OUTPUTS / 64, OUTPUTS * 2> Type; };
template <u32 OUTPUTS> struct ShareOfWeight<OUTPUTS, true> { typedef Share<OUTPUTS, 1, OUTPUTS * 2> Type; };

// Stores four neighbouring outputs of a row, as far as there are.
template <class T> __device__ __forceinline__ void put(T* to, const float* four, u32 output, u32 outputs) {
    if (outputs % 4 == 0) return store4(to, four);
    for (u32 e = 0; e < 4 && output + e < outputs; e++) to[e] = narrow<T>(four[e]);
}

// Stores what the warpgroup has staged: ROWS rows of 64 outputs, from `row` and `output` of y on. A thread has four outputs of
// several rows under way at once.
template <u32 ROWS, class T> __device__ __forceinline__ void finish(const Job& job, const float* staged, u32 row, u32 output) {
    const u32 LANES = 64 / 4;       // threads of a row
    const u32 STEP = 128 / LANES, BATCH = ROWS >= 4 * STEP ? 4 : 1;
    static_assert(BATCH == 1 || ROWS % (BATCH * STEP) == 0, "a batch is whole");
    u32 thread = threadIdx.x % 128, first = thread % LANES * 4;
    output += first;
    bool is_there = output < job.outputs;
    if (!is_there && !job.marks) return;
    float bias[4] = {};
    if (job.bias) {
        for (u32 e = 0; e < 4 && output + e < job.outputs; e++) bias[e] = job.bias[output + e];
    }
    for (u32 r = thread / LANES; r < ROWS && row + r < job.rows; r += BATCH * STEP) {
        float four[BATCH][4];
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) load4(staged + (r + b * STEP) * STRIDE + first, four[b]);
        #pragma unroll
        for (u32 i = 0; i < BATCH * 4; i++) four[i / 4][i % 4] = activated(four[i / 4][i % 4] + bias[i % 4], job.activation);
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) {
            u64 at = (u64)(row + r + b * STEP) * job.outputs + output;
            if (is_there && row + r + b * STEP < job.rows) put((T*)job.y + at, four[b], output, job.outputs);
        }
        if (sizeof(T) < 4 || !job.marks) continue;
        u32 marks = (job.outputs + MARKED - 1) / MARKED;
        #pragma unroll
        for (u32 b = 0; b < BATCH; b++) {
            u32 at = row + r + b * STEP;
            // Lanes of a row go on together; those of a row that is not there write nothing.
            mark(four[b], output, at < job.rows ? job.outputs : 0, job.marks + (u64)at * marks + output / MARKED);
        }
    }
}

// A block computes OUTPUTS x ROWS sums. TURNED: W lies as outputs x inputs.
template <u32 OUTPUTS, u32 ROWS, u32 STAGES, bool TURNED> __device__ __forceinline__ void product(const Job& job) {
    const u32 GROUPS = OUTPUTS / 64, LEFT = GROUPS * SLAB, STAGE = LEFT + ROWS * ROW;
    static_assert(GROUPS * ROWS * STRIDE * 4 <= STAGES * STAGE, "sums are staged where slabs were");
    extern __shared__ __align__(1024) u8 memory[];
    let_come();
    u32 shared = shared_address(memory), group = threadIdx.x / 128;
    u32 row = blockIdx.x * ROWS, output = blockIdx.y * OUTPUTS;
    Share<ROWS, 1, OUTPUTS * 2> x(job.x, job.rows, job.inputs, row, 0);
    typedef typename ShareOfWeight<OUTPUTS, TURNED>::Type Weight;
    Weight weight = TURNED ? Weight(job.weight, job.outputs, job.inputs, output, 0)
                           : Weight(job.weight, job.inputs, job.outputs, 0, output);
    float sums[ROWS / 2] = {};

    u32 tiles = (job.inputs + DEPTH - 1) / DEPTH;
    auto fetch_weight = [&](u32 tile) {
        if (tile >= tiles) return;
        weight.copy(shared + tile % STAGES * STAGE);
        weight.go_on(TURNED ? 0 : DEPTH, TURNED ? DEPTH : 0);
    };
    auto fetch_rows = [&](u32 tile) {
        if (tile < tiles) {
            x.copy(shared + tile % STAGES * STAGE + LEFT);
            x.go_on(0, DEPTH);
        }
        end_copies();
    };
    // No kernel just before this one writes weights: the first of them come while it is at work.
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_weight(tile);
    await_earlier();
    for (u32 tile = 0; tile + 1 < STAGES; tile++) fetch_rows(tile);
    hold(sums);
    auto multiply_stage = [&](u32 tile) {
        u32 at = shared + tile % STAGES * STAGE;
        u64 left = operand(at + group * SLAB), right = operand(at + LEFT);
        #pragma unroll
        for (u32 k = 0; k < DEPTH / 16; k++) {
            // 16 numbers of k are a part of each row, or 16 rows.
            multiply<!TURNED>(sums, left + k * ((TURNED ? 32 : 16 * ROW) >> 4), right + k * (32 >> 4));
        }
    };
    // Where all of k is on its way, no stage has to be waited for by itself: few rows gain by that.
    if (STAGES > 4 && tiles < STAGES) {
        wait_for_copies_but<0>();
        show_to_products();
        __syncthreads();
        begin_products();
        for (u32 tile = 0; tile < tiles; tile++) multiply_stage(tile);
        end_products();
        tiles = 0;
    }
    for (u32 tile = 0; tile < tiles; tile++) {
        wait_for_copies_but<STAGES - 2>();
        show_to_products();
        __syncthreads();
        begin_products();
        multiply_stage(tile);
        end_products();
        // While these are under way, the place of the tile before is filled again, when all warps are through with it.
        wait_for_products_but<1>();
        __syncthreads();
        fetch_weight(tile + STAGES - 1);
        fetch_rows(tile + STAGES - 1);
    }
    wait_for_products_but<0>();
    hold(sums);
    __syncthreads();

    float* staged = (float*)memory + group * ROWS * STRIDE;
    u32 warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
    #pragma unroll
    for (u32 i = 0; i < ROWS / 2; i++) {
        u32 r = i / 4 * 8 + lane % 4 * 2 + i % 2, own = warp * 16 + lane / 4 + i % 4 / 2 * 8;
        staged[r * STRIDE + own] = sums[i];
    }
    __syncthreads();
    if (job.is_wide) finish<ROWS, float>(job, staged, row, output + group * 64);
    else finish<ROWS, bf16>(job, staged, row, output + group * 64);
}

#define PRODUCT(OUTPUTS, ROWS, STAGES, RESIDENT)                                                                             \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) product_##OUTPUTS##x##ROWS(Job job) {                \
        product<OUTPUTS, ROWS, STAGES, false>(job);                                                                          \
    }                                                                                                                        \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) product_##OUTPUTS##x##ROWS##_turned(Job job) {       \
        product<OUTPUTS, ROWS, STAGES, true>(job);                                                                           \
    }
PRODUCT(128, 128, 3, 2)
PRODUCT(128, 64, 4, 2)
PRODUCT(64, 64, 4, 3)
PRODUCT(64, 32, 4, 4)
PRODUCT(64, 16, 9, 2)
PRODUCT(64, 8, 9, 2)
