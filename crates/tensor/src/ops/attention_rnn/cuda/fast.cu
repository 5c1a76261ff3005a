// The decoder in bf16 with widths that are multiples of eight: states up to 512, values up to twice the states, queries up to
// QUERIES times the states (0: the state is the query). A block has eight units and the columns that go with them, and keeps its
// part of all weights in registers; blocks with other rows are independent. Attention is divided as in teams.cu.

static constexpr int WIDE = 2, UNITS = 8, VALUES = 2;

template <int CELL, int QUERIES>
__device__ __forceinline__ void decoder_forward(const Decoder& a, const Attention& b, Rows rows, const u32* sizes, u32 d, const BlockPosition& place,
                                                const Team& team, u32 cache_size) {
    constexpr int G = Shape<CELL>::gates, BLOCKS = WIDE * VALUES, HELD = QUERIES > 0 ? QUERIES : 1;
    constexpr u32 STRIDE = sums_stride((G > HELD ? G : HELD) * UNITS, UNITS), BUFFER = WARPS * ROWS * STRIDE;
    extern __shared__ __align__(16) float parts[];
    float* scratch = parts + 2 * BUFFER;
    const Layer& cell = a.cell;
    u32 count = *sizes, steps = count ? rows[0].y : 0, lane_unit = threadIdx.x % UNITS;
    u32 in_row = threadIdx.x / UNITS, unit = place.slice * UNITS + lane_unit;
    bool has_cell = threadIdx.x < ROWS * UNITS, has_unit = unit < d;
    Held<WIDE, G> hidden;
    hold(hidden, [&](u32 term, u32 column) {
        u32 of = place.slice * UNITS + column % UNITS;
        return column_pair(cell.weight, d, G * d, term, column / UNITS * d + of, of < d);
    });
    Held<BLOCKS, G> input;
    hold(input, [&](u32 term, u32 column) {
        u32 of = place.slice * UNITS + column % UNITS;
        return column_pair(a.context_weight, b.value_width, G * d, term, column / UNITS * d + of, of < d);
    });
    u32 first_query = place.slice * (8 * QUERIES);
    Held<WIDE, HELD> query;
    if (QUERIES > 0)
        hold(query, [&](u32 term, u32 column) {
            u32 of = first_query + column;
            return column_pair(a.query_weight, d, b.key_width, term, of, of < b.key_width);
        });
    Matrices matrices(b.keys, b.key_width, b.values, b.value_width, team);
    Cache cache = {(bf16*)(scratch + b.key_width + 2 * b.longest), cache_size};
    fill_cache(team, place, b, matrices, cache, rows, count);
    u32 buffer = 0;
    for (u32 step = 0; step < steps; step++) {
        for (u32 first = place.group * ROWS; QUERIES > 0 && first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            u32 left[WIDE][2][4];
            await_states<WIDE>(left, cell, rows, first, count, step, d);
            float own[HELD][4];
            clear_sums(own);
            multiply_held<0>(own, left, query);
            float* sums = parts + buffer++ % 2 * BUFFER;
            share_sums(sums, own, STRIDE);
            __syncthreads();
            u32 r = first + threadIdx.x / (8 * HELD), in_column = threadIdx.x % (8 * HELD), column = first_query + in_column;
            if (threadIdx.x < ROWS * 8 * HELD && r < count && rows[r].y > step && column < b.key_width)
                publish(b.queries + (u64)(rows[r].x + step) * b.key_width + column,
                     shared_sum(sums, r - first, in_column, STRIDE));
        }
        // The scores of all rows come before the contexts of the first, so that blocks work while others wait for a row.
        share_rows(team, place, b, matrices, cache, rows, count, step, [&](uint4 row, const Share& share, bf16*, u32) {
            score_share(a, b, row, share, step, d, scratch);
        });
        share_rows(team, place, b, matrices, cache, rows, count, step, [&](uint4 row, const Share& share, bf16*, u32) {
            sum_share(b, row, share, step, scratch);
        });
        for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            u32 r = first + in_row;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = has_cell && has_unit && r < count && row.y > step;
            Forward<CELL> s;
            if (is_real) read_forward<CELL, bf16>(s, cell, row, step, unit, d);
            float own[G][4];
            clear_sums(own);
            u32 states[WIDE][2][4];
            await_states<WIDE>(states, cell, rows, first, count, step, d);
            multiply_held<0>(own, states, hidden);
            float* sums = parts + buffer++ % 2 * BUFFER;
            share_sums(sums, own, STRIDE);
            float from_state[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (cell.bias && is_real) for (int g = 0; g < G; g++) from_state[g] = cell.bias[(u64)g * d + unit];
            __syncthreads();
            // Work that overlaps with the arrival of the contexts.
            if (has_cell) for (int g = 0; g < G; g++) from_state[g] += shared_sum(sums, in_row, g * UNITS + lane_unit, STRIDE);
            clear_sums(own);
            const bf16 *low, *high;
            lane_rows(low, high, b.narrow, b.value_width, rows, first, count, step, step, 0);
            u32 contexts[BLOCKS][2][4];
            await_rows<BLOCKS>(contexts, low, high, first_term<BLOCKS>(), b.value_width);
            multiply_held<0>(own, contexts, input);
            sums = parts + buffer++ % 2 * BUFFER;
            share_sums(sums, own, STRIDE);
            __syncthreads();
            if (has_cell) {
                float kept[4];
                for (int g = 0; g < G; g++)
                    if (is_real) s.x[g] += shared_sum(sums, in_row, g * UNITS + lane_unit, STRIDE);
                if (is_real) cell_forward<CELL, Quick>(s.x, from_state, s.h, s.c, kept);
                float neighbour = __shfl_down_sync(0xffffffffu, s.h, 1);
                if (is_real) {
                    u64 at = s.token * d + unit;
                    if (unit % 2 == 0) publish_pair(cell.narrow + at, s.h, neighbour);
                    publish(cell.outputs + at, s.h);
                    write_forward<CELL, bf16>(s, kept, cell, row, step, unit, d);
                }
            }
        }
    }
}

