// Layers in bf16 whose width is a multiple of eight, up to 1024. A block has 16 units (8 of wide layers) and keeps their weights in
// registers; blocks with the same rows exchange states after every step. Blocks with other rows are independent.

// WIDE: the width is at most 256 times this.
template <int CELL, int WIDE, int UNITS>
__device__ __forceinline__ void forward_fast(const Layer& a, Rows rows, const u32* sizes, u32 d, const BlockPosition& place) {
    constexpr int G = Shape<CELL>::gates, COLUMNS = G * UNITS / 8;
    constexpr u32 STRIDE = sums_stride(G * UNITS, UNITS), BUFFER = WARPS * ROWS * STRIDE;
    extern __shared__ __align__(16) float parts[];
    u32 count = *sizes, steps = count ? rows[0].y : 0;
    u32 in_row = threadIdx.x / UNITS, unit = place.slice * UNITS + threadIdx.x % UNITS;
    bool has_cell = threadIdx.x < ROWS * UNITS, has_unit = unit < d;
    Held<WIDE, COLUMNS> held;
    hold(held, [&](u32 term, u32 column) {
        u32 of = place.slice * UNITS + column % UNITS;
        return column_pair(a.weight, d, G * d, term, column / UNITS * d + of, of < d);
    });
    float bias[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (a.bias && has_cell && has_unit) for (int g = 0; g < G; g++) bias[g] = a.bias[(u64)g * d + unit];
    u32 buffer = 0;
    for (u32 step = 0; step < steps; step++) {
        for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            u32 r = first + in_row;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = has_cell && has_unit && r < count && row.y > step;
            Forward<CELL> s;
            if (is_real) read_forward<CELL, bf16>(s, a, row, step, unit, d);
            bool has_product = step > 0 || a.initial_h;
            float* sums = parts + buffer++ % 2 * BUFFER;
            if (has_product) {
                u32 left[WIDE][2][4];
                await_states<WIDE>(left, a, rows, first, count, step, d);
                float own[COLUMNS][4];
                clear_sums(own);
                multiply_held<0>(own, left, held);
                share_sums(sums, own, STRIDE);
            }
            __syncthreads();
            if (has_cell) {
                float hidden[4], kept[4];
                for (int g = 0; g < G; g++) hidden[g] = bias[g];
                if (has_product)
                    for (int g = 0; g < G; g++)
                        hidden[g] += shared_sum(sums, in_row, g * UNITS + threadIdx.x % UNITS, STRIDE);
                if (is_real) cell_forward<CELL, Quick>(s.x, hidden, s.h, s.c, kept);
                float neighbour = __shfl_down_sync(0xffffffffu, s.h, 1);
                if (is_real) {
                    u64 at = s.token * d + unit;
                    if (unit % 2 == 0) publish_pair(a.narrow + at, s.h, neighbour);
                    a.outputs[at] = s.h;
                    write_forward<CELL, bf16>(s, kept, a, row, step, unit, d);
                }
            }
        }
    }
    for (u32 r = place.group * ROWS + in_row; has_cell && has_unit && r < count; r += place.groups * ROWS)
        if (rows[r].y == 0) keep_state<CELL>(a, rows[r], unit, d);
}

// This warp's part of the product of the gradients exchanged at step `at`, for rows longer than that.
template <int BLOCKS, int COLUMNS>
__device__ __forceinline__ void product_backward(float* to, const Held<BLOCKS, COLUMNS>& held, const Layer& a, Rows rows, u32 first,
                                                 u32 count, u32 at, u32 width, u32 stride) {
    // Limited by the remaining registers.
    constexpr int PART = BLOCKS > 8 ? (BLOCKS + 1) / 2 : BLOCKS;
    u32 from = first_term<BLOCKS>();
    const bf16 *low_at, *high_at;
    lane_rows(low_at, high_at, (const bf16*)a.da, width, rows, first, count, at, at, a.is_reversed);
    float own[COLUMNS][4];
    clear_sums(own);
    u32 left[PART][2][4];
    await_rows<PART>(left, low_at, high_at, from, width);
    multiply_held<0>(own, left, held);
    if constexpr (PART < BLOCKS) {
        u32 rest[BLOCKS - PART][2][4];
        await_rows<BLOCKS - PART>(rest, low_at, high_at, from + 32 * PART, width);
        multiply_held<PART>(own, rest, held);
    }
    share_sums(to, own, stride);
}

