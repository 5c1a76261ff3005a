// One block for each token: its logits are read once for the sums, and again, from cache, to be replaced by
// gradients.

struct Losses {
    void* logits;               // replaced by gradients if `keep`
    const u32* labels;
    float* by_token;            // three rows of `tokens`: loss, -log p(label), 1 where the label has the highest probability
    const u32* counted;         // number of labels that are not IGNORED
    u32 first, rows, classes, tokens;
    float q_label, q_other;     // target probability of the label, and of the other classes
    u32 keep, unused;
};

const u32 IGNORED = 0xffffffffu;

struct Sums { float top, exponentials, sum; };

__device__ __forceinline__ Sums combined(const Sums& a, const Sums& b) {
    float top = fmaxf(a.top, b.top);
    Sums both = {top, a.exponentials * expf(a.top - top) + b.exponentials * expf(b.top - top), a.sum + b.sum};
    return both;
}

// Sums over a block of 256 threads, in one order; the same in all of them, because a + b and b + a have the same bits.
__device__ __forceinline__ Sums block_sums(Sums mine) {
    for (int step = 16; step > 0; step >>= 1) {
        Sums other = {__shfl_xor_sync(0xffffffffu, mine.top, step), __shfl_xor_sync(0xffffffffu, mine.exponentials, step),
                      __shfl_xor_sync(0xffffffffu, mine.sum, step)};
        mine = combined(mine, other);
    }
    __shared__ Sums warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    Sums all = warps[0];
    for (int i = 1; i < 8; i++) all = combined(all, warps[i]);
    return all;
}

__device__ __forceinline__ void accumulate(Sums& mine, float x) {
    if (x > mine.top) {
        mine.exponentials = mine.exponentials * __expf(mine.top - x) + 1.0f;
        mine.top = x;
    } else {
        mine.exponentials += __expf(x - mine.top);
    }
    mine.sum += x;
}

template <class T> __device__ __forceinline__ void losses(const Losses& a) {
    u32 row = blockIdx.x;
    T* z = (T*)a.logits + (u64)row * a.classes;
    u32 label = a.labels[a.first + row], token = a.first + row;
    if (label == IGNORED) {
        if (threadIdx.x < 3) a.by_token[threadIdx.x * a.tokens + token] = 0.0f;
        if (a.keep)
            for (u32 i = threadIdx.x; i < a.classes; i += 256) z[i] = narrow<T>(0.0f);
        return;
    }
    float label_logit = widen(z[label]);
    Sums mine = {-3.402823466e38f, 0.0f, 0.0f};
    // Rows are aligned for vector loads only if the number of classes is a multiple of four.
    u32 whole = a.classes % 4 == 0 ? a.classes : 0;
#pragma unroll 4
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4];
        load4(z + i, x);
        float top = fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3]));
        if (top > mine.top) {
            mine.exponentials *= __expf(mine.top - top);
            mine.top = top;
        }
        for (int j = 0; j < 4; j++) mine.exponentials += __expf(x[j] - mine.top), mine.sum += x[j];
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256) accumulate(mine, widen(z[i]));
    Sums all = block_sums(mine);
    float log_sum = all.top + logf(all.exponentials);
    if (threadIdx.x == 0) {
        float others = a.q_other == 0.0f ? 0.0f : a.q_other * (all.sum - label_logit);
        a.by_token[token] = log_sum - a.q_label * label_logit - others;
        a.by_token[a.tokens + token] = log_sum - label_logit;
        a.by_token[2 * a.tokens + token] = label_logit >= all.top ? 1.0f : 0.0f;
    }
    if (!a.keep) return;
    float share = 1.0f / (float)*a.counted, q_label = a.q_label * share, q_other = a.q_other * share, scale = share / all.exponentials;
#pragma unroll 4
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4];
        load4(z + i, x);
        for (u32 j = 0; j < 4; j++) x[j] = __expf(x[j] - all.top) * scale - (i + j == label ? q_label : q_other);
        store4(z + i, x);
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256)
        z[i] = narrow<T>(__expf(widen(z[i]) - all.top) * scale - (i == label ? q_label : q_other));
}

extern "C" __global__ void __launch_bounds__(256) losses_f32(Losses a) { losses<float>(a); }
extern "C" __global__ void __launch_bounds__(256) losses_bf16(Losses a) { losses<bf16>(a); }

// One block for each of the three totals, in f64 and in one order; the first also writes the mean loss.
extern "C" __global__ void totals(const float* by_token, double* totals, float* loss, const u32* counted, u32 tokens) {
    __shared__ double sums[1024];
    u32 kind = blockIdx.x;
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < tokens; i += 1024) sum += (double)by_token[(u64)kind * tokens + i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 512; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x) return;
    totals[kind] = sums[0];
    if (kind == 0) loss[0] = (float)(sums[0] / *counted);
}

// The factor is nearly always 1: launch few blocks, which return at once.
template <class T> __device__ __forceinline__ void scale(T* x, const float* by, u64 n) {
    float factor = by[0];
    if (factor == 1.0f) return;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        x[i] = narrow<T>(widen(x[i]) * factor);
}
extern "C" __global__ void scale_f32(float* x, const float* by, u64 n) { scale(x, by, n); }
extern "C" __global__ void scale_bf16(bf16* x, const float* by, u64 n) { scale(x, by, n); }

extern "C" __global__ void add_scaled(float* out, const float* from, const float* by, u32 add, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= n) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f}, more[4];
        if (add) load4(out + i, sum);
        load4(from + i, more);
        for (int j = 0; j < 4; j++) sum[j] += by[0] * more[j];
        store4(out + i, sum);
    } else {
        for (; i < n; i++) out[i] = (add ? out[i] : 0.0f) + by[0] * from[i];
    }
}
