// Numbers of eight bits for products: what goes forward as e4m3, gradients as e5m2. Before it is rounded, a matrix is multiplied by
// a power of two, which costs no bit: a weight by one that suits its largest number, everything else by one that suited its largest
// numbers in the latest updates (delayed scaling), so that it is read once.

constexpr float E4M3 = 448.0f, E5M2 = 57344.0f;     // the largest numbers

// What is known of an operand: params/fp8.rs.
struct Slot {
    float factor, scale;    // what products multiply it by, and what it is multiplied by before: 1 / scale, scale
    int maximum;            // the bits of its largest magnitude in this step; negative if it was not met
    u32 unused;
    float history[16];      // those of the latest updates, the newest first; negative where there is none
};

// A weight, and where its rounded copies go.
struct Weight {
    u64 offset;             // in numbers, in the flat vector and in each copy
    u32 rows, width;        // multiples of 16
    u32 first;              // number of its first tile
    u32 index;              // of its scale
};

struct WeightScale {
    float factor;           // what products multiply it by
    int maximum;            // the bits of its largest magnitude
    u32 unused[2];
};

// The largest power of two that leaves a magnitude below a limit, within bounds that leave products of two factors finite; the same
// arithmetic as in params/fp8.rs.
__device__ __forceinline__ float power_of_two(float limit, float magnitude) {
    if (magnitude == 0.0f) return 1.0f;
    int exponent = (int)(__float_as_uint(limit / magnitude) >> 23) - 127;
    return __uint_as_float((u32)(127 + min(max(exponent, -60), 60)) << 23);
}

// Two numbers, rounded to nearest even; what is too large becomes the largest. No kernel of this file is launched where there are no
// products of such numbers.
struct E4m3 {
    static __device__ __forceinline__ u32 pair(float low, float high) {
#if __CUDA_ARCH__ >= 890
        u16 both;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
        return both;
#else
        __trap();
        return 0;
#endif
    }
};
struct E5m2 {
    static __device__ __forceinline__ u32 pair(float low, float high) {
#if __CUDA_ARCH__ >= 890
        u16 both;
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(both) : "f"(high), "f"(low));
        return both;
#else
        __trap();
        return 0;
#endif
    }
};

// Eight numbers of bf16, and what of them is wanted.
struct Eight {
    u32 words[4];
    __device__ __forceinline__ explicit Eight(uint4 v) : words{v.x, v.y, v.z, v.w} {}

    // The bits of the largest magnitude: as integers they are in the order of the numbers, and a NaN is above all.
    __device__ __forceinline__ int maximum() const {
        u32 most = 0;
        for (int i = 0; i < 4; i++) most = max(most, max(words[i] << 16 & 0x7fffffffu, words[i] & 0x7fff0000u));
        return (int)most;
    }
    template <class F> __device__ __forceinline__ uint2 rounded(float scale) const {
        u32 pairs[4];
        for (int i = 0; i < 4; i++) pairs[i] = F::pair(low_of(words[i]) * scale, high_of(words[i]) * scale);
        return make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
    }
};

// Raises a maximum to that of a block of 256 threads. Whoever comes first, the result is the same.
__device__ __forceinline__ void raise(int* maximum, int mine) {
    __shared__ int warps[8];
    for (int step = 16; step > 0; step >>= 1) mine = max(mine, __shfl_xor_sync(0xffffffffu, mine, step));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 8; i++) mine = max(mine, warps[i]);
    atomicMax(maximum, mine);
}

// Rounds n numbers, a multiple of 16, by the slot's scale and takes their maximum; without a place for them only that.
template <class F> __device__ __forceinline__ void round_all(const bf16* x, u8* out, Slot* slot, u64 n) {
    await_earlier();
    float scale = slot->scale;
    int most = 0;
    u64 step = (u64)gridDim.x * 4096;
    for (u64 i = 16 * ((u64)blockIdx.x * 256 + threadIdx.x); i < n; i += step) {
        Eight a(*(const uint4*)(x + i)), b(*(const uint4*)(x + i + 8));
        most = max(most, max(a.maximum(), b.maximum()));
        if (out) {
            uint2 low = a.rounded<F>(scale), high = b.rounded<F>(scale);
            *(uint4*)(out + i) = make_uint4(low.x, low.y, high.x, high.y);
        }
    }
    raise(&slot->maximum, most);
}
extern "C" __global__ void __launch_bounds__(256) round_e4m3(const bf16* x, u8* out, Slot* slot, u64 n) { round_all<E4m3>(x, out, slot, n); }
extern "C" __global__ void __launch_bounds__(256) round_e5m2(const bf16* x, u8* out, Slot* slot, u64 n) { round_all<E5m2>(x, out, slot, n); }

