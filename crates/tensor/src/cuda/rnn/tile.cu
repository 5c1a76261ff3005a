// Matrix products of 16 rows with 16 columns of up to four matrices side by side, of any width, without
// tensor cores.

static constexpr u32 TILE = 16, DEPTH = 128, PADDED_DEPTH = DEPTH + 4;

// Shared memory of a block: a tile of the left operand and a transposed tile of the weight.
template <int N> struct Tiles {
    float left[TILE][PADDED_DEPTH];
    float right[N * TILE][PADDED_DEPTH];
};

// sums[n] += left row . right row (n), over `depth` values, zero-padded to a multiple of four.
template <int N> __device__ __forceinline__ void add_tile(float (&sums)[4], const Tiles<N>& tiles, u32 depth) {
    u32 row = threadIdx.x / TILE, unit = threadIdx.x % TILE;
#pragma unroll 4
    for (u32 k = 0; k < depth; k += 4) {
        float4 l = *(const float4*)&tiles.left[row][k];
        for (int n = 0; n < N; n++) {
            float4 r = *(const float4*)&tiles.right[n * TILE + unit][k];
            sums[n] += l.x * r.x;
            sums[n] += l.y * r.y;
            sums[n] += l.z * r.z;
            sums[n] += l.w * r.w;
        }
    }
}

// Accumulates this thread's element of each of the N products. `left(row, term)` is an element of the left
// operand. The weight is terms x (N matrices of `columns` columns).
template <int N, class T, class L>
__device__ __forceinline__ void tile_product(float (&sums)[4], char* shared, u32 terms, const L& left, const T* weight, u32 columns,
                                             u32 first) {
    Tiles<N>& tiles = *(Tiles<N>*)shared;
    for (u32 k = 0; k < terms; k += DEPTH) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x)
            tiles.left[i / DEPTH][i % DEPTH] = k + i % DEPTH < terms ? left(i / DEPTH, k + i % DEPTH) : 0.0f;
        for (u32 i = threadIdx.x; i < N * TILE * DEPTH; i += blockDim.x) {
            u32 column = i % TILE, n = i / TILE % N, term = k + i / (N * TILE);
            bool is_there = term < terms && first + column < columns;
            const T* at = weight + (u64)term * (N * columns) + n * columns + first + column;
            tiles.right[n * TILE + column][i / (N * TILE)] = is_there ? widen(*at) : 0.0f;
        }
        __syncthreads();
        add_tile<N>(sums, tiles, min(DEPTH, terms - k));
    }
}

// The same for the transposed weight (NT), which is rows x terms.
template <class T, class L>
__device__ __forceinline__ float tile_product_nt(char* shared, u32 terms, const L& left, const T* weight, u32 rows, u32 first) {
    Tiles<1>& tiles = *(Tiles<1>*)shared;
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 k = 0; k < terms; k += DEPTH) {
        __syncthreads();
        for (u32 i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x) {
            u32 term = k + i % DEPTH, row = i / DEPTH;
            tiles.left[row][i % DEPTH] = term < terms ? left(row, term) : 0.0f;
            bool is_there = term < terms && first + row < rows;
            tiles.right[row][i % DEPTH] = is_there ? widen(weight[(u64)(first + row) * terms + term]) : 0.0f;
        }
        __syncthreads();
        add_tile<1>(sums, tiles, min(DEPTH, terms - k));
    }
    return sums[0];
}

// The states published in the forward pass, in the type of the products.
template <class T> struct Exchange;
template <> struct Exchange<float> { static __device__ __forceinline__ float* of(const Layer& a) { return a.outputs; } };
template <> struct Exchange<bf16> { static __device__ __forceinline__ bf16* of(const Layer& a) { return a.narrow; } };

// An element of the state before a step, rounded; 0 if row `r` has no such step.
template <class T>
__device__ __forceinline__ float state_before(const Layer& a, Rows rows, u32 r, u32 count, u32 step, u32 unit, u32 d) {
    if (r >= count) return 0.0f;
    uint4 row = rows[r];
    if (row.y <= step) return 0.0f;
    if (step > 0) return await_value(Exchange<T>::of(a) + (u64)token_of(row, step - 1, a.is_reversed) * d + unit);
    return a.initial_h ? widen(narrow<T>(a.initial_h[(u64)row.z * d + unit])) : 0.0f;
}

// An element published by token; 0 if row `r` has no such step.
template <class T>
__device__ __forceinline__ float await_at(const T* from, u32 width, Rows rows, u32 r, u32 count, u32 step, u32 is_reversed, u32 i) {
    if (r >= count) return 0.0f;
    uint4 row = rows[r];
    return row.y > step ? await_value(from + (u64)token_of(row, step, is_reversed) * width + i) : 0.0f;
}
