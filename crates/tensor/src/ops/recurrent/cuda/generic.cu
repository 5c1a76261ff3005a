// Layers of any width, in f32 or bf16, without tensor cores: the reference for the fast kernels. A tile is 16 rows and 16 units;
// a block has some tiles and processes all of them at every step.

template <int CELL, class T>
__device__ __forceinline__ void forward_generic(const Layer& a, Rows rows, const u32* sizes, u32 d, u32 block, u32 blocks) {
    constexpr int G = Shape<CELL>::gates;
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) char shared[];
    u32 count = *sizes, slices = (d + TILE - 1) / TILE, items = (count + TILE - 1) / TILE * slices;
    u32 steps = count ? rows[0].y : 0;
    u32 in_row = threadIdx.x / TILE, in_unit = threadIdx.x % TILE;
    for (u32 step = 0; step < steps; step++) {
        for (u32 item = block; item < items; item += blocks) {
            u32 first = item / slices * TILE, first_unit = item % slices * TILE;
            if (rows[first].y <= step) break;
            u32 r = first + in_row, unit = first_unit + in_unit;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = r < count && row.y > step && unit < d;
            Forward<CELL> s;
            if (is_real) read_forward<CELL, T>(s, a, row, step, unit, d);
            float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (step > 0 || a.initial_h) {
                auto left = [&](u32 i, u32 term) { return state_before<T>(a, rows, first + i, count, step, term, d); };
                tile_product<G>(sums, shared, d, left, (const T*)a.weight, d, first_unit);
            }
            if (is_real) {
                float kept[4];
                if (a.bias) for (int g = 0; g < G; g++) sums[g] += a.bias[(u64)g * d + unit];
                cell_forward<CELL, F>(s.x, sums, s.h, s.c, kept);
                publish(Exchange<T>::of(a) + s.token * d + unit, s.h);
                if (sizeof(T) == 2) a.outputs[s.token * d + unit] = s.h;
                write_forward<CELL, T>(s, kept, a, row, step, unit, d);
            }
        }
    }
    for (u32 item = block; item < items; item += blocks) {
        u32 r = item / slices * TILE + in_row, unit = item % slices * TILE + in_unit;
        if (r < count && unit < d && rows[r].y == 0) keep_state<CELL>(a, rows[r], unit, d);
    }
}

// One tile of the product of the gradients exchanged at step `at`, for rows longer than that, with the weight's rows.
template <int CELL, class T>
__device__ __forceinline__ float product_backward(const Layer& a, char* shared, Rows rows, u32 first, u32 count, u32 first_unit,
                                                  u32 at, u32 d) {
    u32 width = Shape<CELL>::gates * d;
    auto left = [&](u32 i, u32 term) {
        return await_at((const T*)a.da, width, rows, first + i, count, at, a.is_reversed, term);
    };
    return tile_product_nt(shared, width, left, (const T*)a.weight, d, first_unit);
}

template <int CELL, class T>
__device__ __forceinline__ void backward_generic(const Layer& a, Rows rows, const u32* sizes, u32 d, u32 block, u32 blocks) {
    constexpr int G = Shape<CELL>::gates;
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) char shared[];
    u32 count = *sizes, slices = (d + TILE - 1) / TILE, items = (count + TILE - 1) / TILE * slices;
    u32 steps = count ? rows[0].y : 0;
    u32 in_row = threadIdx.x / TILE, in_unit = threadIdx.x % TILE;
    for (u32 step = steps; step-- > 0;) {
        for (u32 item = block; item < items; item += blocks) {
            u32 first = item / slices * TILE, first_unit = item % slices * TILE;
            if (rows[first].y <= step) break;
            u32 r = first + in_row, unit = first_unit + in_unit;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = r < count && row.y > step && unit < d;
            Backward<CELL> s;
            if (is_real) read_backward<CELL, T>(s, a, row, step, unit, d);
            float sum = 0.0f;
            if (rows[first].y > step + 1)
                sum = product_backward<CELL, T>(a, shared, rows, first, count, first_unit, step + 1, d);
            if (is_real) {
                float dx[4], da[4];
                s.dh += sum;
                cell_backward<CELL, F>(s.kept, s.h_before, s.h, s.c_before, s.c, s.dh, s.dc, dx, da);
                T* to = (T*)a.da + s.token * (G * d) + unit;
                for (int g = 0; g < G; g++) publish(to + (u64)g * d, da[g]);
                write_backward<CELL, T>(s, dx, a, row, unit, d);
            }
        }
    }
    if (!a.dh) return;
    for (u32 item = block; item < items; item += blocks) {
        u32 first = item / slices * TILE, first_unit = item % slices * TILE;
        u32 r = first + in_row, unit = first_unit + in_unit;
        float sum = 0.0f;
        if (rows[first].y > 0) sum = product_backward<CELL, T>(a, shared, rows, first, count, first_unit, 0, d);
        if (r < count && unit < d) write_initial<CELL>(a, rows[r], sum, unit, d);
    }
}

// The layers of a launch run concurrently: each has its share of the blocks.
#define GENERIC(NAME, CELL, KIND, T)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_forward_##KIND(Layer a, Layer b, Rows rows, const u32* sizes, u32 d, u32 blocks) {                            \
        bool is_first = blockIdx.x < blocks;                                                                                \
        forward_generic<CELL, T>(is_first ? a : b, rows, sizes, d, is_first ? blockIdx.x : blockIdx.x - blocks, blocks);     \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_backward_##KIND(Layer a, Layer b, Rows rows, const u32* sizes, u32 d, u32 blocks) {                           \
        bool is_first = blockIdx.x < blocks;                                                                                \
        backward_generic<CELL, T>(is_first ? a : b, rows, sizes, d, is_first ? blockIdx.x : blockIdx.x - blocks, blocks);    \
    }
GENERIC(simple, SIMPLE, f32, float)
GENERIC(simple, SIMPLE, bf16, bf16)
GENERIC(gru, GRU, f32, float)
GENERIC(gru, GRU, bf16, bf16)
GENERIC(lstm, LSTM, f32, float)
GENERIC(lstm, LSTM, bf16, bf16)
