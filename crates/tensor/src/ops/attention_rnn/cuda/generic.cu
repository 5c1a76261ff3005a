// The decoder in any widths, in f32 or bf16: the reference for the fast kernels. Each step consists of tiles of 16 rows
// and 16 columns, or of the attention of one row, which are distributed over all blocks.

// The type in which blocks exchange contexts.
template <class T> struct Context;
template <> struct Context<float> { static __device__ __forceinline__ const float* of(const Attention& b) { return b.contexts; } };
template <> struct Context<bf16> { static __device__ __forceinline__ const bf16* of(const Attention& b) { return b.narrow; } };

template <int CELL, class T>
__device__ __forceinline__ void decoder_forward(const Decoder& a, const Attention& b, Rows rows, const u32* sizes, u32 d) {
    constexpr int G = Shape<CELL>::gates;
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) char shared[];
    const Layer& cell = a.cell;
    u32 count = *sizes, chunks = (count + TILE - 1) / TILE, steps = count ? rows[0].y : 0;
    u32 slices = (d + TILE - 1) / TILE, query_slices = (b.key_width + TILE - 1) / TILE;
    u32 in_row = threadIdx.x / TILE, in_unit = threadIdx.x % TILE;
    for (u32 step = 0; step < steps; step++) {
        for (u32 item = blockIdx.x; a.query_weight && item < chunks * query_slices; item += gridDim.x) {
            u32 first = item / query_slices * TILE, column = item % query_slices * TILE;
            if (rows[first].y <= step) break;
            float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            auto left = [&](u32 i, u32 term) { return state_before<T>(cell, rows, first + i, count, step, term, d); };
            tile_product<1>(sums, shared, d, left, (const T*)a.query_weight, b.key_width, column);
            u32 r = first + in_row;
            if (r < count && rows[r].y > step && column + in_unit < b.key_width)
                publish(b.queries + (u64)(rows[r].x + step) * b.key_width + column + in_unit, sums[0]);
        }
        for (u32 r = blockIdx.x; r < count && rows[r].y > step; r += gridDim.x)
            attend_step<T>(a, b, rows[r], step, d, (float*)shared);
        for (u32 item = blockIdx.x; item < chunks * slices; item += gridDim.x) {
            u32 first = item / slices * TILE, first_unit = item % slices * TILE;
            if (rows[first].y <= step) break;
            u32 r = first + in_row, unit = first_unit + in_unit;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = r < count && row.y > step && unit < d;
            Forward<CELL> s;
            if (is_real) read_forward<CELL, T>(s, cell, row, step, unit, d);
            float hidden[4] = {0.0f, 0.0f, 0.0f, 0.0f}, input[4] = {0.0f, 0.0f, 0.0f, 0.0f}, kept[4];
            auto state = [&](u32 i, u32 term) { return state_before<T>(cell, rows, first + i, count, step, term, d); };
            tile_product<G>(hidden, shared, d, state, (const T*)cell.weight, d, first_unit);
            auto context = [&](u32 i, u32 term) {
                return await_at(Context<T>::of(b), b.value_width, rows, first + i, count, step, 0, term);
            };
            tile_product<G>(input, shared, b.value_width, context, (const T*)a.context_weight, d, first_unit);
            if (is_real) {
                for (int g = 0; g < G; g++) {
                    s.x[g] += input[g];
                    if (cell.bias) hidden[g] += cell.bias[(u64)g * d + unit];
                }
                cell_forward<CELL, F>(s.x, hidden, s.h, s.c, kept);
                publish(cell.outputs + s.token * d + unit, s.h);
                if (sizeof(T) == 2) publish(cell.narrow + s.token * d + unit, s.h);
                write_forward<CELL, T>(s, kept, cell, row, step, unit, d);
            }
        }
    }
}

// One tile of the state's gradient through the query of step `at`, for rows longer than that.
template <class T>
__device__ __forceinline__ float from_query(const Decoder& a, const Attention& b, char* shared, Rows rows, u32 first, u32 count,
                                            u32 first_unit, u32 at, u32 d) {
    if (!a.query_weight) {
        u32 r = first + threadIdx.x / TILE, unit = first_unit + threadIdx.x % TILE;
        return unit < d ? await_at((const float*)b.dq, d, rows, r, count, at, 0, unit) : 0.0f;
    }
    auto left = [&](u32 i, u32 term) {
        return await_at((const T*)b.dq, b.key_width, rows, first + i, count, at, 0, term);
    };
    return tile_product_nt(shared, b.key_width, left, (const T*)a.query_weight, d, first_unit);
}

