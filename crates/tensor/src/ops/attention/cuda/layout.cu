// Shared by the attention kernels: their argument, and which keys a query sees.
//
// For every sequence and head, with queries Q (m x d_k), keys K (n x d_k), values V (n x d_v):
//   S = scale Q K^T, hidden = -inf     P = softmax(S) by rows     W = dropout(P)     O = W V
// Backward, from dO:
//   dV = W^T dO    dP = dropout(dO V^T)    delta = sum over a row of P dP    dS = P (dP - delta)
//   dQ = scale dS K    dK = scale dS^T Q
// No atomics: every sum has one order, so the same input gives the same bits.

// Passed by value. All pointers are to device memory. A row stride counts elements.
struct Attention {
    const void *q, *k, *v;              // the first column of each view
    void *o;                            // context: written by forward
    const void *d_o;                    // its gradient: read by backward
    void *dq, *dk, *dv;                 // written by backward; null: not requested
    float *stats;                       // [heads][stats_rows][2]: largest score, 1 / sum of exp(score - largest)
    float *delta;                       // [heads][stats_rows]: scratch of a backward pass in two kernels
    const u32 *q_offsets, *k_offsets;   // sequences + 1 row offsets each
    const Dropout *dropout;
    const u32 *sizes;                   // [0]: query rows R in the draw index; [1]: longest key sequence L
    const u8 *mask;                     // 1 = visible, m x n per sequence; null: all visible (generic kernels only)
    const u64 *mask_offsets;            // per sequence, in bytes
    float *weights;                     // P before dropout, m x n per sequence and head; null: not requested (generic only)
    float *scores;                      // S in the same layout; null: not requested (generic only)
    const u64 *weight_offsets;          // [sequence * heads + head], in floats
    const u32 *work;                    // items: pairs of (sequence, first row) (generic kernels), see tiles.cu (fast ones)
    const u32 *work_count;              // number of items: see each kernel
    u32 q_stride, k_stride, v_stride;
    u32 o_stride;                       // of the context and its gradient
    u32 dq_stride, dk_stride, dv_stride;
    u32 heads, d_k, d_v;
    u32 stats_rows;
    u32 causal;                         // 0 or 1
    u32 window;                         // the largest visible distance; 0xffffffff for unlimited
    float scale;
};

// The keys that a query may see: start <= key < end.
struct Limits { int start, end; };

__device__ __forceinline__ int clamp(int x, int low, int high) { return min(max(x, low), high); }

// Largest distance a query sees to the left. (Lengths are below 2^29, so nothing overflows.)
__device__ __forceinline__ int reach_of(const Attention& a) { return (int)min(a.window, 0x3fffffffu); }

// Positions are aligned at the end: the last query is at the position of the last key.
__device__ __forceinline__ Limits visible_keys(const Attention& a, int query, int m, int n) {
    int position = query + n - m, reach = reach_of(a);
    Limits limits;
    limits.start = clamp(position - reach, 0, n);
    limits.end = clamp(position + (a.causal ? 0 : reach) + 1, limits.start, n);
    return limits;
}

// The queries that may see any of the keys first..last: the inverse of `visible_keys`.
__device__ __forceinline__ Limits visible_queries(const Attention& a, int first, int last, int m, int n) {
    int shift = n - m, reach = reach_of(a);
    Limits limits;
    limits.start = clamp(first - (a.causal ? 0 : reach) - shift, 0, m);
    limits.end = clamp(last + reach - shift + 1, limits.start, m);
    return limits;
}

// Index of the first dropout draw of a row's weights.
__device__ __forceinline__ u64 first_draw(const Attention& a, u32 head, u32 row) {
    return ((u64)head * a.sizes[0] + row) * a.sizes[1];
}
