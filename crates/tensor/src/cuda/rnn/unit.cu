// One unit of one row: the values that its thread reads before the product of a step, and writes afterwards.
// A thread reads back only its own values of the previous step, so no block waits for these.

template <int CELL> struct Forward {
    float x[4];
    float h, c;
    u64 token;
};

template <int CELL, class T>
__device__ __forceinline__ void read_forward(Forward<CELL>& s, const Layer& a, uint4 row, u32 step, u32 unit, u32 d) {
    constexpr int G = Shape<CELL>::gates;
    s.token = token_of(row, step, a.is_reversed);
    const T* x = (const T*)a.x + s.token * (G * d) + unit;
    for (int g = 0; g < G; g++) s.x[g] = widen(x[(u64)g * d]);
    u64 before = step > 0 ? (u64)token_of(row, step - 1, a.is_reversed) * d + unit : (u64)row.z * d + unit;
    s.h = s.c = 0.0f;
    if (CELL == GRU) {
        const float* h = step > 0 ? a.outputs : a.initial_h;
        if (h) s.h = h[before];
    }
    if (CELL == LSTM) {
        const float* c = step > 0 ? a.c : a.initial_c;
        if (c) s.c = c[before];
    }
}

// Writes everything that is not published to other blocks; published values go first.
template <int CELL, class T>
__device__ __forceinline__ void write_forward(const Forward<CELL>& s, const float (&kept)[4], const Layer& a, uint4 row, u32 step,
                                              u32 unit, u32 d) {
    constexpr int K = Shape<CELL>::kept;
    if (K > 0 && a.gates) {
        T* gates = (T*)a.gates + s.token * (K * d) + unit;
        for (int g = 0; g < K; g++) gates[(u64)g * d] = narrow<T>(kept[g]);
    }
    if (CELL == LSTM) a.c[s.token * d + unit] = s.c;
    if (step + 1 == row.y && a.last_h) {
        u64 at = (u64)row.z * d + unit;
        a.last_h[at] = s.h;
        if (CELL == LSTM) a.last_c[at] = s.c;
    }
}

// The last state of an empty sequence is its initial state.
template <int CELL> __device__ __forceinline__ void keep_state(const Layer& a, uint4 row, u32 unit, u32 d) {
    u64 at = (u64)row.z * d + unit;
    a.last_h[at] = a.initial_h ? a.initial_h[at] : 0.0f;
    if (CELL == LSTM) a.last_c[at] = a.initial_c ? a.initial_c[at] : 0.0f;
}

template <int CELL> struct Backward {
    float kept[4];
    float h_before, h, c_before, c, dh, dc;
    u64 token;
};

// Sets `dh` to the part of the gradient known before the product.
template <int CELL, class T>
__device__ __forceinline__ void read_backward(Backward<CELL>& s, const Layer& a, uint4 row, u32 step, u32 unit, u32 d) {
    constexpr int K = Shape<CELL>::kept;
    s.token = token_of(row, step, a.is_reversed);
    u64 here = s.token * d + unit, of_row = (u64)row.z * d + unit;
    u64 before = step > 0 ? (u64)token_of(row, step - 1, a.is_reversed) * d + unit : of_row;
    if (K > 0) {
        const T* gates = (const T*)a.gates + s.token * (K * d) + unit;
        for (int g = 0; g < K; g++) s.kept[g] = widen(gates[(u64)g * d]);
    }
    bool is_last = step + 1 == row.y;
    s.h = s.h_before = s.c = s.c_before = s.dc = 0.0f;
    s.dh = a.d_outputs[here];
    if (is_last && a.d_last_h) s.dh += a.d_last_h[of_row];
    if (CELL == SIMPLE) s.h = a.outputs[here];
    if (CELL == GRU) {
        const float* h = step > 0 ? a.outputs : a.initial_h;
        if (h) s.h_before = h[before];
    }
    if (!is_last && (CELL == GRU || a.carries)) s.dh += a.past[of_row];
    if (CELL == LSTM) {
        const float* c = step > 0 ? a.c : a.initial_c;
        if (c) s.c_before = c[before];
        s.c = a.c[here];
        if (!is_last) s.dc = a.dc[of_row];
        else if (a.d_last_c) s.dc = a.d_last_c[of_row];
    }
}

// Writes everything that is not published to other blocks.
template <int CELL, class T>
__device__ __forceinline__ void write_backward(const Backward<CELL>& s, const float (&dx)[4], const Layer& a, uint4 row, u32 unit,
                                               u32 d) {
    u64 of_row = (u64)row.z * d + unit;
    if (CELL == GRU) {
        T* to = (T*)a.dx + s.token * (3 * d) + unit;
        if (!a.carries) for (int g = 0; g < 3; g++) to[(u64)g * d] = narrow<T>(dx[g]);
        a.past[of_row] = s.dh;
    }
    if (CELL == LSTM) a.dc[of_row] = s.dc;
}

// The gradients of the initial states, given the sum of the product over the first step.
template <int CELL> __device__ __forceinline__ void write_initial(const Layer& a, uint4 row, float sum, u32 unit, u32 d) {
    u64 of_row = (u64)row.z * d + unit;
    if (row.y == 0) {
        a.dh[of_row] = a.d_last_h ? a.d_last_h[of_row] : 0.0f;
        if (CELL == LSTM) a.dc[of_row] = a.d_last_c ? a.d_last_c[of_row] : 0.0f;
    } else {
        a.dh[of_row] = CELL == GRU || a.carries ? sum + a.past[of_row] : sum;
    }
}
