// The attention of a decoder's rows, divided among all blocks of a group. Sixteen rows at a time have a team of blocks each. Each
// block scores some of the keys, every block computes the softmax of all scores, and each sums some columns of the values;
// backward likewise. The order of every sum is that of one block alone, so the number of blocks changes no bit.
//
// A block has the same share at every step, and caches its keys and values in shared memory as long as they fit.

// A block's position in its team. Blocks left over from the division into teams have no share.
struct Team {
    u32 rows, row, part, parts;
    __device__ __forceinline__ Team(u32 slices, u32 slice)
        : rows(min(slices, ROWS)), row(slice % rows), part(slice / rows), parts(slices / rows) {}
};

struct Range {
    u32 first, count;
};
__device__ __forceinline__ Range split_range(u32 count, const Team& team) {
    u32 first = count * team.part / team.parts;
    return {first, count * (team.part + 1) / team.parts - first};
}

// The two matrices that a pass reads: a block has whole rows of one, and some columns of all rows of the other.
struct Matrices {
    const bf16 *by_row, *by_column;
    u32 row_width, column_width;
    Range columns;
    __device__ __forceinline__ Matrices(const void* by_row, u32 row_width, const void* by_column, u32 column_width, const Team& team)
        : by_row((const bf16*)by_row), by_column((const bf16*)by_column), row_width(row_width), column_width(column_width),
          columns(split_range(column_width / 8, team)) {
        columns.first *= 8, columns.count *= 8;
    }
};
struct Cache {
    bf16* at;
    u32 size;
};

// A block's share of a source.
struct Share {
    const bf16 *by_row, *by_column;    // from its first position, and from its first column on
    u32 stride;                 // of the latter
    Range positions, columns;
    u32 n;
    u64 pair;                   // the first weight
    WriteRange write_range;
};

// Calls `work(row, share, cached data or null, first token of the source)` for the rows of a group in which this block has a
// share, as long as they have such a step.
template <class W>
__device__ __forceinline__ void share_rows(const Team& team, const BlockPosition& place, const Attention& b, const Matrices& matrices,
                                           const Cache& cache, Rows rows, u32 count, u32 step, const W& work) {
    if (team.part >= team.parts) return;
    u32 used = 0;
    for (u32 number = team.row;; number += team.rows) {
        u32 r = (place.group + number / ROWS * place.groups) * ROWS + number % ROWS;
        if (r >= count) return;
        uint4 row = rows[r];
        if (row.y <= step) return;
        u32 source = b.sources[row.z], n = b.sources[row.z + 1] - source;
        Range positions = split_range(n, team), columns = matrices.columns;
        u32 row_elements = positions.count * matrices.row_width, size = row_elements + n * columns.count;
        bf16* cached = used + size <= cache.size ? cache.at + used : nullptr;
        if (cached) used += size;
        Share share;
        share.by_row = cached ? cached : matrices.by_row + (u64)(source + positions.first) * matrices.row_width;
        share.by_column = cached ? cached + row_elements : matrices.by_column + (u64)source * matrices.column_width + columns.first;
        share.stride = cached ? columns.count : matrices.column_width;
        share.positions = positions, share.columns = columns;
        share.n = n, share.pair = b.starts[row.z] + (u64)step * n;
        share.write_range = {positions.first, positions.first + positions.count, team.part == 0};
        work(row, share, cached, source);
    }
}

// Fills a block's cache before the first step.
__device__ __forceinline__ void fill_cache(const Team& team, const BlockPosition& place, const Attention& b, const Matrices& matrices,
                                           const Cache& cache, Rows rows, u32 count) {
    share_rows(team, place, b, matrices, cache, rows, count, 0, [&](uint4, const Share& share, bf16* cached, u32 source) {
        if (!cached) return;
        u32 pieces = share.positions.count * matrices.row_width / 8, column_pieces = share.columns.count / 8;
        const uint4* by_row = (const uint4*)(matrices.by_row + (u64)(source + share.positions.first) * matrices.row_width);
        for (u32 i = threadIdx.x; i < pieces; i += blockDim.x) ((uint4*)cached)[i] = by_row[i];
        const bf16* by_column = matrices.by_column + (u64)source * matrices.column_width + share.columns.first;
        for (u32 i = threadIdx.x; i < share.n * column_pieces; i += blockDim.x)
            ((uint4*)cached)[pieces + i] = *(const uint4*)(by_column + (u64)(i / column_pieces) * matrices.column_width + 8 * (i % column_pieces));
    });
    __syncthreads();
}

