// y = LayerNorm(x + a W + b): the sums of hopper.cu, all outputs of some rows side by side in the blocks of a cluster. When all of them
// have staged theirs, each block takes some of the rows out of the shared memory of all, and does with them what norm/ does with rows
// in memory, to the bit.

// As in normed.rs.
struct NormedJob {
    Job product;
    NormForward norm;
};

// Four neighbouring numbers in the shared memory of any block of the cluster.
__device__ __forceinline__ void load4_far(u32 from, float* x) {
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(from)
                 : "memory");
}

template <u32 OUTPUTS, u32 ROWS, u32 STAGES, int QUADS> __device__ __forceinline__ void normed(const NormedJob& job) {
    extern __shared__ __align__(1024) u8 memory[];
    const u32 WARPS = OUTPUTS / 16;
    u32 blocks = job.product.outputs / OUTPUTS, own = blockIdx.x % blocks, row = blockIdx.x / blocks * ROWS;
    stage_sums<OUTPUTS, ROWS, STAGES, false>(job.product, row, own * OUTPUTS, memory);
    cluster_barrier();
    u32 shared = shared_address(memory);
    for (u32 r = threadIdx.x / 32 * blocks + own; r < ROWS && row + r < job.product.rows; r += WARPS * blocks) {
        normalize<bf16, QUADS>(job.norm, row + r, [&](u32 column, float* z) {
            if (column >= job.product.outputs) return;
            float added[4], bias[4] = {};
            u32 place = (column % OUTPUTS / 64 * ROWS + r) * STRIDE + column % 64;
            load4_far(place_in(shared + place * 4, column / OUTPUTS), added);
            if (job.product.bias) load4(job.product.bias + column, bias);
            // A sublayer's result is bf16.
            for (int j = 0; j < 4; j++) z[j] += widen(to_bf16(added[j] + bias[j]));
        });
    }
    // Other blocks read here until they arrive.
    cluster_barrier();
}

// QUADS times 128 outputs are the most.
#define NORMED(OUTPUTS, ROWS, STAGES, RESIDENT, QUADS)                                                                       \
    extern "C" __global__ void __launch_bounds__(OUTPUTS * 2, RESIDENT) normed_##OUTPUTS##x##ROWS##_##QUADS(NormedJob job) { \
        normed<OUTPUTS, ROWS, STAGES, QUADS>(job);                                                                           \
    }
NORMED(128, 128, 3, 2, 4)
NORMED(128, 128, 3, 2, 8)
NORMED(128, 64, 4, 2, 4)
NORMED(128, 64, 4, 2, 8)
NORMED(64, 64, 4, 3, 4)
NORMED(64, 32, 4, 4, 4)
NORMED(64, 16, 9, 2, 4)
NORMED(64, 8, 9, 2, 4)
