// Embeddings: rows of a table, scaled, with positions and dropout; and gradients summed back into the table.

// The id of a token without a row: its embedding is 0.
const u32 NO_TOKEN = 0xffffffffu;

struct Gather {
    const u32* ids;
    const u32* positions;
    const float* table;
    const float* added;         // one row for each position; null for none
    float* y;
    bf16* narrow;               // null in f32
    const Dropout* dropout;
    u32 tokens, width;
    float scale;
    u32 unused;
};

__device__ __forceinline__ void drop(const Dropout& d, u64 first, u32 count, float* x) {
    if (!d.threshold) return;
    float f[4];
    if (count == 4 && first % 2 == 0) factors4(d, first, f);
    else for (u32 j = 0; j < count; j++) f[j] = factor(d, first + j);
    for (u32 j = 0; j < count; j++) x[j] *= f[j];
}

// Up to four neighbouring elements, as one vector if rows are aligned.
__device__ __forceinline__ void read(const float* from, u32 count, bool is_whole, float* x) {
    if (is_whole) load4(from, x);
    else for (u32 j = 0; j < count; j++) x[j] = from[j];
}
template <class T> __device__ __forceinline__ void write(T* to, u32 count, bool is_whole, const float* x) {
    if (is_whole) store4(to, x);
    else for (u32 j = 0; j < count; j++) to[j] = narrow<T>(x[j]);
}

// A warp for each token.
extern "C" __global__ void gather(Gather a) {
    u32 token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (token >= a.tokens) return;
    u32 id = a.ids[token];
    const float* row = a.table + (u64)id * a.width;
    const float* added = a.added ? a.added + (u64)a.positions[token] * a.width : 0;
    u64 start = (u64)token * a.width;
    Dropout dropout = dropout_of(a.dropout);
    bool is_whole = a.width % 4 == 0;
#pragma unroll 4
    for (u32 column = 4 * lane; column < a.width; column += 128) {
        u32 count = min(4u, a.width - column);
        float x[4], position[4];
        if (id != NO_TOKEN) read(row + column, count, is_whole, x);
        else x[0] = x[1] = x[2] = x[3] = 0.0f;
        if (added) read(added + column, count, is_whole, position);
        for (u32 j = 0; j < count; j++) x[j] = a.scale * x[j] + (added ? position[j] : 0.0f);
        drop(dropout, start + column, count, x);
        write(a.y + start + column, count, is_whole, x);
        if (a.narrow) write(a.narrow + start + column, count, is_whole, x);
    }
}

// `tokens` is sorted by row of the table and keeps the order of tokens of one row. A group is at most 32
// tokens of one row: its sum is added to the row itself if it is the only group of the row, else written to
// its own row of `partial`.
struct Scatter {
    const float* g;
    const u32* tokens;
    const u32* groups;          // for each group: first, end in `tokens`, row of the table, row of `partial` + 1 or 0
    float* out;
    float* partial;
    const Dropout* dropout;
    const u32* counts;          // number of groups, and of rows with several groups
    u32 width;
    float scale;
};

extern "C" __global__ void scatter(Scatter a) {
    u32 group = blockIdx.x, column = 4 * (blockIdx.y * blockDim.x + threadIdx.x);
    if (group >= a.counts[0] || column >= a.width) return;
    const u32* g = a.groups + 4 * group;
    Dropout dropout = dropout_of(a.dropout);
    bool is_whole = a.width % 4 == 0;
    u32 count = min(4u, a.width - column);
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
    for (u32 i = g[0]; i < g[1]; i++) {
        u64 at = (u64)a.tokens[i] * a.width + column;
        float value[4];
        read(a.g + at, count, is_whole, value);
        drop(dropout, at, count, value);
        for (u32 j = 0; j < count; j++) sum[j] += a.scale * value[j];
    }
    float* out = g[3] ? a.partial + (u64)(g[3] - 1) * a.width + column : a.out + (u64)g[2] * a.width + column;
    for (u32 j = 0; j < count; j++) out[j] = (g[3] ? 0.0f : out[j]) + sum[j];
}

// Adds the partial sums of rows with several groups, in order.
extern "C" __global__ void add_partials(const float* partial, const u32* rows, float* out, const u32* counts, u32 width) {
    u32 row = blockIdx.x, column = 4 * (blockIdx.y * blockDim.x + threadIdx.x);
    if (row >= counts[1] || column >= width) return;
    const u32* r = rows + 3 * row;          // first, end in `partial`, row of the table
    for (u32 j = 0; j < min(4u, width - column); j++) {
        float sum = 0.0f;
        for (u32 i = r[0]; i < r[1]; i++) sum += partial[(u64)i * width + column + j];
        out[(u64)r[2] * width + column + j] += sum;
    }
}
