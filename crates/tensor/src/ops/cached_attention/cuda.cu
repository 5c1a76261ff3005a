// Attention of single queries to cached rows. A warp has one head of one query and processes the query's rows in chunks. So the
// bits of a result depend on the query and its rows, in their order, and on nothing else.

// As in cuda.rs.
struct Job {
    const void* queries;
    const void* stored;
    void* out;
    const uint2* spans;     // for each query: first row and number of rows that it sees
    const u32* slots;       // the rows that spans index; null if spans are row ranges
    const void* newest;     // for each query its last row, if that is not stored yet; else null
    u32 rows, heads, query_stride, stored_width, d_k, d_v;
    float scale;
    u32 newest_stride;
    u32 tile;               // queries of a block, where neighbours see the same rows
    u32 unused;
};

#define MINUS_INFINITY __int_as_float(0xff800000)
const u32 WARPS = 4;        // of a block

__device__ __forceinline__ void load2(const bf16* from, float* x) {
    u32 v = *(const u32*)from;
    x[0] = low_of(v), x[1] = high_of(v);
}
__device__ __forceinline__ void load2(const float* from, float* x) {
    float2 v = *(const float2*)from;
    x[0] = v.x, x[1] = v.y;
}

// First a lane for each key, then a lane for every column of the values. EVEN: rows, heads and columns begin at multiples of
// eight elements. A lane has columns 2 lane, 2 lane + 1, and the same 64 on; or, where they are not even, column lane, and the
// same 32 on. MAX_WIDTH: the largest width of a head's key or value.
template <class T, bool EVEN, u32 MAX_WIDTH> __device__ __forceinline__ void attend(const Job& job) {
    __shared__ __align__(16) float all[WARPS][MAX_WIDTH];
    launch_dependents_and_wait();
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 number = blockIdx.x * WARPS + warp, row = number / job.heads, head = number % job.heads;
    if (row >= job.rows) return;
    float* query = all[warp];
    const T* q = (const T*)job.queries + (u64)row * job.query_stride + head * job.d_k;
    for (u32 i = lane; i < job.d_k; i += 32) query[i] = widen(q[i]);
    __syncwarp();
    uint2 span = job.spans[row];
    const T* keys = (const T*)job.stored + head * job.d_k;
    const T* values = (const T*)job.stored + job.heads * job.d_k + head * job.d_v;

    float top = MINUS_INFINITY, total = 0.0f, sums[MAX_WIDTH / 32] = {};
    for (u32 start = 0; start < span.y; start += 32) {
        u32 count = min(span.y - start, 32u), at = 0;
        float score = MINUS_INFINITY;
        if (lane < count) {
            at = span.x + start + lane;
            if (job.slots) at = job.slots[at];
            const T* key = keys + (u64)at * job.stored_width;
            float sum = 0.0f;
            if (EVEN) {
                for (u32 i = 0; i < job.d_k; i += 8) {
                    float k[8];
                    load8(key + i, k);
                    #pragma unroll
                    for (u32 j = 0; j < 8; j++) sum = fmaf(query[i + j], k[j], sum);
                }
            } else {
                for (u32 i = 0; i < job.d_k; i++) sum = fmaf(query[i], widen(key[i]), sum);
            }
            score = sum * job.scale;
        }
        float higher = fmaxf(top, warp_max(score));
        // In the first chunk exp(-inf) = 0 scales sums that are 0.
        float factor = expf(top - higher), weight = lane < count ? expf(score - higher) : 0.0f;
        top = higher;
        total = total * factor + warp_sum(weight);
        #pragma unroll
        for (u32 i = 0; i < MAX_WIDTH / 32; i++) sums[i] *= factor;
        #pragma unroll 1
        for (u32 j = 0; j < count; j++) {
            float share = __shfl_sync(0xffffffffu, weight, j);
            const T* value = values + (u64)__shfl_sync(0xffffffffu, at, j) * job.stored_width;
            #pragma unroll
            for (u32 i = 0; i < MAX_WIDTH / 64; i++) {
                if (EVEN) {
                    u32 c = 64 * i + 2 * lane;
                    if (c < job.d_v) {
                        float v[2];
                        load2(value + c, v);
                        sums[2 * i] = fmaf(share, v[0], sums[2 * i]);
                        sums[2 * i + 1] = fmaf(share, v[1], sums[2 * i + 1]);
                    }
                } else {
                    u32 c = 64 * i + lane;
                    if (c < job.d_v) sums[2 * i] = fmaf(share, widen(value[c]), sums[2 * i]);
                    if (c + 32 < job.d_v) sums[2 * i + 1] = fmaf(share, widen(value[c + 32]), sums[2 * i + 1]);
                }
            }
        }
    }
    // A query without rows is padding.
    float share = total > 0.0f ? 1.0f / total : total == 0.0f ? 0.0f : total;
    T* out = (T*)job.out + ((u64)row * job.heads + head) * job.d_v;
    #pragma unroll
    for (u32 i = 0; i < MAX_WIDTH / 64; i++) {
        u32 c = EVEN ? 64 * i + 2 * lane : 64 * i + lane, next = EVEN ? c + 1 : c + 32;
        if (c < job.d_v) out[c] = narrow<T>(sums[2 * i] * share);
        if (next < job.d_v) out[next] = narrow<T>(sums[2 * i + 1] * share);
    }
}

#define ATTEND(NAME, T, EVEN, MAX_WIDTH) \
    extern "C" __global__ void __launch_bounds__(128) NAME(Job job) { attend<T, EVEN, MAX_WIDTH>(job); }
ATTEND(attend_f32, float, true, 256)
ATTEND(attend_bf16, bf16, true, 256)
ATTEND(attend_uneven_f32, float, false, 256)
ATTEND(attend_uneven_bf16, bf16, false, 256)
ATTEND(attend_wide_f32, float, false, 1024)
ATTEND(attend_wide_bf16, bf16, false, 1024)

// Writes columns of each row to the last of the slots that its query sees. A block has a row; copies are 16 bytes wide if
// everything is aligned to that.
template <class T>
__device__ __forceinline__ void store_newest(const T* from, T* stored, const uint2* spans, const u32* slots, u32 stride, u32 column, u32 width) {
    launch_dependents_and_wait();
    uint2 span = spans[blockIdx.x];
    if (span.y == 0) return;
    const T* source = from + (u64)blockIdx.x * stride + column;
    T* target = stored + (u64)slots[span.x + span.y - 1] * width;
    const u32 PIECE = 16 / sizeof(T);
    if (stride % PIECE == 0 && column % PIECE == 0 && width % PIECE == 0) {
        for (u32 i = threadIdx.x; i < width / PIECE; i += blockDim.x) ((uint4*)target)[i] = ((const uint4*)source)[i];
    } else {
        for (u32 i = threadIdx.x; i < width; i += blockDim.x) target[i] = source[i];
    }
}

extern "C" __global__ void store_newest_f32(const float* from, float* stored, const uint2* spans, const u32* slots, u32 stride, u32 column, u32 width) {
    store_newest(from, stored, spans, slots, stride, column, width);
}
extern "C" __global__ void store_newest_bf16(const bf16* from, bf16* stored, const uint2* spans, const u32* slots, u32 stride, u32 column, u32 width) {
    store_newest(from, stored, spans, slots, stride, column, width);
}