// The state's gradient through the query of step `at`, for rows longer than that; of this thread's row and unit.
template <int QUERIES, int BLOCKS>
__device__ __forceinline__ float from_query(const Attention& b, const Held<BLOCKS, 1>& query, float* sums, Rows rows, u32 first,
                                            u32 count, u32 unit, u32 at, u32 d, u32 stride) {
    u32 in_row = threadIdx.x / UNITS, r = first + in_row;
    bool has_cell = threadIdx.x < ROWS * UNITS;
    if (QUERIES == 0) {
        bool is_real = has_cell && unit < d && r < count && rows[r].y > at;
        return is_real ? await_value((const float*)b.dq + (u64)(rows[r].x + at) * d + unit) : 0.0f;
    }
    const bf16 *low, *high;
    lane_rows(low, high, (const bf16*)b.dq, b.key_width, rows, first, count, at, at, 0);
    u32 left[BLOCKS][2][4];
    await_rows<BLOCKS>(left, low, high, first_term<BLOCKS>(), b.key_width);
    float own[1][4];
    clear_sums(own);
    multiply_held<0>(own, left, query);
    share_sums(sums, own, stride);
    __syncthreads();
    return has_cell ? shared_sum(sums, in_row, threadIdx.x % UNITS, stride) : 0.0f;
}

