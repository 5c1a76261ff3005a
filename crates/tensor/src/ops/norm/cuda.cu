// Residual, dropout and layer norm: a warp has a row, and keeps it in registers while its sums are made.

// A lane has four neighbouring columns of every 128: they are read at once, and two of them share a draw. Rows whose width is
// no multiple of four are read number by number.
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
    void* standard;             // null where nothing is kept
    float* inverse_deviation;
    Dropout dropout;
    u32 rows, width;
    float epsilon;
};

// S is the sublayer's type, T that of what is kept.
template <class S, class T, int QUADS> __device__ __forceinline__ void forward(const NormForward& a) {
    u32 row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= a.rows) return;
    u64 start = (u64)row * a.width;
    Row<QUADS> z;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        u32 column = 128 * i + 4 * lane;
        read(a.x + start, column, a.width, z.at[i]);
        if (a.sublayer) {
            float added[4];
            read((const S*)a.sublayer + start, column, a.width, added);
            drop(a.dropout, start + column, added);
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
    float inverse = 1.0f / sqrtf(warp_sum(squares) / a.width + a.epsilon);
    if (lane == 0) a.inverse_deviation[row] = inverse;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        u32 column = 128 * i + 4 * lane;
        float gamma[4], beta[4], y[4];
        read(a.gamma, column, a.width, gamma);
        read(a.beta, column, a.width, beta);
        for (int j = 0; j < 4; j++) {
            z.at[i][j] *= inverse;
            y[j] = gamma[j] * z.at[i][j] + beta[j];
        }
        write(a.y + start, column, a.width, y);
        if (a.narrow) write(a.narrow + start, column, a.width, y);
        if (a.standard) write((T*)a.standard + start, column, a.width, z.at[i]);
    }
}

struct NormBackward {
    const void* standard;
    const float* inverse_deviation;
    const float* gamma;
    float* gradient;            // dy, then dx
    void* d_sublayer;           // null where it is not wanted
    float* partial;             // for every `part` rows: dγ, then dβ
    Dropout dropout;
    u32 rows, width, part;
};

// A block has `part` rows, a warp every eighth of them; sums over rows are added warp by warp.
template <class S, class T, int QUADS> __device__ __forceinline__ void backward(const NormBackward& a) {
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 first = blockIdx.x * a.part;
    Row<QUADS> d_gamma, d_beta, gamma;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        read(a.gamma, 128 * i + 4 * lane, a.width, gamma.at[i]);
        for (int j = 0; j < 4; j++) d_gamma.at[i][j] = d_beta.at[i][j] = 0.0f;
    }
    for (u32 row = first + warp; row < min(first + a.part, a.rows); row += 8) {
        u64 start = (u64)row * a.width;
        Row<QUADS> h, standard;
        float sum = 0.0f, product = 0.0f;
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            read(a.gradient + start, 128 * i + 4 * lane, a.width, h.at[i]);
            read((const T*)a.standard + start, 128 * i + 4 * lane, a.width, standard.at[i]);
        }
#pragma unroll
        for (int i = 0; i < QUADS; i++)
            for (int j = 0; j < 4; j++) {
                float g = h.at[i][j], s = standard.at[i][j];
                d_gamma.at[i][j] += g * s;
                d_beta.at[i][j] += g;
                g *= gamma.at[i][j];
                h.at[i][j] = g;
                sum += g;
                product += g * s;
            }
        sum = warp_sum(sum) / a.width;
        product = warp_sum(product) / a.width;
        float inverse = a.inverse_deviation[row];
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            u32 column = 128 * i + 4 * lane;
            for (int j = 0; j < 4; j++) h.at[i][j] = (h.at[i][j] - sum - standard.at[i][j] * product) * inverse;
            write(a.gradient + start, column, a.width, h.at[i]);
            if (a.d_sublayer) {
                drop(a.dropout, start + column, h.at[i]);
                write((S*)a.d_sublayer + start, column, a.width, h.at[i]);
            }
        }
    }
    extern __shared__ float sums[];     // 2 · width
    for (u32 turn = 0; turn < 8; turn++) {
        if (warp == turn)
#pragma unroll
            for (int i = 0; i < QUADS; i++)
                for (int j = 0; j < 4; j++) {
                    u32 column = 128 * i + 4 * lane + j;
                    if (column >= a.width) continue;
                    sums[column] = (turn ? sums[column] : 0.0f) + d_gamma.at[i][j];
                    sums[a.width + column] = (turn ? sums[a.width + column] : 0.0f) + d_beta.at[i][j];
                }
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < 2 * a.width; i += blockDim.x) a.partial[(u64)blockIdx.x * 2 * a.width + i] = sums[i];
}

#define KERNELS(QUADS) \
    extern "C" __global__ void forward_f32_f32_##QUADS(NormForward a) { forward<float, float, QUADS>(a); } \
    extern "C" __global__ void forward_bf16_f32_##QUADS(NormForward a) { forward<bf16, float, QUADS>(a); } \
    extern "C" __global__ void forward_f32_bf16_##QUADS(NormForward a) { forward<float, bf16, QUADS>(a); } \
    extern "C" __global__ void forward_bf16_bf16_##QUADS(NormForward a) { forward<bf16, bf16, QUADS>(a); } \
    extern "C" __global__ void __launch_bounds__(256) backward_f32_f32_##QUADS(NormBackward a) { backward<float, float, QUADS>(a); } \
    extern "C" __global__ void __launch_bounds__(256) backward_bf16_f32_##QUADS(NormBackward a) { backward<bf16, float, QUADS>(a); } \
    extern "C" __global__ void __launch_bounds__(256) backward_f32_bf16_##QUADS(NormBackward a) { backward<float, bf16, QUADS>(a); } \
    extern "C" __global__ void __launch_bounds__(256) backward_bf16_bf16_##QUADS(NormBackward a) { backward<bf16, bf16, QUADS>(a); }
KERNELS(1)
KERNELS(2)
KERNELS(4)
KERNELS(8)

// y = x + dropout(sublayer)
template <class S> __device__ __forceinline__ void residual(const float* x, const S* sublayer, float* y, Dropout d, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + widen(sublayer[i]) * factor(d, i);
}
extern "C" __global__ void residual_f32(const float* x, const float* s, float* y, Dropout d, u64 n) { residual(x, s, y, d, n); }
extern "C" __global__ void residual_bf16(const float* x, const bf16* s, float* y, Dropout d, u64 n) { residual(x, s, y, d, n); }

// g · dropout factor
template <class S> __device__ __forceinline__ void dropped(const float* g, S* out, Dropout d, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = narrow<S>(g[i] * factor(d, i));
}
extern "C" __global__ void dropped_f32(const float* g, float* out, Dropout d, u64 n) { dropped(g, out, d, n); }
extern "C" __global__ void dropped_bf16(const float* g, bf16* out, Dropout d, u64 n) { dropped(g, out, d, n); }

// y = γ x̂ + β with the bits of the forward pass
extern "C" __global__ void scaled(const float* standard, const float* gamma, const float* beta, float* y, u32 width, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = gamma[i % width] * standard[i] + beta[i % width];
}
