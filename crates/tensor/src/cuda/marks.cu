// What top-k knows of every 64 neighbouring scores of a row, its mark: the largest of them, and the sum of the powers of what they are
// more than that. Whoever computes scores can mark them on the way: marks are the same wherever they are made, to the bit.

const u32 MARKED = 64;      // scores of a mark

#define MINUS_INFINITY __int_as_float(0xff800000)

// e^x for x no larger than 0: off by less than a millionth of itself while it is not negligible.
__device__ __forceinline__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
}

// Sixteen neighbouring lanes have four neighbouring scores each; in the place of what lies behind the end of a row they have minus
// infinity. All of them get the mark.
__device__ __forceinline__ float2 mark_of(const float* four) {
    u32 half = 0xffffu << (threadIdx.x & 16);
    float top = fmaxf(fmaxf(four[0], four[1]), fmaxf(four[2], four[3]));
    for (u32 step = 8; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(half, top, step));
    // Less than nothing is nothing: -inf less itself would be no number.
    float less = top == MINUS_INFINITY ? 0.0f : top;
    float sum = (power(four[0] - less) + power(four[1] - less)) + (power(four[2] - less) + power(four[3] - less));
    for (u32 step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(half, sum, step);
    return make_float2(top, sum);
}

// As above for scores of a row from `column` on, of which there are `width`: the first of the lanes stores the mark.
__device__ __forceinline__ void mark(const float* four, u32 column, u32 width, float2* to) {
    float scores[4];
    #pragma unroll
    for (u32 e = 0; e < 4; e++) scores[e] = column + e < width ? four[e] : MINUS_INFINITY;
    float2 mark = mark_of(scores);
    if (column % MARKED == 0 && column < width) *to = mark;
}