template <int CELL, int WIDE, int UNITS>
__device__ __forceinline__ void backward_fast(const Layer& a, Rows rows, const u32* sizes, u32 d, const BlockPosition& place) {
    constexpr int G = Shape<CELL>::gates, COLUMNS = UNITS / 8, BLOCKS = G * WIDE;
    constexpr u32 STRIDE = sums_stride(UNITS, UNITS), BUFFER = WARPS * ROWS * STRIDE;
    extern __shared__ __align__(16) float parts[];
    u32 count = *sizes, steps = count ? rows[0].y : 0, width = G * d;
    u32 in_row = threadIdx.x / UNITS, in_unit = threadIdx.x % UNITS, unit = place.slice * UNITS + in_unit;
    bool has_cell = threadIdx.x < ROWS * UNITS, has_unit = unit < d;
    Held<BLOCKS, COLUMNS> held;
    hold(held, [&](u32 term, u32 column) { return row_pair(a.weight, d, width, term, place.slice * UNITS + column); });
    u32 buffer = 0;
    for (u32 step = steps; step-- > 0;) {
        for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            u32 r = first + in_row;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = has_cell && has_unit && r < count && row.y > step;
            Backward<CELL> s;
            if (is_real) read_backward<CELL, bf16>(s, a, row, step, unit, d);
            bool has_product = rows[first].y > step + 1;
            float* sums = parts + buffer++ % 2 * BUFFER;
            if (has_product) product_backward(sums, held, a, rows, first, count, step + 1, width, STRIDE);
            __syncthreads();
            if (has_cell) {
                float dx[4] = {0.0f, 0.0f, 0.0f, 0.0f}, da[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                if (is_real) {
                    if (has_product) s.dh += shared_sum(sums, in_row, in_unit, STRIDE);
                    cell_backward<CELL, Quick>(s.kept, s.h_before, s.h, s.c_before, s.c, s.dh, s.dc, dx, da);
                }
                bf16* to = (bf16*)a.da + s.token * width + unit;
                for (int g = 0; g < G; g++) {
                    float neighbour = __shfl_down_sync(0xffffffffu, da[g], 1);
                    if (is_real && unit % 2 == 0) publish_pair(to + (u64)g * d, da[g], neighbour);
                }
                if (is_real) write_backward<CELL, bf16>(s, dx, a, row, unit, d);
            }
        }
    }
    if (!a.dh) return;
    for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
        float* sums = parts + buffer++ % 2 * BUFFER;
        bool has_product = rows[first].y > 0;
        if (has_product) product_backward(sums, held, a, rows, first, count, 0, width, STRIDE);
        __syncthreads();
        u32 r = first + in_row;
        if (has_cell && has_unit && r < count)
            write_initial<CELL>(a, rows[r], has_product ? shared_sum(sums, in_row, in_unit, STRIDE) : 0.0f, unit, d);
    }
}

#define FAST(NAME, CELL, WIDE, UNITS)                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_fast_forward_##WIDE(Layer a, Layer b, Rows rows, const u32* sizes, u32 d, u32 slices, u32 groups) {           \
        BlockPosition place(slices, groups);                                                                                \
        forward_fast<CELL, WIDE, UNITS>(place.is_first ? a : b, rows, sizes, d, place);                                      \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1)                                                                    \
        NAME##_fast_backward_##WIDE(Layer a, Layer b, Rows rows, const u32* sizes, u32 d, u32 slices, u32 groups) {          \
        BlockPosition place(slices, groups);                                                                                \
        backward_fast<CELL, WIDE, UNITS>(place.is_first ? a : b, rows, sizes, d, place);                                     \
    }
FAST(simple, SIMPLE, 1, 16)
FAST(simple, SIMPLE, 2, 16)
FAST(simple, SIMPLE, 4, 8)
FAST(gru, GRU, 1, 16)
FAST(gru, GRU, 2, 16)
FAST(gru, GRU, 4, 8)
FAST(lstm, LSTM, 1, 16)
FAST(lstm, LSTM, 2, 16)
FAST(lstm, LSTM, 4, 8)