template <int CELL, int QUERIES>
__device__ __forceinline__ void decoder_backward(const Decoder& a, const Attention& b, Rows rows, const u32* sizes, u32 d, const BlockPosition& place,
                                                 const Team& team, u32 cache_size) {
    constexpr int G = Shape<CELL>::gates, BLOCKS = G * WIDE, QUERY_BLOCKS = WIDE * (QUERIES > 0 ? QUERIES : 1);
    constexpr u32 STRIDE = sums_stride(8 * VALUES + UNITS, UNITS), BUFFER = WARPS * ROWS * STRIDE;
    extern __shared__ __align__(16) float parts[];
    float* scratch = parts + 2 * BUFFER;
    const Layer& cell = a.cell;
    u32 count = *sizes, steps = count ? rows[0].y : 0, width = G * d, lane_unit = threadIdx.x % UNITS;
    u32 in_row = threadIdx.x / UNITS, unit = place.slice * UNITS + lane_unit;
    u32 first_value = place.slice * (8 * VALUES);
    bool has_cell = threadIdx.x < ROWS * UNITS, has_unit = unit < d;
    Held<BLOCKS, VALUES> values;
    hold(values, [&](u32 term, u32 column) {
        return row_pair(a.context_weight, b.value_width, width, term, first_value + column);
    });
    Held<BLOCKS, 1> hidden;
    hold(hidden, [&](u32 term, u32 column) { return row_pair(cell.weight, d, width, term, place.slice * UNITS + column); });
    Held<QUERY_BLOCKS, 1> query;
    if (QUERIES > 0)
        hold(query, [&](u32 term, u32 column) {
            return row_pair(a.query_weight, d, b.key_width, term, place.slice * UNITS + column);
        });
    Matrices matrices(b.values, b.value_width, b.keys, b.key_width, team);
    Cache cache = {(bf16*)(scratch + b.value_width + b.key_width + 2 * b.longest), cache_size};
    float* tanh_grads = tanh_grad_buffer(b, matrices, cache);
    fill_cache(team, place, b, matrices, cache, rows, count);
    u32 buffer = 0;
    for (u32 step = steps; step-- > 0;) {
        for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            u32 r = first + in_row;
            uint4 row = rows[min(r, count - 1)];
            bool is_real = has_cell && has_unit && r < count && row.y > step;
            Backward<CELL> s;
            if (is_real) read_backward<CELL, bf16>(s, cell, row, step, unit, d);
            float sum = 0.0f;
            if (rows[first].y > step + 1)
                sum = from_query<QUERIES>(b, query, parts + (QUERIES > 0 ? buffer++ : 0) % 2 * BUFFER, rows, first, count, unit,
                                          step + 1, d, STRIDE);
            if (has_cell) {
                float dx[4] = {0.0f, 0.0f, 0.0f, 0.0f}, da[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                if (is_real) {
                    s.dh += sum;
                    cell_backward<CELL, Quick>(s.kept, s.h_before, s.h, s.c_before, s.c, s.dh, s.dc, dx, da);
                }
                u64 at = s.token * width + unit;
                for (int g = 0; g < G; g++) {
                    float neighbour = __shfl_down_sync(0xffffffffu, dx[g], 1);
                    if (is_real && unit % 2 == 0) publish_pair((bf16*)cell.dx + at + (u64)g * d, dx[g], neighbour);
                    if (CELL == GRU) {
                        neighbour = __shfl_down_sync(0xffffffffu, da[g], 1);
                        if (is_real && unit % 2 == 0) publish_pair((bf16*)cell.da + at + (u64)g * d, da[g], neighbour);
                    }
                }
                if (is_real) write_backward<CELL, bf16>(s, dx, cell, row, unit, d);
            }
        }
        for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
            if (rows[first].y <= step) break;
            float own[VALUES + 1][4];
            clear_sums(own);
            float(&of_values)[VALUES][4] = *(float(*)[VALUES][4]) & own[0];
            float(&of_hidden)[1][4] = *(float(*)[1][4]) & own[VALUES];
            u32 r = first + threadIdx.x / (8 * VALUES), in_column = threadIdx.x % (8 * VALUES), column = first_value + in_column;
            bool has_value = r < count && rows[r].y > step && column < b.value_width;
            u64 at = has_value ? (u64)(rows[r].x + step) * b.value_width + column : 0;
            // Read early, to hide the latency.
            float as_result = has_value && a.d_contexts ? a.d_contexts[at] : 0.0f;
            const bf16 *low, *high;
            lane_rows(low, high, (const bf16*)cell.dx, width, rows, first, count, step, step, 0);
            u32 left[BLOCKS][2][4];
            await_rows<BLOCKS>(left, low, high, first_term<BLOCKS>(), width);
            multiply_held<0>(of_values, left, values);
            if (CELL == GRU) {
                lane_rows(low, high, (const bf16*)cell.da, width, rows, first, count, step, step, 0);
                await_rows<BLOCKS>(left, low, high, first_term<BLOCKS>(), width);
            }
            multiply_held<0>(of_hidden, left, hidden);
            float* sums = parts + buffer++ % 2 * BUFFER;
            share_sums(sums, own, STRIDE);
            __syncthreads();
            if (has_value) publish(b.d_contexts + at, shared_sum(sums, r - first, in_column, STRIDE) + as_result);
            r = first + in_row;
            if (has_cell && has_unit && r < count && rows[r].y > step) {
                float* past = cell.past + (u64)rows[r].z * d + unit;
                float sum = shared_sum(sums, in_row, 8 * VALUES + lane_unit, STRIDE);
                *past = CELL == GRU ? *past + sum : sum;
            }
        }
        share_rows(team, place, b, matrices, cache, rows, count, step, [&](uint4 row, const Share& share, bf16*, u32) {
            weight_share(b, row, share, step, scratch);
        });
        share_rows(team, place, b, matrices, cache, rows, count, step, [&](uint4 row, const Share& share, bf16*, u32) {
            query_share(b, row, share, step, scratch, tanh_grads);
        });
    }
    for (u32 first = place.group * ROWS; first < count; first += place.groups * ROWS) {
        float sum = 0.0f;
        if (rows[first].y > 0)
            sum = from_query<QUERIES>(b, query, parts + (QUERIES > 0 ? buffer++ : 0) % 2 * BUFFER, rows, first, count, unit, 0, d,
                                      STRIDE);
        u32 r = first + in_row;
        if (has_cell && has_unit && r < count) write_initial<CELL>(cell, rows[r], sum, unit, d);
    }
}

#define FAST(NAME, CELL, QUERIES)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256, 1) NAME##_fast_decoder_forward_##QUERIES(                             \
        Decoder a, Attention b, Rows rows, const u32* sizes, u32 d, u32 slices, u32 groups, u32 cache_size) {               \
        BlockPosition place(slices, groups);                                                                                \
        decoder_forward<CELL, QUERIES>(a, b, rows, sizes, d, place, Team(slices, place.slice), cache_size);                 \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(256, 1) NAME##_fast_decoder_backward_##QUERIES(                            \
        Decoder a, Attention b, Rows rows, const u32* sizes, u32 d, u32 slices, u32 groups, u32 cache_size) {               \
        BlockPosition place(slices, groups);                                                                                \
        decoder_backward<CELL, QUERIES>(a, b, rows, sizes, d, place, Team(slices, place.slice), cache_size);                \
    }
FAST(simple, SIMPLE, 0)
FAST(simple, SIMPLE, 1)
FAST(simple, SIMPLE, 2)
FAST(gru, GRU, 0)
FAST(gru, GRU, 1)
FAST(gru, GRU, 2)
FAST(lstm, LSTM, 0)
FAST(lstm, LSTM, 1)
FAST(lstm, LSTM, 2)
