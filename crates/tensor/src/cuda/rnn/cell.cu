// The three cells for one unit of one row, as in cpu/cell.rs: the elementwise part of a step, between its
// matrix products.

enum Cell { SIMPLE, GRU, LSTM };

template <int CELL> struct Shape {
    static constexpr int gates = CELL == SIMPLE ? 1 : CELL == GRU ? 3 : 4;
    static constexpr int kept = CELL == SIMPLE ? 0 : 4;
};

// Full f32 precision.
struct Exact {
    static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
    static __device__ __forceinline__ float tanh(float x) { return tanhf(x); }
};
// Absolute error about 1e-7: far below bf16 precision.
struct Quick {
    static __device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
    static __device__ __forceinline__ float tanh(float x) {
        x = fminf(fmaxf(x, -15.0f), 15.0f) + (x - x);     // NaN stays NaN
        return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
    }
};
template <class T> struct Functions { typedef Exact type; };
template <> struct Functions<bf16> { typedef Quick type; };

// `x` is the input side, `a` the hidden side; `h` and `c` become those after the step.
template <int CELL, class F>
__device__ __forceinline__ void cell_forward(const float (&x)[4], const float (&a)[4], float& h, float& c, float (&kept)[4]) {
    if (CELL == SIMPLE) {
        h = F::tanh(x[0] + a[0]);
    } else if (CELL == GRU) {
        float r = F::sigmoid(x[0] + a[0]), z = F::sigmoid(x[1] + a[1]), n = F::tanh(x[2] + r * a[2]);
        h = (1.0f - z) * n + z * h;
        kept[0] = r, kept[1] = z, kept[2] = n, kept[3] = a[2];
    } else {
        float i = F::sigmoid(x[0] + a[0]), f = F::sigmoid(x[1] + a[1]), g = F::tanh(x[2] + a[2]);
        float o = F::sigmoid(x[3] + a[3]);
        c = f * c + i * g;
        h = o * F::tanh(c);
        kept[0] = i, kept[1] = f, kept[2] = g, kept[3] = o;
    }
}

// On entry `dh` is the whole gradient of h, on return the part of the previous state's gradient that bypasses
// the gates; on entry `dc` is the gradient of c from later steps, on return that of the previous c.
template <int CELL, class F>
__device__ __forceinline__ void cell_backward(const float (&kept)[4], float h_before, float h, float c_before, float c, float& dh,
                                              float& dc, float (&dx)[4], float (&da)[4]) {
    if (CELL == SIMPLE) {
        dx[0] = da[0] = dh * (1.0f - h * h);
        dh = 0.0f;
    } else if (CELL == GRU) {
        float r = kept[0], z = kept[1], n = kept[2], past = kept[3];
        float inner = dh * (1.0f - z) * (1.0f - n * n);
        dx[1] = da[1] = dh * (h_before - n) * z * (1.0f - z);
        dx[2] = inner;
        da[2] = inner * r;
        dx[0] = da[0] = inner * past * r * (1.0f - r);
        dh *= z;
    } else {
        float i = kept[0], f = kept[1], g = kept[2], o = kept[3], shown = F::tanh(c);
        dx[3] = da[3] = dh * shown * o * (1.0f - o);
        dc += dh * o * (1.0f - shown * shown);
        dh = 0.0f;
        dx[0] = da[0] = dc * g * i * (1.0f - i);
        dx[1] = da[1] = dc * c_before * f * (1.0f - f);
        dx[2] = da[2] = dc * i * (1.0f - g * g);
        dc *= f;
    }
}
