// Residual, dropout and layer norm: a warp processes a row, which stays in registers during its reductions.

// A lane has four neighbouring columns of every 128: they are loaded as one vector, and two of them share a
// random draw. Rows whose width is not a multiple of four are read element by element.
template <int QUADS> struct Row { float at[QUADS][4]; };

template <class T> __device__ __forceinline__ void read(const T* from, u32 column, u32 width, float* x) {
    if (width % 4 == 0) {
        if (column < width) load4(from + column, x);
        else x[0] = x[1] = x[2] = x[3] = 0.0f;
    } else {
        for (u32 j = 0; j < 4; j++) x[j] = column + j < width ? widen(from[column + j]) : 0.0f;
    }
}

template <class T> __device__ __forceinline__ void write(T* to, u32 column, u32 width, const float* x) {
    if (width % 4 == 0) {
        if (column < width) store4(to + column, x);
    } else {
        for (u32 j = 0; j < 4; j++)
            if (column + j < width) to[column + j] = narrow<T>(x[j]);
    }
}

__device__ __forceinline__ void drop(const Dropout& d, u64 first, float* x) {
    if (!d.threshold) return;
    float f[4];
    if (first % 2 == 0) factors4(d, first, f);
    else for (int j = 0; j < 4; j++) f[j] = factor(d, first + j);
    for (int j = 0; j < 4; j++) x[j] *= f[j];
}

struct NormForward {
    const float* x;
    const void* sublayer;       // null: z = x
    const float* gamma;
    const float* beta;
    float* y;
    bf16* narrow;               // null in f32
    void* x_hat;                // null without a backward pass
    float* rstd;
    const Dropout* dropout;
    u32 rows, width;
    float epsilon;
    u32 unused;
};

// S is the sublayer's type, T the type of x_hat.
template <class S, class T, int QUADS> __device__ __forceinline__ void forward(const NormForward& a) {
    launch_dependents_and_wait();
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= a.rows) return;
    u64 start = (u64)row * a.width;
    Dropout dropout = dropout_of(a.dropout);
    Row<QUADS> z;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        u32 column = 128 * i + 4 * lane;
        read(a.x + start, column, a.width, z.at[i]);
        if (a.sublayer) {
            float added[4];
            read((const S*)a.sublayer + start, column, a.width, added);
            drop(dropout, start + column, added);
            for (int j = 0; j < 4; j++) z.at[i][j] += added[j];
        }
        for (int j = 0; j < 4; j++) sum += z.at[i][j];
    }
    float mean = warp_sum(sum) / a.width;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++)
        for (int j = 0; j < 4; j++) {
            float d = 128 * i + 4 * lane + j < a.width ? z.at[i][j] - mean : 0.0f;
            z.at[i][j] = d;
            squares += d * d;
        }
    float rstd = 1.0f / sqrtf(warp_sum(squares) / a.width + a.epsilon);
    if (lane == 0) a.rstd[row] = rstd;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        u32 column = 128 * i + 4 * lane;
        float gamma[4], beta[4], y[4];
        read(a.gamma, column, a.width, gamma);
        read(a.beta, column, a.width, beta);
        for (int j = 0; j < 4; j++) {
            z.at[i][j] *= rstd;
            y[j] = gamma[j] * z.at[i][j] + beta[j];
        }
        write(a.y + start, column, a.width, y);
        if (a.narrow) write(a.narrow + start, column, a.width, y);
        if (a.x_hat) write((T*)a.x_hat + start, column, a.width, z.at[i]);
    }
}

struct NormBackward {
    const void* x_hat;
    const float* rstd;
    const float* gamma;
    float* gradient;            // dy, then dx
    void* d_sublayer;           // null if not requested
    float* partial;             // for every `part` rows: dγ, dβ, the sum of d_sublayer
    const Dropout* dropout;
    u32 rows, width, part, unused;
};

// Four neighbouring elements in their memory format: a prefetched bf16 row takes half the registers.
template <class T> struct Four;
template <> struct Four<float> { float4 raw; };
template <> struct Four<bf16> { uint2 raw; };

__device__ __forceinline__ void widen4(const Four<float>& v, float* x) { x[0] = v.raw.x, x[1] = v.raw.y, x[2] = v.raw.z, x[3] = v.raw.w; }
__device__ __forceinline__ void widen4(const Four<bf16>& v, float* x) {
    x[0] = low_of(v.raw.x), x[1] = high_of(v.raw.x), x[2] = low_of(v.raw.y), x[3] = high_of(v.raw.y);
}
__device__ __forceinline__ void pack4(const float* x, Four<float>& v) { v.raw = make_float4(x[0], x[1], x[2], x[3]); }
__device__ __forceinline__ void pack4(const float* x, Four<bf16>& v) { v.raw = make_uint2(pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3])); }

