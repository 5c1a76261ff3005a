// Block statistics of logits for top-k: for every 64 neighbouring logits of a row their maximum and their sum
// of exp(logit - maximum). A kernel that computes logits can write the statistics at the same time; they have
// the same bits wherever they are computed.

const u32 STATS_BLOCK = 64;      // logits of a block

#define MINUS_INFINITY __int_as_float(0xff800000)

// e^x for x <= 0, with a relative error below 1e-6 unless the result is negligible.
__device__ __forceinline__ float fast_exp(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

// The statistics of one block: 16 neighbouring lanes hold four neighbouring logits each, and -inf past the
// end of the row. All of the lanes get the result.
__device__ __forceinline__ float2 block_stats_of(const float* four) {
    u32 half = 0xffffu << (threadIdx.x & 16);
    float top = fmaxf(fmaxf(four[0], four[1]), fmaxf(four[2], four[3]));
    for (u32 step = 8; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(half, top, step));
    // -inf - -inf would be NaN.
    float less = top == MINUS_INFINITY ? 0.0f : top;
    float sum = (fast_exp(four[0] - less) + fast_exp(four[1] - less)) + (fast_exp(four[2] - less) + fast_exp(four[3] - less));
    for (u32 step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(half, sum, step);
    return make_float2(top, sum);
}

// As above for logits of a row from `column` on, `width` in all: the first lane of a block stores its
// statistics.
__device__ __forceinline__ void write_block_stats(const float* four, u32 column, u32 width, float2* to) {
    float logits[4];
    #pragma unroll
    for (u32 e = 0; e < 4; e++) logits[e] = column + e < width ? four[e] : MINUS_INFINITY;
    float2 stats = block_stats_of(logits);
    if (column % STATS_BLOCK == 0 && column < width) *to = stats;
}
