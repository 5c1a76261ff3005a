// One direction of a layer, and the sequences that it reads.

struct Layer {
    const void* x;              // tokens x gates d
    const void* weight;         // d x gates d
    const float* bias;          // gates d, or none
    const float* initial_h;     // sequences x d, or none for zeros
    const float* initial_c;
    float* outputs;             // tokens x d
    bf16* narrow;               // the same rounded, where products are bf16; handed over between blocks
    void* gates;                // tokens x kept d, or none if nothing is kept
    float* c;                   // tokens x d
    float* last_h;              // sequences x d
    float* last_c;
    const float* d_outputs;     // tokens x d
    const float* d_last_h;      // sequences x d, or none
    const float* d_last_c;
    void* dx;                   // tokens x gates d
    void* da;                   // the same for the hidden side; handed over between blocks
    float* dh;                  // sequences x d: gradients of the initial states
    float* dc;
    float* past;                // sequences x d: the GRU's part of dh that comes past the gates
    u32 is_reversed;
    u32 carries;                // a decoder's: `past` also has a product, of any cell; dx is handed over too
};

// Rows of states are sequences, the longest first: x is the first token, y the length, z the number of the sequence. How many
// there are is a number in the GPU's memory, as all of this is other for every batch.
typedef const uint4* Rows;

__device__ __forceinline__ u32 token_of(uint4 row, u32 step, u32 is_reversed) {
    return row.x + (is_reversed ? row.y - 1 - step : step);
}