// After an update that was not refused: the maxima of its step become the newest of their histories, and scales follow. Even slots are
// of what goes forward, odd ones of gradients. What is not finite is not remembered.
extern "C" __global__ void rescale(Slot* slots, const u32* is_refused, u32 count) {
    await_earlier();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Slot& slot = slots[i];
    int newest = slot.maximum;
    slot.maximum = (int)0xbf800000;     // -1
    if (newest < 0 || newest >= 0x7f800000 || (is_refused && *is_refused)) return;
    float carried = __int_as_float(newest), most = carried;
#pragma unroll
    for (int age = 0; age < 16; age++) {
        float older = slot.history[age];
        slot.history[age] = carried;
        most = fmaxf(most, carried);
        carried = older;
    }
    float scale = power_of_two(i % 2 ? E5M2 : E4M3, most);
    slot.scale = scale;
    slot.factor = 1.0f / scale;
}

// A tile of 64 x 64 numbers of a weight for each block.
struct Tile {
    Weight weight;
    u32 row, column;
    __device__ __forceinline__ Tile(const Weight* weights, u32 count) {
        // The last weight whose first tile is not behind this one.
        u32 low = 0, high = count;
        while (high - low > 1) {
            u32 middle = (low + high) / 2;
            if (weights[middle].first <= blockIdx.x) low = middle;
            else high = middle;
        }
        weight = weights[low];
        u32 across = (weight.width + 63) / 64, number = blockIdx.x - weight.first;
        row = number / across * 64, column = number % across * 64;
    }
};

// The largest magnitudes of weights, which are zero before.
extern "C" __global__ void __launch_bounds__(256) weight_maxima(const bf16* values, const Weight* weights, WeightScale* scales, u32 count) {
    await_earlier();
    Tile tile(weights, count);
    const Weight& weight = tile.weight;
    int most = 0;
    for (u32 i = threadIdx.x; i < 512; i += 256) {
        u32 row = tile.row + i / 8, column = tile.column + i % 8 * 8;
        if (row < weight.rows && column < weight.width)
            most = max(most, Eight(*(const uint4*)(values + weight.offset + (u64)row * weight.width + column)).maximum());
    }
    raise(&scales[weight.index].maximum, most);
}

// Both copies of weights: as they lie, and transposed.
extern "C" __global__ void __launch_bounds__(256) weight_copies(const bf16* values, const Weight* weights, WeightScale* scales, u8* copy, u8* turned, u32 count) {
    await_earlier();
    __shared__ u32 bytes[64][17];       // a row has 64 bytes and some that keep columns in other banks
    Tile tile(weights, count);
    const Weight& weight = tile.weight;
    float scale = power_of_two(E4M3, __int_as_float(scales[weight.index].maximum));
    if (blockIdx.x == weight.first && threadIdx.x == 0) scales[weight.index].factor = 1.0f / scale;
    for (u32 i = threadIdx.x; i < 512; i += 256) {
        u32 row = tile.row + i / 8, column = tile.column + i % 8 * 8;
        if (row >= weight.rows || column >= weight.width) continue;
        u64 at = weight.offset + (u64)row * weight.width + column;
        uint2 rounded = Eight(*(const uint4*)(values + at)).rounded<E4m3>(scale);
        *(uint2*)(copy + at) = rounded;
        bytes[i / 8][i % 8 * 2] = rounded.x;
        bytes[i / 8][i % 8 * 2 + 1] = rounded.y;
    }
    __syncthreads();
    // Sixteen rows of a column for each thread.
    u32 own = threadIdx.x / 4, first = threadIdx.x % 4 * 16, column = tile.column + own, row = tile.row + first;
    if (column >= weight.width || row >= weight.rows) return;
    u32 words[4] = {0, 0, 0, 0};
    for (u32 i = 0; i < 16; i++) words[i / 4] |= (bytes[first + i][own / 4] >> own % 4 * 8 & 0xffu) << i % 4 * 8;
    *(uint4*)(turned + weight.offset + (u64)column * weight.rows + row) = make_uint4(words[0], words[1], words[2], words[3]);
}
