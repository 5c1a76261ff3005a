// y = f(x W + b) for many rows: the chains of sums of hopper.cu in larger tiles, 256 outputs x TALL rows by two blocks.
//
// A warp of its own asks for boxes of x and W (boxes.cu), two warpgroups of 64 outputs each multiply them: nobody waits for the whole
// block. A stage has two barriers. `full`: its boxes are there. `empty`: every warp that multiplies is through with it.
//
// The two blocks are a cluster, with neighbouring outputs of the same rows. Each fetches half of the rows for both of them, so a stage
// is filled again only when it is empty in both. A cluster computes one tile after the other: the boxes of the next one are on their
// way while the sums of this one are stored.

const u32 BLOCKS = 2, GROUPS = 2;                   // of a cluster, and warpgroups of a block that multiply
const u32 DEPTH = 64;                               // numbers of k of a stage
const u32 ROW = DEPTH * 2;                          // bytes of a box's row
const u32 SLAB = 64 * ROW;                          // bytes of 64 outputs
const u32 WIDE = GROUPS * 64;                       // outputs of a block
const u32 STRIDE = 64 + 4;                          // numbers from a row of staged singles to the next: other banks for a warp
const u32 PART = 32 * STRIDE * 4;                   // bytes of results that a warpgroup stages at a time; it has room for two parts
const u32 LAG = 2;                                  // steps that the second warpgroup is behind: one multiplies while one stores

// Places in shared memory, in bytes.
template <u32 TALL, u32 STAGES> struct Places {
    static const u32 RIGHT = GROUPS * SLAB, STAGE = RIGHT + TALL * ROW;
    static const u32 STAGED = STAGES * STAGE;
    static const u32 FULL = STAGED + GROUPS * 2 * PART, EMPTY = FULL + STAGES * 8;

    static __device__ __forceinline__ u32 stage(u32 step) { return step % STAGES * STAGE; }
    static __device__ __forceinline__ u32 full(u32 step) { return FULL + step % STAGES * 8; }
    static __device__ __forceinline__ u32 empty(u32 step) { return EMPTY + step % STAGES * 8; }
    // Which phase of its barriers a step is.
    static __device__ __forceinline__ u32 parity(u32 step) { return step / STAGES % 2; }
};

// The tiles that a cluster computes, and their steps of 64 inputs, counted from the first step of the first one on.
template <u32 TALL> struct Way {
    u32 first, next;            // its first tile, and how far it is to the next
    u32 tall;                   // how many have the same outputs
    u32 depth, steps;           // of a tile and of all of them

    __device__ __forceinline__ Way(const Job& job) : first(blockIdx.x / BLOCKS), next(gridDim.x / BLOCKS) {
        tall = (job.rows + TALL - 1) / TALL, depth = (job.inputs + DEPTH - 1) / DEPTH;
        u32 tiles = tall * ((job.outputs + BLOCKS * WIDE - 1) / (BLOCKS * WIDE));
        steps = tiles > first ? (tiles - first + next - 1) / next * depth : 0;
    }
    // Rows come first: clusters that are under way together then share their part of W.
    __device__ __forceinline__ u32 row(u32 step) const { return (first + step / depth * next) % tall * TALL; }
    __device__ __forceinline__ u32 output(u32 step) const {
        return ((first + step / depth * next) / tall * BLOCKS + blockIdx.x % BLOCKS) * WIDE;
    }
    __device__ __forceinline__ u32 input(u32 step) const { return step % depth * DEPTH; }
};

// One thread.
template <u32 TALL, u32 STAGES, bool TURNED>
__device__ __forceinline__ void fetch_all(const Way<TALL>& way, u32 shared, const Map& x, const Map& weight) {
    typedef Places<TALL, STAGES> At;
    auto fetch_weight = [&](u32 step) {
        u32 to = shared + At::stage(step), full = shared + At::full(step), output = way.output(step), input = way.input(step);
        expect_bytes(full, At::STAGE);
        for (u32 group = 0; group < GROUPS; group++) {
            if (!TURNED) fetch_box(to + group * SLAB, weight, output + group * 64, input, full);
            else if (group == 0) fetch_box(to, weight, input, output, full);
        }
    };
    auto fetch_rows = [&](u32 step) {
        u32 to = shared + At::stage(step) + At::RIGHT, skipped = blockIdx.x % BLOCKS * (TALL / BLOCKS);
        fetch_box_for(3, to + skipped * ROW, x, way.input(step), way.row(step) + skipped, shared + At::full(step));
    };
    expect_boxes(weight);
    expect_boxes(x);
    // No kernel just before this one writes weights: the first of them come while it is at work.
    u32 begun = way.steps < STAGES ? way.steps : STAGES;
    for (u32 step = 0; step < begun; step++) fetch_weight(step);
    await_earlier();
    for (u32 step = 0; step < begun; step++) fetch_rows(step);
    for (u32 step = begun; step < way.steps; step++) {
        await_phase(shared + At::empty(step), At::parity(step - STAGES));
        fetch_weight(step);
        fetch_rows(step);
    }
}

