// One direction of a layer, and its sequences.

struct Layer {
    const void* x;              // tokens x gates d
    const void* weight;         // d x gates d
    const float* bias;          // gates d, or null
    const float* initial_h;     // sequences x d, or null for zeros
    const float* initial_c;
    float* outputs;             // tokens x d
    bf16* narrow;               // the same in bf16, for bf16 products; published between blocks
    void* gates;                // tokens x kept d; null if nothing is saved
    float* c;                   // tokens x d
    float* last_h;              // sequences x d
    float* last_c;
    const float* d_outputs;     // tokens x d
    const float* d_last_h;      // sequences x d, or null
    const float* d_last_c;
    void* dx;                   // tokens x gates d
    void* da;                   // the same for the hidden side; published between blocks
    float* dh;                  // sequences x d: gradients of the initial states
    float* dc;
    float* past;                // sequences x d: the GRU's part of dh that bypasses the gates
    u32 is_reversed;
    u32 carries;                // of a decoder: `past` also includes a product, for any cell; dx is published too
};

// The rows of a step are sequences, longest first: x is the first token, y the length, z the index of the
// sequence. Their number is in GPU memory, because it differs from batch to batch.
typedef const uint4* Rows;

__device__ __forceinline__ u32 token_of(uint4 row, u32 step, u32 is_reversed) {
    return row.x + (is_reversed ? row.y - 1 - step : step);
}
