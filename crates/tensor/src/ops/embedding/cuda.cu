// Rows of a table, scaled, with positions and dropout; and gradients summed back into the table.

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

// A warp for each token.
extern "C" __global__ void gather(Gather a) {
    u32 token = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (token >= a.tokens) return;
    const float* row = a.table + (u64)a.ids[token] * a.width;
    const float* added = a.added ? a.added + (u64)a.positions[token] * a.width : 0;
    u64 start = (u64)token * a.width;
    Dropout dropout = dropout_of(a.dropout);
    for (u32 column = lane; column < a.width; column += 32) {
        float value = a.scale * row[column];
        if (added) value += added[column];
        if (dropout.threshold) value *= factor(dropout, start + column);
        a.y[start + column] = value;
        if (a.narrow) a.narrow[start + column] = to_bf16(value);
    }
}

// Tokens of one row of the table lie together in `tokens`, in their order. A group is at most 32 of them: its sum goes to the
// row itself if the group is all there is, else to its own row of `partial`.
struct Scatter {
    const float* g;
    const u32* tokens;
    const u32* groups;          // per group: first, end in `tokens`, row of the table, row of `partial` + 1 or 0
    float* out;
    float* partial;
    const Dropout* dropout;
    const u32* counts;          // how many groups there are, and how many rows with several of them
    u32 width;
    float scale;
};

extern "C" __global__ void scatter(Scatter a) {
    u32 group = blockIdx.x, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (group >= a.counts[0] || column >= a.width) return;
    const u32* g = a.groups + 4 * group;
    Dropout dropout = dropout_of(a.dropout);
    float sum = 0.0f;
    for (u32 i = g[0]; i < g[1]; i++) {
        u64 at = (u64)a.tokens[i] * a.width + column;
        float value = a.g[at];
        if (dropout.threshold) value *= factor(dropout, at);
        sum += a.scale * value;
    }
    if (g[3]) a.partial[(u64)(g[3] - 1) * a.width + column] = sum;
    else a.out[(u64)g[2] * a.width + column] += sum;
}

// Rows with several groups: their sums in order.
extern "C" __global__ void collect(const float* partial, const u32* rows, float* out, const u32* counts, u32 width) {
    u32 row = blockIdx.x, column = blockIdx.y * blockDim.x + threadIdx.x;
    if (row >= counts[1] || column >= width) return;
    const u32* r = rows + 3 * row;          // first, end in `partial`, row of the table
    float sum = 0.0f;
    for (u32 i = r[0]; i < r[1]; i++) sum += partial[(u64)i * width + column];
    out[(u64)r[2] * width + column] += sum;
}
