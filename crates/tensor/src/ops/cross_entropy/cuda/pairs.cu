// R-Drop. A block for each token: its logits in both passes are read once for the sums and once more to become slopes.

struct Pairs {
    void *one, *other;          // logits of both passes; become slopes where gradients are wanted
    const u32* labels;          // of the first pass
    float* by_token;            // three rows of `tokens`, as above; the second half of each is the second pass
    u32 first, classes, tokens; // the first row's token, and the tokens of both passes
    float on, off, share, weight; // q of the label, q elsewhere, 1 / tokens, weight of the divergence
    u32 keep;
};

// Of one pass; `ahead` is the sum of its exponentials times (its logit - the other pass's logit).
struct PassSums { float top, exponentials, sum, ahead; };

__device__ __forceinline__ void raise(PassSums& to, float top) {
    float scale = expf(to.top - top);
    to.exponentials *= scale;
    to.ahead *= scale;
    to.top = top;
}

__device__ __forceinline__ void join(PassSums& to, PassSums from) {
    float higher = fmaxf(to.top, from.top);
    raise(to, higher);
    raise(from, higher);
    to.exponentials += from.exponentials;
    to.ahead += from.ahead;
    to.sum += from.sum;
}

// Sums over a block of 256 threads, in one order.
__device__ __forceinline__ PassSums block_sums(PassSums mine, PassSums* warps) {
    for (int step = 16; step > 0; step >>= 1) {
        PassSums theirs;
        theirs.top = __shfl_xor_sync(0xffffffffu, mine.top, step);
        theirs.exponentials = __shfl_xor_sync(0xffffffffu, mine.exponentials, step);
        theirs.sum = __shfl_xor_sync(0xffffffffu, mine.sum, step);
        theirs.ahead = __shfl_xor_sync(0xffffffffu, mine.ahead, step);
        join(mine, theirs);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    PassSums all = warps[0];
    for (int i = 1; i < 8; i++) join(all, warps[i]);
    return all;
}

__device__ __forceinline__ void take(PassSums& mine, float x, float ahead) {
    if (x > mine.top) raise(mine, x);
    float exponential = __expf(x - mine.top);
    mine.exponentials += exponential;
    mine.ahead += exponential * ahead;
    mine.sum += x;
}

// What a pass's sums say of it.
struct PassFound { float top, scale, ahead; };

__device__ __forceinline__ PassFound found_in(const Pairs& a, const PassSums& all) {
    return {all.top, a.share / all.exponentials, all.ahead / all.exponentials};
}

// The slopes of both logits of a class, in their places.
__device__ __forceinline__ void slopes(float& x, float& y, const PassFound& of_x, const PassFound& of_y, float weight, float q) {
    float p = __expf(x - of_x.top) * of_x.scale, p_other = __expf(y - of_y.top) * of_y.scale;
    float ahead = x - y;
    x = p - q + weight * (p * (ahead - of_x.ahead + 1.0f) - p_other);
    y = p_other - q + weight * (p_other * (1.0f - ahead - of_y.ahead) - p);
}

template <class T> __device__ __forceinline__ void pair_losses(const Pairs& a) {
    T* one = (T*)a.one + (u64)blockIdx.x * a.classes;
    T* other = (T*)a.other + (u64)blockIdx.x * a.classes;
    u32 token = a.first + blockIdx.x, label = a.labels[token];
    float labels[2] = {widen(one[label]), widen(other[label])};
    PassSums mine = {-3.402823466e38f, 0.0f, 0.0f, 0.0f}, theirs = mine;
    // Rows begin at multiples of four numbers only if there are so many classes.
    u32 whole = a.classes % 4 == 0 ? a.classes : 0;
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4], y[4];
        load4(one + i, x);
        load4(other + i, y);
        for (int j = 0; j < 4; j++) {
            take(mine, x[j], x[j] - y[j]);
            take(theirs, y[j], y[j] - x[j]);
        }
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256) {
        float x = widen(one[i]), y = widen(other[i]);
        take(mine, x, x - y);
        take(theirs, y, y - x);
    }
    __shared__ PassSums warps[2][8];
    PassSums all[2] = {block_sums(mine, warps[0]), block_sums(theirs, warps[1])};
    PassFound of_one = found_in(a, all[0]), of_other = found_in(a, all[1]);
    if (threadIdx.x == 0) {
        // J = 1/2 (sum of p (z - z') + sum of p' (z' - z))
        float divergence = 0.5f * (of_one.ahead + of_other.ahead);
        for (u32 pass = 0; pass < 2; pass++) {
            u32 place = token + pass * (a.tokens / 2);
            float log_sum = all[pass].top + logf(all[pass].exponentials);
            float others = a.off == 0.0f ? 0.0f : a.off * (all[pass].sum - labels[pass]);
            a.by_token[place] = log_sum - a.on * labels[pass] - others + a.weight * divergence;
            a.by_token[a.tokens + place] = log_sum - labels[pass];
            a.by_token[2 * a.tokens + place] = labels[pass] >= all[pass].top ? 1.0f : 0.0f;
        }
    }
    if (!a.keep) return;
    float on = a.on * a.share, off = a.off * a.share;
    for (u32 i = 4 * threadIdx.x; i < whole; i += 1024) {
        float x[4], y[4];
        load4(one + i, x);
        load4(other + i, y);
        for (u32 j = 0; j < 4; j++) slopes(x[j], y[j], of_one, of_other, a.weight, i + j == label ? on : off);
        store4(one + i, x);
        store4(other + i, y);
    }
    for (u32 i = whole + threadIdx.x; i < a.classes; i += 256) {
        float x = widen(one[i]), y = widen(other[i]);
        slopes(x, y, of_one, of_other, a.weight, i == label ? on : off);
        one[i] = narrow<T>(x);
        other[i] = narrow<T>(y);
    }
}

extern "C" __global__ void __launch_bounds__(256) pair_losses_f32(Pairs a) { pair_losses<float>(a); }
extern "C" __global__ void __launch_bounds__(256) pair_losses_bf16(Pairs a) { pair_losses<bf16>(a); }
