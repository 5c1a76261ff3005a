// A decoder that attends before every step. All steps are one launch; a step has three parts, and blocks exchange the results of
// each: queries, contexts, states. Backward: gradients of gates, of contexts, of queries. Where blocks share a query, also scores
// and gradients of weights (teams.cu).

struct Decoder {
    Layer cell;
    const void* context_weight;     // value width x gates d
    const void* query_weight;       // d x key width; null if the state is the query
    const float* d_contexts;        // tokens x value width: gradients of the contexts as outputs; or null
};

// The state before a step, if it is the query.
__device__ __forceinline__ float state_query(const Decoder& a, uint4 row, u32 step, u32 i, u32 d) {
    if (step > 0) return await_value(a.cell.outputs + (u64)(row.x + step - 1) * d + i);
    return a.cell.initial_h[(u64)row.z * d + i];
}

// Loads the query of a row into shared memory, and computes its attention.
template <class T>
__device__ __forceinline__ void attend_step(const Decoder& a, const Attention& b, uint4 row, u32 step, u32 d, float* scratch) {
    typedef typename Functions<T>::type F;
    u64 token = row.x + step;
    __syncthreads();
    for (u32 i = threadIdx.x; i < b.key_width; i += blockDim.x) {
        float* at = b.queries + token * b.key_width + i;
        if (a.query_weight) scratch[i] = await_value(at);
        else *at = scratch[i] = state_query(a, row, step, i, d);
    }
    __syncthreads();
    attend<T, F>(b, source_of<T>(b, row.z, step), token, scratch);
}

template <class T>
__device__ __forceinline__ void attend_step_backward(const Attention& b, uint4 row, u32 step, float* scratch) {
    typedef typename Functions<T>::type F;
    u64 token = row.x + step;
    __syncthreads();
    for (u32 i = threadIdx.x; i < b.value_width; i += blockDim.x) scratch[i] = await_value(b.d_contexts + token * b.value_width + i);
    attend_backward<T, F>(b, source_of<T>(b, row.z, step), token, scratch);
}
