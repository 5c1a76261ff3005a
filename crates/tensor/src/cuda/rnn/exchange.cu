// How blocks that step the same sequences hand numbers to each other, within one launch and without a barrier: whoever needs a
// number reads it until it is there. Such memory is zero at first, and no number that is handed over is: +0 becomes -0, which
// products cannot tell apart. Every number has a place of its own at every step, so nothing is ever overwritten.
//
// All blocks of such a launch must be on the GPU at once: there are no more of them than multiprocessors.

__device__ __forceinline__ float handed(float x) { return __float_as_uint(x) == 0 ? -0.0f : x; }
__device__ __forceinline__ bf16 handed(bf16 x) {
    if (x.bits == 0) x.bits = 0x8000;
    return x;
}

__device__ __forceinline__ void give(float* to, float x) {
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(handed(x)) : "memory");
}
__device__ __forceinline__ void give(bf16* to, float x) {
    asm volatile("st.relaxed.gpu.global.b16 [%0], %1;" ::"l"(to), "h"(handed(to_bf16(x)).bits) : "memory");
}
// Two neighbours at once.
__device__ __forceinline__ u32 handed_pair(float x, float y) {
    return (u32)handed(to_bf16(x)).bits | (u32)handed(to_bf16(y)).bits << 16;
}
__device__ __forceinline__ void give_pair(bf16* to, float x, float y) {
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(to), "r"(handed_pair(x, y)) : "memory");
}

__device__ __forceinline__ float take(const float* from) {
    float x;
    do asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(x) : "l"(from) : "memory");
    while (__float_as_uint(x) == 0);
    return x;
}
__device__ __forceinline__ float take(const bf16* from) {
    bf16 x;
    do asm volatile("ld.relaxed.gpu.global.b16 %0, [%1];" : "=h"(x.bits) : "l"(from) : "memory");
    while (x.bits == 0);
    return widen(x);
}

// One look at 16 bytes, or zeros if `real` is false.
__device__ __forceinline__ void look16(u32 (&words)[4], const void* from, bool real) {
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.u32 p, %5, 0;\n mov.u32 %0, 0;\n mov.u32 %1, 0;\n mov.u32 %2, 0;\n mov.u32 %3, 0;\n"
        " @p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "=&r"(words[0]), "=&r"(words[1]), "=&r"(words[2]), "=&r"(words[3])
        : "l"(from), "r"((u32)real)
        : "memory");
}
__device__ __forceinline__ bool is_missing(const u32 (&words)[4]) {
    return words[0] == 0 || words[1] == 0 || words[2] == 0 || words[3] == 0;
}
