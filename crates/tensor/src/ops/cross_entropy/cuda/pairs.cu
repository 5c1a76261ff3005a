// R-Drop. One block for each token: its logits in both passes are read once for the sums, and again to be
// replaced by gradients.

struct PairLosses {
    void *first_logits, *second_logits; // of the two passes; replaced by gradients if `keep`
    const u32* labels;          // of the first pass
    float* by_token;            // three rows of `tokens`, as above; the second half of each is the second pass
    u32 first, classes, tokens; // the first row's token, and the tokens of both passes
    float q_label, q_other;     // target probability of the label, and of the other classes
    float share, weight;        // 1 / tokens, weight of the divergence
    u32 keep;
};

// The sums of one pass; `difference` is the sum of its exponentials times (its logit - the other pass's
// logit).
struct PassSums { float top, exponentials, sum, difference; };

__device__ __forceinline__ void rescale(PassSums& to, float top) {
    float scale = expf(to.top - top);
    to.exponentials *= scale;
    to.difference *= scale;
    to.top = top;
}

__device__ __forceinline__ void combine(PassSums& to, PassSums from) {
    float higher = fmaxf(to.top, from.top);
    rescale(to, higher);
    rescale(from, higher);
    to.exponentials += from.exponentials;
    to.difference += from.difference;
    to.sum += from.sum;
}

// Sums over a block of 256 threads, in one order.
__device__ __forceinline__ PassSums block_sums(PassSums mine, PassSums* warps) {
    for (int step = 16; step > 0; step >>= 1) {
        PassSums theirs;
        theirs.top = __shfl_xor_sync(0xffffffffu, mine.top, step);
        theirs.exponentials = __shfl_xor_sync(0xffffffffu, mine.exponentials, step);
        theirs.sum = __shfl_xor_sync(0xffffffffu, mine.sum, step);
        theirs.difference = __shfl_xor_sync(0xffffffffu, mine.difference, step);
        combine(mine, theirs);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    PassSums all = warps[0];
    for (int i = 1; i < 8; i++) combine(all, warps[i]);
    return all;
}

__device__ __forceinline__ void accumulate(PassSums& mine, float x, float difference) {
    if (x > mine.top) rescale(mine, x);
    float exponential = __expf(x - mine.top);
    mine.exponentials += exponential;
    mine.difference += exponential * difference;
    mine.sum += x;
}

// Of one pass: the top logit, 1 / tokens / sum of exponentials, and the mean difference of the logits under
// its distribution.
struct PassStats { float top, scale, difference; };

__device__ __forceinline__ PassStats stats_of(const PairLosses& a, const PassSums& all) {
    return {all.top, a.share / all.exponentials, all.difference / all.exponentials};
}

// Replaces both logits of a class by their gradients.
__device__ __forceinline__ void slopes(float& x, float& y, const PassStats& of_x, const PassStats& of_y, float weight, float q) {
    float p = __expf(x - of_x.top) * of_x.scale, p_other = __expf(y - of_y.top) * of_y.scale;
    float difference = x - y;
    x = p - q + weight * (p * (difference - of_x.difference + 1.0f) - p_other);
    y = p_other - q + weight * (p_other * (1.0f - difference - of_y.difference) - p);
}

template <class T> __device__ __forceinline__ void pair_losses(const PairLosses& a) {
    T* one = (T*)a.first_logits + (u64)blockIdx.x * a.classes;
    T* other = (T*)a.second_logits + (u64)blockIdx.x * a.classes;
    u32 token = a.first + blockIdx.x, label = a.labels[token];
    float labels[2] = {widen(one[label]), widen(other[label])};
    PassSums mine = {-3.402823466e38f, 0.0f, 0.0f, 0.0f}, theirs = mine;
    // Rows are aligned for vector loads only if the number of classes is a multiple of four.
    u32 whole = a.classes % 4 == 0 ? a.classes : 0;
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4], y[4];
        load4(one + i, x);
        load4(other + i, y);
        for (int j = 0; j < 4; j++) {
            accumulate(mine, x[j], x[j] - y[j]);
            accumulate(theirs, y[j], y[j] - x[j]);
        }
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256) {
        float x = widen(one[i]), y = widen(other[i]);
        accumulate(mine, x, x - y);
        accumulate(theirs, y, y - x);
    }
    __shared__ PassSums warps[2][8];
    PassSums all[2] = {block_sums(mine, warps[0]), block_sums(theirs, warps[1])};
    PassStats of_one = stats_of(a, all[0]), of_other = stats_of(a, all[1]);
    if (threadIdx.x == 0) {
        // J = 1/2 (sum of p (z - z') + sum of p' (z' - z))
        float divergence = 0.5f * (of_one.difference + of_other.difference);
        for (u32 pass = 0; pass < 2; pass++) {
            u32 row = token + pass * (a.tokens / 2);
            float log_sum = all[pass].top + logf(all[pass].exponentials);
            float others = a.q_other == 0.0f ? 0.0f : a.q_other * (all[pass].sum - labels[pass]);
            a.by_token[row] = log_sum - a.q_label * labels[pass] - others + a.weight * divergence;
            a.by_token[a.tokens + row] = log_sum - labels[pass];
            a.by_token[2 * a.tokens + row] = labels[pass] >= all[pass].top ? 1.0f : 0.0f;
        }
    }
    if (!a.keep) return;
    float q_label = a.q_label * a.share, q_other = a.q_other * a.share;
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4], y[4];
        load4(one + i, x);
        load4(other + i, y);
        for (u32 j = 0; j < 4; j++) slopes(x[j], y[j], of_one, of_other, a.weight, i + j == label ? q_label : q_other);
        store4(one + i, x);
        store4(other + i, y);
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256) {
        float x = widen(one[i]), y = widen(other[i]);
        slopes(x, y, of_one, of_other, a.weight, i == label ? q_label : q_other);
        one[i] = narrow<T>(x);
        other[i] = narrow<T>(y);
    }
}

extern "C" __global__ void __launch_bounds__(256) pair_losses_f32(PairLosses a) { pair_losses<float>(a); }
extern "C" __global__ void __launch_bounds__(256) pair_losses_bf16(PairLosses a) { pair_losses<bf16>(a); }
