// Layers in bf16 whose width is a multiple of eight from 24 to 512, on cards with clusters. A cluster has 16 rows of one layer, for
// all their steps; each of its blocks has 16 units, or 32 of widths above 256, as a cluster has no more than 16 blocks. A warp for
// every four units keeps weights in registers, and threads the states of their two neighbouring units. Sums have the order of
// fast.cu, so they have the same bits.

// What follows from the width, which is at most 32 times SIZE. A part is what a warp of fast.cu has of a sum: WIDE times 32 terms,
// for each gate on the way back.
template <int SIZE> struct Form {
    static constexpr int WIDE = SIZE > 8 ? 2 : 1, PARTS = SIZE / WIDE, TEAM = 4 * WIDE;
    static constexpr u32 UNITS = 16 * WIDE, THREADS = 32 * TEAM;
};

// Which cluster of a launch this is, and which block of it.
struct Seat {
    u32 slice, slices, first;
    bool is_first;
    __device__ __forceinline__ Seat(u32 layers, u32 slices) : slice(blockIdx.x % slices), slices(slices) {
        u32 cluster = blockIdx.x / slices;
        is_first = cluster % layers == 0;
        first = cluster / layers * ROWS;
    }
    // The blocks to give to, the neighbour first, so that not all give to the same one at a time.
    __device__ __forceinline__ u32 other(u32 number) const { return (slice + 1 + number) % slices; }
};

__device__ __forceinline__ uint4 row_of(Rows rows, u32 r, u32 count) { return r < count ? rows[r] : make_uint4(0, 0, 0, 0); }
__device__ __forceinline__ u32 two(const void* from, u64 at) { return *(const u32*)((const bf16*)from + at); }
__device__ __forceinline__ float2 two(const float* from, u64 at) { return *(const float2*)(from + at); }
__device__ __forceinline__ void set_two(float* to, u64 at, const float (&x)[2]) { *(float2*)(to + at) = make_float2(x[0], x[1]); }

// Where four terms of two rows lie in a message of states, and eight of one row in one of gradients. The two rows are eight apart:
// of each the first two terms, then of each the last two, as the tensor cores take them. Rows are mixed so that lanes which read
// neighbouring terms use different banks.
__device__ __forceinline__ u32 at_four(u32 term, u32 row) { return term / 4 * 128 + ((16 * row) ^ (term / 8 % 4 * 32)); }
__device__ __forceinline__ u32 at_eight(u32 term, u32 row) { return term / 8 * 256 + ((16 * row) ^ (term / 8 % 4 * 32)); }

// The states before the first step, rounded, where message 1 will come: that is sent when all have read them.
template <u32 THREADS>
__device__ __forceinline__ void keep_initial(char* to, const Layer& a, Rows rows, u32 first, u32 count, u32 d) {
    __syncthreads();
    for (u32 i = threadIdx.x; i < ROWS * d / 4; i += THREADS) {
        u32 term = i / ROWS * 4, in_row = i % ROWS;
        uint4 row = row_of(rows, first + in_row, count);
        if (row.y == 0) continue;
        float4 h = *(const float4*)(a.initial_h + (u64)row.z * d + term);
        u32* at = (u32*)(to + at_four(term, in_row % 8)) + in_row / 8;
        at[0] = pack_bf16(h.x, h.y), at[2] = pack_bf16(h.z, h.w);
    }
}

