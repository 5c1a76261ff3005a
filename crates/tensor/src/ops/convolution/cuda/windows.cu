// Windows of neighbouring rows (im2col), copied in the largest units that divide a row.

struct Windows {
    const void* from;
    void* to;                   // `rows` windows, starting with that of row `first`
    const u32* offsets;         // sequences + 1
    i64 dilation;
    u32 sequences;              // including empty padding sequences
    u32 first, rows;
    u32 taps, before;
    u32 units;                  // units in a row
};

// A warp for each window. Rows outside of the sequence are 0.
template <class T> __device__ __forceinline__ void gather_windows(const Windows& a) {
    u32 own = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (own >= a.rows) return;
    u32 row = a.first + own;
    // The last sequence that begins at this row or before it.
    u32 low = 0, high = a.sequences;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (a.offsets[middle] <= row) low = middle;
        else high = middle;
    }
    i64 start = a.offsets[low], end = a.offsets[low + 1];
    T* to = (T*)a.to + (u64)own * a.taps * a.units;
    for (u32 tap = 0; tap < a.taps; tap++, to += a.units) {
        i64 at = (i64)row + ((i64)tap - (i64)a.before) * a.dilation;
        bool is_inside = at >= start && at < end;
        const T* from = (const T*)a.from + at * a.units;
        for (u32 unit = lane; unit < a.units; unit += 32) to[unit] = is_inside ? from[unit] : T{};
    }
}
extern "C" __global__ void gather_windows_2(Windows a) { gather_windows<u16>(a); }
extern "C" __global__ void gather_windows_4(Windows a) { gather_windows<u32>(a); }
extern "C" __global__ void gather_windows_8(Windows a) { gather_windows<uint2>(a); }
extern "C" __global__ void gather_windows_16(Windows a) { gather_windows<uint4>(a); }

// The taps of W in reverse order, each transposed: from taps · inputs × outputs to taps · outputs × inputs, 32 x 32 at a time.
// 256 threads; grid (inputs / 32, outputs / 32, taps), rounded up.
template <class T> __device__ __forceinline__ void reverse_taps(const T* from, T* to, u32 inputs, u32 outputs) {
    __shared__ T block[32][33];
    u32 taps = gridDim.z, tap = blockIdx.z, x = threadIdx.x % 32;
    from += (u64)(taps - 1 - tap) * inputs * outputs;
    to += (u64)tap * inputs * outputs;
    for (u32 y = threadIdx.x / 32; y < 32; y += 8) {
        u32 input = blockIdx.x * 32 + y, output = blockIdx.y * 32 + x;
        if (input < inputs && output < outputs) block[y][x] = from[(u64)input * outputs + output];
    }
    __syncthreads();
    for (u32 y = threadIdx.x / 32; y < 32; y += 8) {
        u32 input = blockIdx.x * 32 + x, output = blockIdx.y * 32 + y;
        if (input < inputs && output < outputs) to[(u64)output * inputs + input] = block[x][y];
    }
}
extern "C" __global__ void __launch_bounds__(256) reverse_taps_f32(const float* from, float* to, u32 inputs, u32 outputs) { reverse_taps(from, to, inputs, outputs); }
extern "C" __global__ void __launch_bounds__(256) reverse_taps_bf16(const u16* from, u16* to, u32 inputs, u32 outputs) { reverse_taps(from, to, inputs, outputs); }