template <int CELL, class T>
__device__ __forceinline__ void decoder_backward(const Decoder& a, const Attention& b, Rows rows, const u32* sizes, u32 d) {
    constexpr int G = Shape<CELL>::gates;
    typedef typename Functions<T>::type F;
    extern __shared__ __align__(16) char shared[];
    const Layer& cell = a.cell;
    u32 count = *sizes, chunks = (count + TILE - 1) / TILE, steps = count ? rows[0].y : 0;
    u32 slices = (d + TILE - 1) / TILE, value_slices = (b.value_width + TILE - 1) / TILE;
    u32 in_row = threadIdx.x / TILE, in_unit = threadIdx.x % TILE;
    for (u32 step = steps; step-- > 0;) {
        for (u32 item = blockIdx.x; item < chunks * slices; item += gridDim.x) {
            u32 first = item / slices * TILE, first_unit = item % slices * TILE;
            if (rows[first].y <= step) break;
            u32 r = first + in_row, unit = first_unit + in_unit;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = r < count && row.y > step && unit < d;
            Backward<CELL> s;
            if (is_real) read_backward<CELL, T>(s, cell, row, step, unit, d);
            float sum = 0.0f;
            if (rows[first].y > step + 1) sum = from_query<T>(a, b, shared, rows, first, count, first_unit, step + 1, d);
            if (is_real) {
                float dx[4], da[4];
                s.dh += sum;
                cell_backward<CELL, F>(s.kept, s.h_before, s.h, s.c_before, s.c, s.dh, s.dc, dx, da);
                u64 at = s.token * (G * d) + unit;
                for (int g = 0; g < G; g++) {
                    publish((T*)cell.da + at + (u64)g * d, da[g]);
                    if (CELL == GRU) publish((T*)cell.dx + at + (u64)g * d, dx[g]);
                }
                write_backward<CELL, T>(s, dx, cell, row, unit, d);
            }
        }
        for (u32 item = blockIdx.x; item < chunks * value_slices; item += gridDim.x) {
            u32 first = item / value_slices * TILE, column = item % value_slices * TILE;
            if (rows[first].y <= step) break;
            auto left = [&](u32 i, u32 term) {
                return await_at((const T*)cell.dx, G * d, rows, first + i, count, step, 0, term);
            };
            float sum = tile_product_nt(shared, G * d, left, (const T*)a.context_weight, b.value_width, column);
            u32 r = first + in_row;
            if (r < count && rows[r].y > step && column + in_unit < b.value_width) {
                u64 at = (u64)(rows[r].x + step) * b.value_width + column + in_unit;
                publish(b.d_contexts + at, a.d_contexts ? sum + a.d_contexts[at] : sum);
            }
        }
        for (u32 r = blockIdx.x; r < count && rows[r].y > step; r += gridDim.x)
            attend_step_backward<T>(b, rows[r], step, (float*)shared);
        for (u32 item = blockIdx.x; item < chunks * slices; item += gridDim.x) {
            u32 first = item / slices * TILE, first_unit = item % slices * TILE;
            if (rows[first].y <= step) break;
            auto left = [&](u32 i, u32 term) {
                return await_at((const T*)cell.da, G * d, rows, first + i, count, step, 0, term);
            };
            float sum = tile_product_nt(shared, G * d, left, (const T*)cell.weight, d, first_unit);
            u32 r = first + in_row, unit = first_unit + in_unit;
            if (r < count && rows[r].y > step && unit < d) {
                float* past = cell.past + (u64)rows[r].z * d + unit;
                *past = CELL == GRU ? *past + sum : sum;
            }
        }
    }
    for (u32 item = blockIdx.x; item < chunks * slices; item += gridDim.x) {
        u32 first = item / slices * TILE, first_unit = item % slices * TILE;
        u32 r = first + in_row, unit = first_unit + in_unit;
        float sum = 0.0f;
        if (rows[first].y > 0) sum = from_query<T>(a, b, shared, rows, first, count, first_unit, 0, d);
        if (r < count && unit < d) write_initial<CELL>(cell, rows[r], sum, unit, d);
    }
}

#define DECODER(NAME, CELL, KIND, T)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_decoder_forward_##KIND(Decoder a, Attention b, Rows rows, const u32* sizes, u32 d) {                          \
        decoder_forward<CELL, T>(a, b, rows, sizes, d);                                                                     \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_decoder_backward_##KIND(Decoder a, Attention b, Rows rows, const u32* sizes, u32 d) {                         \
        decoder_backward<CELL, T>(a, b, rows, sizes, d);                                                                    \
    }
DECODER(simple, SIMPLE, f32, float)
DECODER(simple, SIMPLE, bf16, bf16)
DECODER(gru, GRU, f32, float)
DECODER(gru, GRU, bf16, bf16)
DECODER(lstm, LSTM, f32, float)
DECODER(lstm, LSTM, bf16, bf16)