// Makes results of a warpgroup's sums. A thread has two outputs, in turns of two sums.
template <u32 COUNT> __device__ __forceinline__ void finish(float (&sums)[COUNT], const float (&bias)[2], u32 activation) {
    #pragma unroll
    for (u32 i = 0; i < COUNT; i++) sums[i] += bias[i % 4 / 2];
    if (activation == 1) {
        #pragma unroll
        for (u32 i = 0; i < COUNT; i++) sums[i] = activated(sums[i], 1);
    } else if (activation) {
        #pragma unroll
        for (u32 i = 0; i < COUNT; i++) sums[i] = smooth_value(sums[i], activation);
    }
}

// Stores a piece of 16 bytes of every STEP-th row, from `row` and `output` of y on, as far as there are outputs and rows. Rows lie
// `stride` bytes apart where they are staged.
template <u32 PIECES, u32 STEP, class T>
__device__ __forceinline__ void put(const Job& job, const u8* from, u32 stride, u32 row, u32 output) {
    const u32 COUNT = 16 / sizeof(T);
    if (output >= job.outputs) return;
    uint4 pieces[PIECES];
    #pragma unroll
    for (u32 i = 0; i < PIECES; i++) pieces[i] = *(const uint4*)(from + i * STEP * stride);
    T* to = (T*)job.y + (u64)row * job.outputs + output;
    #pragma unroll
    for (u32 i = 0; i < PIECES; i++) {
        if (row + i * STEP >= job.rows) return;
        T* at = to + (u64)job.outputs * (i * STEP);
        if (job.outputs % COUNT == 0) {
            *(uint4*)at = pieces[i];
            continue;
        }
        #pragma unroll 1
        for (u32 e = 0; e < COUNT && output + e < job.outputs; e++) at[e] = ((const T*)(from + i * STEP * stride))[e];
    }
}

// Stages a part of a warpgroup's results, rows side by side, and stores it: 64 outputs of 32 rows as f32.
__device__ __forceinline__ void store_singles(const Job& job, const float* results, u8* staged, u32 row, u32 output) {
    u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    #pragma unroll
    for (u32 i = 0; i < 16; i++) {
        u32 r = i / 4 * 8 + lane % 4 * 2 + i % 2, own = warp * 16 + lane / 4 + i % 4 / 2 * 8;
        ((float*)staged)[r * STRIDE + own] = results[i];
    }
    barrier(1 + threadIdx.x / 128, 128);
    u32 piece = thread % 16, r = thread / 16;
    const u8* own = staged + r * STRIDE * 4 + piece * 16;
    row += r, output += piece * 4;
    put<4, 8, float>(job, own, STRIDE * 4, row, output);
    if (!job.marks) return;
    u32 marks = (job.outputs + MARKED - 1) / MARKED;
    #pragma unroll
    for (u32 i = 0; i < 4; i++) {
        float four[4];
        load4((const float*)(own + i * 8 * STRIDE * 4), four);
        u32 at = row + i * 8;
        mark(four, output, at < job.rows ? job.outputs : 0, job.marks + (u64)at * marks + output / MARKED);
    }
}
// 64 outputs of 64 rows as bf16.
__device__ __forceinline__ void store_halves(const Job& job, const float* results, u8* staged, u32 row, u32 output) {
    u32 thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
    // Pieces of a row are exchanged as in an operand: those that are written or read together lie in different banks.
    u32 to = shared_address(staged) + (lane / 16 * 8 + lane % 8) * ROW + ((warp * 2 + lane / 8 % 2) ^ lane % 8) * 16;
    #pragma unroll
    for (u32 i = 0; i < 32; i += 8) {
        const float* eight = results + i;
        u32 pairs[4] = {pack_bf16(eight[0], eight[1]), pack_bf16(eight[2], eight[3]), pack_bf16(eight[4], eight[5]),
                        pack_bf16(eight[6], eight[7])};
        store_turned_blocks(to + i / 8 * 16 * ROW, pairs);
    }
    barrier(1 + threadIdx.x / 128, 128);
    u32 piece = thread % 8, r = thread / 8;
    put<4, 16, bf16>(job, staged + r * ROW + (piece ^ r % 8) * 16, ROW, row + r, output + piece * 8);
}