template <class T> __device__ __forceinline__ void prefetch(const T* from, u32 column, u32 width, Four<T>& v) {
    if (width % 4 == 0 && column < width) {
        v = *(const Four<T>*)(from + column);
    } else {
        float x[4];
        read(from, column, width, x);
        pack4(x, v);
    }
}

// A team of warps processes one row together. A block has eight warps.
template <int WARPS> struct Team {
    u32 number, warp, lane;     // index of the team, of the warp in the team, of the lane in the warp
    enum : u32 { COUNT = 8 / WARPS };

    __device__ __forceinline__ Team() {
        lane = threadIdx.x % 32;
        warp = threadIdx.x / 32 % WARPS;
        number = threadIdx.x / (32 * WARPS);
    }
    // A thread's columns: four of every 128 columns of its warp.
    template <int QUADS> __device__ __forceinline__ u32 column(int i) const { return 128 * (QUADS * warp + i) + 4 * lane; }

    // Sums x and y over the team, in one order. `iteration` must change with every call: it selects one of
    // two buffers.
    __device__ __forceinline__ void add(float& x, float& y, u32 iteration) const {
        x = warp_sum(x);
        y = warp_sum(y);
        if (WARPS == 1) return;
        __shared__ float2 sums[2][COUNT][WARPS];
        if (lane == 0) sums[iteration % 2][number][warp] = make_float2(x, y);
        asm volatile("bar.sync %0, %1;" :: "r"(1 + number), "r"(32 * WARPS) : "memory");
        x = y = 0.0f;
        for (u32 i = 0; i < WARPS; i++) {
            float2 part = sums[iteration % 2][number][i];
            x += part.x;
            y += part.y;
        }
    }
};

// Reduces the sums of a block's teams as a tree.
template <int QUADS, int WARPS>
__device__ __forceinline__ void add_teams(Team<WARPS> team, Row<QUADS> (&sums)[3], u32 width, float* partial) {
    extern __shared__ float memory[];       // three rows for every second team
#pragma unroll
    for (u32 half = team.COUNT / 2; half > 0; half /= 2) {
        float* left = memory + (team.number % half) * 3 * width;
        if (team.number >= half && team.number < 2 * half)
#pragma unroll
            for (int kind = 0; kind < 3; kind++)
#pragma unroll
                for (int i = 0; i < QUADS; i++) write(left + kind * width, team.template column<QUADS>(i), width, sums[kind].at[i]);
        __syncthreads();
        if (team.number < half)
#pragma unroll
            for (int kind = 0; kind < 3; kind++)
#pragma unroll
                for (int i = 0; i < QUADS; i++) {
                    float other[4];
                    read(left + kind * width, team.template column<QUADS>(i), width, other);
                    for (int j = 0; j < 4; j++) sums[kind].at[i][j] += other[j];
                }
        __syncthreads();
    }
    if (team.number == 0)
#pragma unroll
        for (int kind = 0; kind < 3; kind++)
#pragma unroll
            for (int i = 0; i < QUADS; i++) write(partial + kind * width, team.template column<QUADS>(i), width, sums[kind].at[i]);
}

