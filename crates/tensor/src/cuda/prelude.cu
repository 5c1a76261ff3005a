// Prepended to every source: NVRTC has no headers, so element types, random draws and reductions are defined
// here.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// bf16 is the upper half of an f32.
struct bf16 { u16 bits; };

__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

// Rounds to nearest even, as on the CPU.
__device__ __forceinline__ bf16 to_bf16(float x) {
    bf16 y;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
__device__ __forceinline__ u32 pack_bf16(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
__device__ __forceinline__ float low_of(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

template <class T> __device__ __forceinline__ T narrow(float x);
template <> __device__ __forceinline__ float narrow<float>(float x) { return x; }
template <> __device__ __forceinline__ bf16 narrow<bf16>(float x) { return to_bf16(x); }

// The draws of random/definition.rs, bit for bit.
struct Dropout {
    u32 low, high;      // the key
    u32 threshold;      // 0: nothing is dropped
    float scale;
};

// Programmatic dependent launch: kernels of modules with PDL (module.rs) may start while the previous kernel
// still runs, and wait for its end before they touch memory.
__device__ __forceinline__ void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// For a kernel that leaves multiprocessors room for the next one: lets that start as soon as all blocks of
// this one have started.
__device__ __forceinline__ void launch_dependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void launch_dependents_and_wait() {
    launch_dependents();
    grid_dependency_wait();
}

// The dropout argument of a kernel; no dropout for a null pointer.
__device__ __forceinline__ Dropout dropout_of(const Dropout* given) {
    if (given) return *given;
    Dropout none = {0, 0, 0, 1.0f};
    return none;
}

__device__ __forceinline__ u32 draw(u32 low, u32 high, u32 index) {
    u32 x = index * 0x9E3779B1u ^ low;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x += high;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    x *= 0x9E3779B1u;
    return x ^ (x >> 15);
}

// The dropout factor of element `index`: 0 or 1 / (1 - rate). Two neighbours share a draw.
__device__ __forceinline__ float factor(const Dropout& d, u64 index) {
    u32 bits = draw(d.low, d.high, (u32)(index >> 1));
    u32 sixteen = (bits >> (((u32)index & 1u) * 16u)) & 0xffffu;
    return sixteen < d.threshold ? 0.0f : d.scale;
}

// i / by: 32-bit divisions are several times as fast, and nearly all indices fit.
__device__ __forceinline__ u64 quotient(u64 i, u32 by) { return i >> 32 ? i / by : (u32)i / by; }
__device__ __forceinline__ u32 modulo(u64 i, u32 by) { return (u32)(i - quotient(i, by) * by); }

// Reductions over a warp in a fixed order; every lane gets the result.
__device__ __forceinline__ float warp_sum(float x) {
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// A reduction over a block of 256 threads, in a fixed order; every thread gets the result.
template <class Join> __device__ __forceinline__ float over_block(float x, Join join) {
    __shared__ float warps[8];
    for (int step = 16; step > 0; step >>= 1) x = join(x, __shfl_xor_sync(0xffffffffu, x, step));
    __syncthreads();            // a thread may still read the results of the previous call
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = warps[0];
    for (int i = 1; i < 8; i++) x = join(x, warps[i]);
    return x;
}
__device__ __forceinline__ float sum_of_block(float x) {
    return over_block(x, [](float a, float b) { return a + b; });
}
__device__ __forceinline__ float max_of_block(float x) {
    return over_block(x, [](float a, float b) { return fmaxf(a, b); });
}

// Loads and stores of four neighbouring elements; the index must be a multiple of four.
__device__ __forceinline__ void load4(const float* from, float* x) {
    float4 v = *(const float4*)from;
    x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
}
__device__ __forceinline__ void load4(const bf16* from, float* x) {
    uint2 v = *(const uint2*)from;
    x[0] = low_of(v.x), x[1] = high_of(v.x), x[2] = low_of(v.y), x[3] = high_of(v.y);
}
// Eight elements.
__device__ __forceinline__ void load8(const float* from, float* x) { load4(from, x), load4(from + 4, x + 4); }
__device__ __forceinline__ void load8(const bf16* from, float* x) {
    uint4 v = *(const uint4*)from;
    x[0] = low_of(v.x), x[1] = high_of(v.x), x[2] = low_of(v.y), x[3] = high_of(v.y);
    x[4] = low_of(v.z), x[5] = high_of(v.z), x[6] = low_of(v.w), x[7] = high_of(v.w);
}
__device__ __forceinline__ void store4(float* to, const float* x) { *(float4*)to = make_float4(x[0], x[1], x[2], x[3]); }
__device__ __forceinline__ void store4(bf16* to, const float* x) {
    *(uint2*)to = make_uint2(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]));
}

// The dropout factors of four neighbours from an even index on: two draws.
__device__ __forceinline__ void factors4(const Dropout& d, u64 first, float* f) {
    u32 a = draw(d.low, d.high, (u32)(first >> 1)), b = draw(d.low, d.high, (u32)(first >> 1) + 1);
    f[0] = (a & 0xffffu) < d.threshold ? 0.0f : d.scale;
    f[1] = (a >> 16) < d.threshold ? 0.0f : d.scale;
    f[2] = (b & 0xffffu) < d.threshold ? 0.0f : d.scale;
    f[3] = (b >> 16) < d.threshold ? 0.0f : d.scale;
}