template <int CELL, int SIZE>
__device__ __forceinline__ void forward_clustered(const Layer& a, Rows rows, u32 count, u32 d, const Seat& seat) {
    constexpr int G = Shape<CELL>::gates, K = Shape<CELL>::kept, WIDE = Form<SIZE>::WIDE;
    extern __shared__ __align__(128) char shared[];
    Mail<SIZE * 1024> mail(shared, 2 * ROWS * d);
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // A tile of eight columns has four gates of two units; the warp's second tile has those beside them. Of a tile's sums a
    // lane has two gates of two rows, and takes the other two of one row from the lane beside it.
    u32 first_unit = seat.slice * Form<SIZE>::UNITS + 4 * warp, unit = first_unit + t / 2 * 2, in_row = g + t % 2 * 8;
    u32 r = seat.first + in_row, steps = rows[seat.first].y;
    uint4 row = row_of(rows, r, count);
    u32 held[SIZE][2][2][2];
#pragma unroll
    for (int i = 0; i < SIZE * 8; i++) {
        u32 term = i / 8 * 32 + 8 * t + i / 4 % 2 * 4 + i % 2 * 2, gate = g % 4, of = first_unit + g / 4 * 2 + i / 2 % 2;
        const bf16* at = (const bf16*)a.weight + (u64)term * (G * d) + gate * d + of;
        bool is_there = term < d && of < d && gate < G;
        held[i / 8][i / 4 % 2][i / 2 % 2][i % 2] = is_there ? (u32)at[0].bits | (u32)at[(u64)G * d].bits << 16 : 0;
    }
    float bias[2][4] = {}, h[2] = {}, c[2] = {};
    u32 others[8];
    for (u32 i = 0; i < 8; i++) others[i] = place_in(mail.start, seat.other(2 * i + t % 2));
    if (a.initial_h) keep_initial<Form<SIZE>::THREADS>(shared + mail.place(1), a, rows, seat.first, count, d);
    cluster_barrier();
    // A warp without units has nothing to do, and neither reads nor gives.
    if (first_unit < d) {
        u64 of_row = (u64)row.z * d + unit;
        for (int n = 0; n < 2; n++) {
            if (a.bias) for (int i = 0; i < G; i++) bias[n][i] = a.bias[i * d + unit + n];
            if (r < count && CELL == GRU && a.initial_h) h[n] = a.initial_h[of_row + n];
            if (r < count && CELL == LSTM && a.initial_c) c[n] = a.initial_c[of_row + n];
        }
        if (r < count && row.y == 0)
            for (u32 n = 0; n < 2; n++) keep_state<CELL>(a, row, unit + n, d);
        // Of the step after the present one: on its way while the block waits.
        u32 ahead[G] = {};
        auto read = [&](u32 step) {
            if (row.y <= step) return;
            u64 at = (u64)token_of(row, step, a.is_reversed) * (G * d) + unit;
            for (int i = 0; i < G; i++) ahead[i] = two(a.x, at + i * d);
        };
        read(0);
        for (u32 step = 0; step < steps; step++) {
            bool is_real = row.y > step;
            u32 x[G];
            for (int i = 0; i < G; i++) x[i] = ahead[i];
            read(step + 1);
            float sums[2][4] = {};
            if (step > 0) mail.await(step - 1);
            __syncwarp();
            if (step > 0 || a.initial_h) {
                const char* from = shared + mail.place(step + 1) + at_four(8 * t, g);
#pragma unroll
                for (int part = 0; part < Form<SIZE>::PARTS; part++) {
                    float own[2][4] = {};
#pragma unroll
                    for (int i = 0; i < 2 * WIDE; i++) {
                        int block = WIDE * part + i / 2, half = i % 2;
                        uint4 four = *(const uint4*)(from + at_four(32 * block + 4 * half, 0));
                        u32 tile[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                        for (int n = 0; n < 2; n++) multiply(own[n], tile, held[block][half][n][0], held[block][half][n][1]);
                    }
#pragma unroll
                    for (int i = 0; i < 8; i++) sums[i / 4][i % 4] += own[i / 4][i % 4];
                }
            }
            float kept[2][4];
            for (int n = 0; n < 2; n++) {
                float from[2], hidden[4], inputs[4];
                for (int i = 0; i < 2; i++) from[i] = __shfl_xor_sync(0xffffffffu, t % 2 ? sums[n][i] : sums[n][2 + i], 1);
                for (int i = 0; i < G; i++) {
                    bool is_own = i / 2 == (int)(t % 2);
                    float sum = is_own ? t % 2 ? sums[n][2 + i % 2] : sums[n][i % 2] : from[i % 2];
                    hidden[i] = bias[n][i];
                    if (step > 0 || a.initial_h) hidden[i] += sum;
                    inputs[i] = n ? high_of(x[i]) : low_of(x[i]);
                }
                if (is_real) cell_forward<CELL, Quick>(inputs, hidden, h[n], c[n], kept[n]);
            }
            u32 pair = is_real ? handed_pair(h[0], h[1]) : 0;
            if (step + 1 < steps) {
                u32 beside = __shfl_xor_sync(0xffffffffu, pair, 1), at = mail.place(step) + at_four(first_unit, g) + t / 2 * 8;
                uint2 both = t % 2 ? make_uint2(beside, pair) : make_uint2(pair, beside);
#pragma unroll
                for (u32 i = 0; i < 8; i++)
                    if (2 * i + t % 2 < seat.slices) give_block(others[i] + at, others[i] + mail.barrier(step), both);
            }
            if (!is_real) continue;
            u64 token = token_of(row, step, a.is_reversed), at = token * d + unit;
            *(u32*)(a.narrow + at) = pair;
            set_two(a.outputs, at, h);
            if (CELL == LSTM) set_two(a.c, at, c);
            if (K > 0 && a.gates)
                for (int i = 0; i < K; i++)
                    *(u32*)((bf16*)a.gates + token * (K * d) + i * d + unit) = pack_bf16(kept[0][i], kept[1][i]);
        }
        // States stay what they are at steps that the row does not have.
        if (row.y > 0 && a.last_h) {
            set_two(a.last_h, of_row, h);
            if (CELL == LSTM) set_two(a.last_c, of_row, c);
        }
    }
    // Nobody leaves while others may still write into its memory.
    cluster_barrier();
}

// Of four lanes each has a word of four rows; afterwards each has all words of one row.
__device__ __forceinline__ uint4 turn_words(const u32 (&words)[4]) {
    u32 lane = threadIdx.x % 4, near[2][2], all[4];
    bool is_odd = lane % 2, is_late = lane / 2;
    for (int i = 0; i < 2; i++) {
        u32 from = __shfl_xor_sync(0xffffffffu, is_odd ? words[2 * i] : words[2 * i + 1], 1);
        near[i][0] = is_odd ? from : words[2 * i];
        near[i][1] = is_odd ? words[2 * i + 1] : from;
    }
    for (int i = 0; i < 2; i++) {
        u32 from = __shfl_xor_sync(0xffffffffu, is_late ? near[0][i] : near[1][i], 2);
        all[i] = is_late ? from : near[0][i];
        all[2 + i] = is_late ? near[1][i] : from;
    }
    return make_uint4(all[0], all[1], all[2], all[3]);
}

// What a thread reads for its two units at a step, as it lies in memory.
struct Ahead {
    u32 kept[4];
    float2 d_outputs, h_before, h, c_before, c;
};

template <int CELL>
__device__ __forceinline__ void read_ahead(Ahead& s, const Layer& a, uint4 row, u32 step, u32 unit, u32 d) {
    constexpr int K = Shape<CELL>::kept;
    u64 token = token_of(row, step, a.is_reversed), here = token * d + unit, of_row = (u64)row.z * d + unit;
    u64 before = step > 0 ? (u64)token_of(row, step - 1, a.is_reversed) * d + unit : of_row;
    for (int i = 0; i < K; i++) s.kept[i] = two(a.gates, token * (K * d) + i * d + unit);
    s.d_outputs = two(a.d_outputs, here);
    if (CELL == SIMPLE) s.h = two(a.outputs, here);
    const float* h = step > 0 ? a.outputs : a.initial_h;
    if (CELL == GRU) s.h_before = h ? two(h, before) : make_float2(0.0f, 0.0f);
    const float* c = step > 0 ? a.c : a.initial_c;
    if (CELL == LSTM) s.c_before = c ? two(c, before) : make_float2(0.0f, 0.0f), s.c = two(a.c, here);
}

__device__ __forceinline__ float one(float2 of, int n) { return n ? of.y : of.x; }

// Sums of parts lie so that neither writers nor readers, which have four rows at a time, get into each other's way.
template <u32 UNITS> __device__ __forceinline__ u32 at_sum(u32 part, u32 row, u32 column) {
    return (part * ROWS + row) * UNITS + (column ^ (UNITS == 16 ? (row & 2) * 4 : row % 4 * 8));
}

template <int CELL, int SIZE>
__device__ __forceinline__ void backward_clustered(const Layer& a, Rows rows, u32 count, u32 d, const Seat& seat) {
    constexpr int G = Shape<CELL>::gates, PARTS = Form<SIZE>::PARTS, TEAM = Form<SIZE>::TEAM, OWN = PARTS / TEAM;
    constexpr int BLOCKS = G * Form<SIZE>::WIDE, COLUMNS = 2 * Form<SIZE>::WIDE;
    constexpr u32 UNITS = Form<SIZE>::UNITS, PLACE = SIZE * G * 1024, BUFFER = PARTS * ROWS * UNITS;
    extern __shared__ __align__(128) char shared[];
    u32 width = G * d;
    Mail<PLACE> mail(shared, 2 * ROWS * width);
    float* parts = (float*)(shared + 2 * PLACE + 128);
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // A warp has eight units of eight rows: what it gives of a gate is 128 neighbouring bytes.
    u32 in_row = threadIdx.x / 4 % ROWS, in_unit = threadIdx.x / (4 * ROWS) * 8 + 2 * t, unit = seat.slice * UNITS + in_unit;
    u32 r = seat.first + in_row, steps = rows[seat.first].y;
    uint4 row = row_of(rows, r, count);
    bool has_unit = unit < d;
    // Of every TEAM parts the warp has one, for all units of the block.
    u32 held[OWN][BLOCKS][2][COLUMNS][2];
    constexpr int EACH = 4 * COLUMNS;
#pragma unroll
    for (int i = 0; i < OWN * BLOCKS * EACH; i++) {
        int own = i / (EACH * BLOCKS), block = i / EACH % BLOCKS, half = i / (EACH / 2) % 2, n = i / 2 % COLUMNS;
        u32 part = warp + own * TEAM, term = (part * BLOCKS + block) * 32 + 8 * t + half * 4 + i % 2 * 2;
        u32 of = seat.slice * UNITS + n * 8 + g;
        const bf16* at = (const bf16*)a.weight + (u64)of * width + term;
        held[own][block][half][n][i % 2] = term < width && of < d ? *(const u32*)at : 0;
    }
    u32 others[16];
    for (u32 i = 0; i < 16; i++) others[i] = place_in(mail.start, seat.other(i));
    // After turning words the lane has a gate of eight units.
    u32 gate = t, eight = unit - 2 * t;
    bool gives = gate < G && eight < d;
    u64 of_row = (u64)row.z * d + unit;
    float dc[2] = {}, past[2] = {};
    // This thread's units of the product of a message.
    auto product = [&](u32 message, float (&sum)[2]) {
        mail.await(message);
        __syncwarp();
        const char* from = shared + mail.place(message);
        float* to = parts + message % 2 * BUFFER;
#pragma unroll
        for (int own = 0; own < OWN; own++) {
            u32 part = warp + TEAM * own;
            float sums[COLUMNS][4] = {};
#pragma unroll
            for (int block = 0; block < BLOCKS; block++) {
                u32 term = (part * BLOCKS + block) * 32 + 8 * t;
                uint4 low = *(const uint4*)(from + at_eight(term, g)), high = *(const uint4*)(from + at_eight(term, g + 8));
                u32 early[4] = {low.x, high.x, low.y, high.y}, late[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
                for (int n = 0; n < COLUMNS; n++) multiply(sums[n], early, held[own][block][0][n][0], held[own][block][0][n][1]);
#pragma unroll
                for (int n = 0; n < COLUMNS; n++) multiply(sums[n], late, held[own][block][1][n][0], held[own][block][1][n][1]);
            }
#pragma unroll
            for (int n = 0; n < COLUMNS; n++) {
                *(float2*)(to + at_sum<UNITS>(part, g, 8 * n + 2 * t)) = make_float2(sums[n][0], sums[n][1]);
                *(float2*)(to + at_sum<UNITS>(part, g + 8, 8 * n + 2 * t)) = make_float2(sums[n][2], sums[n][3]);
            }
        }
        __syncthreads();
        sum[0] = sum[1] = 0.0f;
#pragma unroll
        for (u32 part = 0; part < PARTS; part++) {
            float2 both = *(const float2*)(to + at_sum<UNITS>(part, in_row, in_unit));
            sum[0] += both.x, sum[1] += both.y;
        }
    };
    Ahead ahead = {};
    if (has_unit && steps > 0 && row.y > steps - 1) read_ahead<CELL>(ahead, a, row, steps - 1, unit, d);
    cluster_barrier();
    u32 message = 0;
    for (u32 step = steps; step-- > 0;) {
        bool is_real = has_unit && row.y > step, is_last = step + 1 == row.y, has_product = step + 1 < steps;
        Ahead s = ahead;
        if (step > 0 && has_unit && row.y >= step) read_ahead<CELL>(ahead, a, row, step - 1, unit, d);
        float sum[2], dx[2][4] = {}, da[2][4] = {};
        if (has_product) product(message - 1, sum);
        if (is_real)
            for (int n = 0; n < 2; n++) {
                float kept[4], dh = one(s.d_outputs, n);
                for (int i = 0; i < 4; i++) kept[i] = n ? high_of(s.kept[i]) : low_of(s.kept[i]);
                if (is_last && a.d_last_h) dh += a.d_last_h[of_row + n];
                if (!is_last && CELL == GRU) dh += past[n];
                if (is_last) dc[n] = CELL == LSTM && a.d_last_c ? a.d_last_c[of_row + n] : 0.0f;
                if (has_product) dh += sum[n];
                cell_backward<CELL, Quick>(kept, one(s.h_before, n), one(s.h, n), one(s.c_before, n), one(s.c, n), dh, dc[n], dx[n],
                                           da[n]);
                past[n] = dh;
            }
        u32 words[4];
        for (int i = 0; i < 4; i++) words[i] = is_real && i < G ? handed_pair(da[0][i], da[1][i]) : 0;
        uint4 turned = turn_words(words);
        if (gives && (step > 0 || a.dh)) {
            u32 at = mail.place(message) + at_eight(gate * d + eight, in_row);
#pragma unroll
            for (u32 i = 0; i < 16; i++)
                if (i < seat.slices) give_block(others[i] + at, others[i] + mail.barrier(message), turned);
        }
        message++;
        if (!is_real) continue;
        u64 at = (u64)token_of(row, step, a.is_reversed) * width;
        if (gives) *(uint4*)((bf16*)a.da + at + gate * d + eight) = turned;
        if (CELL == GRU)
            for (int i = 0; i < 3; i++) *(u32*)((bf16*)a.dx + at + i * d + unit) = pack_bf16(dx[0][i], dx[1][i]);
    }
    if (CELL == LSTM && has_unit && row.y > 0) set_two(a.dc, of_row, dc);
    if (a.dh) {
        float sum[2] = {0.0f, 0.0f};
        if (steps > 0) product(message - 1, sum);
        if (has_unit && r < count)
            for (u32 n = 0; n < 2; n++) {
                if (row.y == 0) write_initial<CELL>(a, row, 0.0f, unit + n, d);
                else a.dh[of_row + n] = CELL == GRU ? sum[n] + past[n] : sum[n];
            }
    }
    cluster_barrier();
}

// Blocks with 32 units have the registers of a multiprocessor alone.
#define CLUSTERED(NAME, WAY, CELL, SIZE)                                                                                     \
    extern "C" __global__ void __launch_bounds__(Form<SIZE>::THREADS, 2 / Form<SIZE>::WIDE)                                  \
        NAME##_clustered_##WAY##_##SIZE(Layer a, Layer b, Rows rows, const u32* sizes, u32 d, u32 layers, u32 slices) {       \
        if constexpr (HAS_CLUSTERS) {                                                                                        \
            Seat seat(layers, slices);                                                                                       \
            if (seat.first >= *sizes) return;                                                                                \
            WAY##_clustered<CELL, SIZE>(seat.is_first ? a : b, rows, *sizes, d, seat);                                        \
        }                                                                                                                    \
    }
#define CLUSTERED_BOTH(NAME, CELL, SIZE)                                                                                     \
    CLUSTERED(NAME, forward, CELL, SIZE)                                                                                     \
    CLUSTERED(NAME, backward, CELL, SIZE)
#define CLUSTERED_ALL(NAME, CELL)                                                                                            \
    CLUSTERED_BOTH(NAME, CELL, 4)                                                                                            \
    CLUSTERED_BOTH(NAME, CELL, 8)                                                                                            \
    CLUSTERED_BOTH(NAME, CELL, 16)
CLUSTERED_ALL(simple, SIMPLE)
CLUSTERED_ALL(gru, GRU)
CLUSTERED_ALL(lstm, LSTM)