// Copies a list of exchanged f32 into shared memory, polling four at a time. Its length is a multiple of four.
__device__ __forceinline__ void take_list(float* to, const float* from, u32 count) {
    for (u32 i = 4 * threadIdx.x; i < count; i += 4 * blockDim.x) {
        u32 words[4];
        do look16(words, from + i, true);
        while (is_missing(words));
        *(uint4*)(to + i) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

// From queries to the scores of a share's keys.
__device__ __forceinline__ void score_share(const Decoder& a, const Attention& b, uint4 row, const Share& share, u32 step, u32 d,
                                            float* scratch) {
    u64 token = row.x + step;
    float* query = b.queries + token * b.key_width;
    __syncthreads();
    if (a.query_weight) {
        take_list(scratch, query, b.key_width);
    } else {
        if (step > 0) take_list(scratch, a.cell.outputs + (token - 1) * d, d);
        else for (u32 i = threadIdx.x; i < d; i += blockDim.x) scratch[i] = a.cell.initial_h[(u64)row.z * d + i];
    }
    __syncthreads();
    if (!a.query_weight && share.write_range.is_first)
        for (u32 i = threadIdx.x; i < d; i += blockDim.x) query[i] = scratch[i];
    u64 pair = share.pair + share.positions.first;
    score_keys<Quick>(b, share.by_row, share.positions.count, scratch,
                      [&](u32 j, float score) { publish(b.scores + pair + j, masked(b, pair + j, score)); });
}

// From scores to a share's columns of the context.
__device__ __forceinline__ void sum_share(const Attention& b, uint4 row, const Share& share, u32 step, float* scratch) {
    u64 token = row.x + step;
    float *e = scratch + b.key_width, *weights = e + b.longest;
    for (u32 j = threadIdx.x; j < share.n; j += blockDim.x) e[j] = await_value(b.scores + share.pair + j);
    __syncthreads();
    ValueRange selected = compute_weights(b, share.n, share.pair, token, e, weights, share.write_range);
    u64 first = token * b.value_width + share.columns.first;
    sum_values<2>(share.by_column, share.stride, share.columns.count, selected, weights, [&](u32 c, const float(&sum)[2]) {
        publish_pair(b.narrow + first + c, sum[0], sum[1]);
        *(float2*)(b.contexts + first + c) = make_float2(sum[0], sum[1]);
    });
}

// Backward, by positions: from gradients of the context to those of the weights, if they flow through it.
__device__ __forceinline__ void weight_share(const Attention& b, uint4 row, const Share& share, u32 step, float* scratch) {
    u64 token = row.x + step, pair = share.pair + share.positions.first;
    if (!flows_through_weights(b, selected_position(b, token))) return;
    __syncthreads();
    take_list(scratch, b.d_contexts + token * b.value_width, b.value_width);
    __syncthreads();
    weight_gradients(b, share.by_row, share.positions.count, scratch, [&](u32 j, float sum) { publish(b.scores + pair + j, sum); });
}

// Space for the derivative of tanh at every element of a share's keys, or null: part of the cache, if half of the cache remains.
__device__ __forceinline__ float* tanh_grad_buffer(const Attention& b, const Matrices& matrices, Cache& cache) {
    u32 size = 2 * b.longest * matrices.columns.count;
    if (!b.score_weight || size > cache.size / 2) return nullptr;
    cache.size -= size;
    return (float*)(cache.at + cache.size);
}

// Backward, by columns: from gradients of the weights to those of the query. A thread has a column: there are few, and their tanh
// takes longest. If there is space, its derivative is computed before the gradients arrive.
__device__ __forceinline__ void query_share(const Attention& b, uint4 row, const Share& share, u32 step, float* scratch, float* tanh_grads) {
    u64 token = row.x + step, first = token * b.key_width + share.columns.first;
    u32 n = share.n, columns = share.columns.count;
    float *weights = scratch + b.value_width, *de = weights + b.longest;
    const float* of_score = b.score_weight ? b.score_weight + share.columns.first : nullptr;
    for (u32 c = threadIdx.x; tanh_grads && c < columns; c += blockDim.x) {
        float q = b.queries[first + c];
#pragma unroll 8
        for (u32 j = 0; j < n; j++) {
            float t = Quick::tanh(q + widen(share.by_column[(u64)j * share.stride + c]));
            tanh_grads[j * columns + c] = 1.0f - t * t;
        }
    }
    int taken = selected_position(b, token);
    bool is_through = flows_through_weights(b, taken);
    // Other threads may still read the gradients of the previous row.
    __syncthreads();
    for (u32 j = threadIdx.x; j < n; j += blockDim.x) {
        weights[j] = b.weights[share.pair + j];
        de[j] = is_through ? await_value(b.scores + share.pair + j) : 0.0f;
    }
    __syncthreads();
    score_gradients(b, n, share.pair, token, taken, weights, de, share.write_range);
    auto store = [&](u32 c, const float(&sum)[1]) {
        float neighbour = __shfl_down_sync(0xffffffffu, sum[0], 1);
        if (c >= columns) return;
        if (b.is_dq_wide) publish((float*)b.dq + first + c, sum[0]);
        else if (c % 2 == 0) publish_pair((bf16*)b.dq + first + c, sum[0], neighbour);
    };
    if (!tanh_grads) {
        query_gradients<1, Quick>(b, share.by_column, share.stride, columns, n, b.queries + first, of_score, de, store);
        return;
    }
    for (u32 from = 0; from < columns; from += blockDim.x) {
        u32 c = from + threadIdx.x;
        float sum[1] = {0.0f}, w = c < columns ? of_score[c] : 0.0f;
#pragma unroll 16
        for (u32 j = 0; c < columns && j < n; j++) sum[0] += de[j] * w * tanh_grads[j * columns + c];
        store(c, sum);
    }
}