// Two warpgroups.
template <u32 TALL, u32 STAGES, bool TURNED>
__device__ __forceinline__ void multiply_all(const Way<TALL>& way, const Job& job, u8* memory) {
    typedef Places<TALL, STAGES> At;
    u32 shared = shared_address(memory), group = threadIdx.x / 128, lane = threadIdx.x % 32;
    // A warp tells both blocks that it is through with a stage.
    auto release = [&](u32 step) {
        if (lane < BLOCKS) arrive_at(place_in(shared + At::empty(step), lane));
    };
    u8* staged = memory + At::STAGED + group * 2 * PART;
    u32 part = 0;
    if (group == 1 && way.steps > LAG) await_phase(shared + At::full(LAG), At::parity(LAG));
    for (u32 begin = 0; begin < way.steps; begin += way.depth) {
        u32 output = way.output(begin) + group * 64, own = output + threadIdx.x % 128 / 32 * 16 + lane / 4;
        float bias[2] = {};
        if (job.bias && own < job.outputs) bias[0] = job.bias[own];
        if (job.bias && own + 8 < job.outputs) bias[1] = job.bias[own + 8];
        float sums[TALL / 2] = {};
        hold(sums);
        for (u32 step = begin; step < begin + way.depth; step++) {
            await_phase(shared + At::full(step), At::parity(step));
            u32 at = shared + At::stage(step);
            u64 left = operand(at + group * SLAB), right = operand(at + At::RIGHT);
            begin_products();
            #pragma unroll
            for (u32 k = 0; k < DEPTH / 16; k++) {
                // 16 numbers of k are a part of each row, or 16 rows.
                multiply<!TURNED>(sums, left + k * ((TURNED ? 32 : 16 * ROW) >> 4), right + k * (32 >> 4));
            }
            end_products();
            wait_for_products_but<1>();
            if (step > begin) release(step - 1);
        }
        wait_for_products_but<0>();
        hold(sums);
        release(begin + way.depth - 1);

        finish(sums, bias, job.activation);
        // Whoever writes a part has met all others since they read what lay there.
        auto next_part = [&]() { return staged + (part++ % 2) * PART; };
        u32 row = way.row(begin);
        if (job.is_wide) {
            #pragma unroll
            for (u32 r = 0; r < TALL; r += 32) store_singles(job, sums + r / 2, next_part(), row + r, output);
        } else {
            #pragma unroll
            for (u32 r = 0; r < TALL; r += 64) store_halves(job, sums + r / 2, next_part(), row + r, output);
        }
    }
}

template <u32 TALL, u32 STAGES, bool TURNED>
__device__ __forceinline__ void product_of_boxes(const Job& job, const Map& x, const Map& weight) {
    extern __shared__ __align__(1024) u8 memory[];
    typedef Places<TALL, STAGES> At;
    let_come();
    u32 shared = shared_address(memory);
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; stage++) {
            begin_barrier_of(shared + At::full(stage), 1);
            begin_barrier_of(shared + At::empty(stage), BLOCKS * GROUPS * 4);
        }
        show_barriers();
    }
    cluster_barrier();
    Way<TALL> way(job);
    if (threadIdx.x < GROUPS * 128) {
        take_registers<232>();
        await_earlier();
        multiply_all<TALL, STAGES, TURNED>(way, job, memory);
    } else {
        leave_registers<40>();
        if (threadIdx.x == GROUPS * 128) fetch_all<TALL, STAGES, TURNED>(way, shared, x, weight);
    }
    // The other block writes here until it has ended.
    cluster_barrier();
}

#define PRODUCT_OF_BOXES(NAME, TALL, STAGES, TURNED)                                                                         \
    extern "C" __global__ void __launch_bounds__(GROUPS * 128 + 128, 1)                                                      \
        NAME(Job job, const __grid_constant__ Map x, const __grid_constant__ Map weight) {                                   \
        product_of_boxes<TALL, STAGES, TURNED>(job, x, weight);                                                              \
    }
PRODUCT_OF_BOXES(product_256x256, 256, 4, false)
PRODUCT_OF_BOXES(product_256x256_turned, 256, 4, true)
PRODUCT_OF_BOXES(product_256x192, 192, 4, false)
PRODUCT_OF_BOXES(product_256x192_turned, 192, 4, true)
PRODUCT_OF_BOXES(product_256x128, 128, 6, false)
PRODUCT_OF_BOXES(product_256x128_turned, 128, 6, true)
