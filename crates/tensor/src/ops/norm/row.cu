// A layer norm's row: a warp has it, and keeps it in registers while its sums are made.

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

struct NormForward {
    const float* x;
    const void* sublayer;       // null: z = x
    const float* gamma;
    const float* beta;
    float* y;
    bf16* narrow;               // null in f32
    void* standard;             // null where nothing is kept
    float* inverse_deviation;   // null where nothing is kept, as well
    const Dropout* dropout;
    u32 rows, width;
    float epsilon;
    u32 unused;
};

// A warp normalizes x plus what `add` adds to four neighbouring columns. T is the type of what is kept.
template <class T, int QUADS, class Add> __device__ __forceinline__ void normalize(const NormForward& a, u32 row, Add add) {
    u32 lane = threadIdx.x % 32;
    u64 start = (u64)row * a.width;
    Row<QUADS> z;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        u32 column = 128 * i + 4 * lane;
        read(a.x + start, column, a.width, z.at[i]);
        add(column, z.at[i]);
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
    if (lane == 0 && a.inverse_deviation) a.inverse_deviation[row] = inverse;
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