// A block has `part` rows, which its teams process in turn; the next row is prefetched while one is computed.
template <class S, class T, int QUADS, int WARPS> __device__ __forceinline__ void backward(const NormBackward& a) {
    grid_dependency_wait();
    Team<WARPS> team;
    u32 first = blockIdx.x * a.part, end = min(first + a.part, a.rows);
    Row<QUADS> sums[3];         // of dγ, dβ and d_sublayer
    Four<float> next_g[QUADS];
    Four<T> next_s[QUADS];
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        for (int j = 0; j < 4; j++) sums[0].at[i][j] = sums[1].at[i][j] = sums[2].at[i][j] = 0.0f;
        u64 start = (u64)min(first + team.number, a.rows - 1) * a.width;
        u32 column = team.template column<QUADS>(i);
        prefetch((const float*)a.gradient + start, column, a.width, next_g[i]);
        prefetch((const T*)a.x_hat + start, column, a.width, next_s[i]);
    }
    u32 iteration = 0;
    for (u32 row = first + team.number; row < end; row += team.COUNT, iteration++) {
        u64 start = (u64)row * a.width, later = start + team.COUNT * (u64)a.width;
        Row<QUADS> h, x_hat;
        float sum = 0.0f, product = 0.0f;
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            u32 column = team.template column<QUADS>(i);
            widen4(next_g[i], h.at[i]);
            widen4(next_s[i], x_hat.at[i]);
            if (row + team.COUNT < end) {
                prefetch((const float*)a.gradient + later, column, a.width, next_g[i]);
                prefetch((const T*)a.x_hat + later, column, a.width, next_s[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            float gamma[4];
            read(a.gamma, team.template column<QUADS>(i), a.width, gamma);
            for (int j = 0; j < 4; j++) {
                float g = h.at[i][j], s = x_hat.at[i][j];
                sums[0].at[i][j] += g * s;
                sums[1].at[i][j] += g;
                g *= gamma[j];
                h.at[i][j] = g;
                sum += g;
                product += g * s;
            }
        }
        team.add(sum, product, iteration);
        sum /= a.width;
        product /= a.width;
        float rstd = a.rstd[row];
        // Reloaded for each row to save registers.
        Dropout dropout = dropout_of(a.dropout);
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            u32 column = team.template column<QUADS>(i);
            for (int j = 0; j < 4; j++) h.at[i][j] = (h.at[i][j] - sum - x_hat.at[i][j] * product) * rstd;
            write(a.gradient + start, column, a.width, h.at[i]);
            if (a.d_sublayer) {
                drop(dropout, start + column, h.at[i]);
                write((S*)a.d_sublayer + start, column, a.width, h.at[i]);
                for (int j = 0; j < 4; j++)
                    if (column + j < a.width) sums[2].at[i][j] += h.at[i][j];
            }
        }
    }
    add_teams(team, sums, a.width, a.partial + (u64)blockIdx.x * 3 * a.width);
}

// QUADS times 128 columns: one warp in the forward pass, WARPS warps of SHARE times 128 columns in the
// backward pass. The registers suffice for three resident blocks if prefetched rows are bf16; code for older
// GPUs needs more registers.
#define KERNELS(S, T, QUADS, SHARE, WARPS, BLOCKS, name) \
    extern "C" __global__ void forward_##name##_##QUADS(NormForward a) { forward<S, T, QUADS>(a); } \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS) backward_##name##_##QUADS(NormBackward a) { \
        backward<S, T, SHARE, WARPS>(a); \
    }
#define WIDTHS(S, T, BLOCKS, name) \
    KERNELS(S, T, 1, 1, 1, 2, name) \
    KERNELS(S, T, 2, 2, 1, 2, name) \
    KERNELS(S, T, 4, 2, 2, BLOCKS, name) \
    KERNELS(S, T, 8, 2, 4, BLOCKS, name)
#if __CUDA_ARCH__ >= 900
#define BF16_BLOCKS 3
#else
#define BF16_BLOCKS 2
#endif
WIDTHS(float, float, 2, f32_f32)
WIDTHS(bf16, float, 2, bf16_f32)
WIDTHS(float, bf16, BF16_BLOCKS, f32_bf16)
WIDTHS(bf16, bf16, BF16_BLOCKS, bf16_bf16)

// y = x + dropout(sublayer)
template <class S> __device__ __forceinline__ void residual(const float* x, const S* sublayer, float* y, const Dropout* given, u64 n) {
    grid_dependency_wait();
    Dropout d = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + widen(sublayer[i]) * factor(d, i);
}
extern "C" __global__ void residual_f32(const float* x, const float* s, float* y, const Dropout* d, u64 n) { residual(x, s, y, d, n); }
extern "C" __global__ void residual_bf16(const float* x, const bf16* s, float* y, const Dropout* d, u64 n) { residual(x, s, y, d, n); }

// g · dropout factor
template <class S> __device__ __forceinline__ void dropped(const float* g, S* out, const Dropout* given, u64 n) {
    grid_dependency_wait();
    Dropout d = dropout_of(given);
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = narrow<S>(g[i] * factor(d, i));
}
extern "C" __global__ void dropped_f32(const float* g, float* out, const Dropout* d, u64 n) { dropped(g, out, d, n); }
extern "C" __global__ void dropped_bf16(const float* g, bf16* out, const Dropout* d, u64 n) { dropped(g, out, d, n); }

// y = γ x̂ + β with the bits of the forward pass
extern "C" __global__ void scaled(const float* x_hat, const float* gamma, const float* beta, float* y, u32 width, u64 n) {
    grid_dependency_wait();
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = gamma[i % width] * x_hat[i] + beta[i % width];
}
