// The norm of the gradients (chunks are added in order), the guard's decision, and the update in one pass
// over values, gradients and moments.

// The constants of one update.
struct Update {
    float beta1, beta2, epsilon, decay, rate, root_correction;
    float gain;         // of the moving average
    u32 unused;
};

// The guard's decision.
struct Decision {
    float scale;        // clipping
    u32 is_rejected;
};

// values = values · decay − rate · m / (√v · root_correction + ε); the bf16 copy and the average follow. 16
// elements whose `no_decay` flag is set do not decay.
extern "C" __global__ void update(const Update* constants, const Decision* decision, const float* gradients, float* values,
                                  float* mean, float* square, const float* no_decay, bf16* narrow, float* average, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n || decision->is_rejected) return;
    Update u = *constants;
    float scale = decision->scale;
    float decay = no_decay && no_decay[i / 16] != 0.0f ? 1.0f : u.decay;
    // Parameters begin at multiples of 16 elements; only the last one may end elsewhere.
    u32 count = (u32)min((u64)4, n - i);
    float g[4], m[4], v[4], x[4], a[4];
    if (count == 4) {
        load4(gradients + i, g), load4(mean + i, m), load4(square + i, v), load4(values + i, x);
        if (average) load4(average + i, a);
    } else {
        for (u32 j = 0; j < count; j++) g[j] = gradients[i + j], m[j] = mean[i + j], v[j] = square[i + j], x[j] = values[i + j];
        for (u32 j = 0; j < count; j++) a[j] = average ? average[i + j] : 0.0f;
    }
    for (u32 j = 0; j < count; j++) {
        g[j] *= scale;
        m[j] = u.beta1 * m[j] + (1.0f - u.beta1) * g[j];
        v[j] = u.beta2 * v[j] + (1.0f - u.beta2) * (g[j] * g[j]);
        x[j] = x[j] * decay - u.rate * m[j] / (sqrtf(v[j]) * u.root_correction + u.epsilon);
        if (average) a[j] += u.gain * (x[j] - a[j]);
    }
    if (count == 4) {
        store4(mean + i, m), store4(square + i, v), store4(values + i, x), store4(narrow + i, x);
        if (average) store4(average + i, a);
    } else {
        for (u32 j = 0; j < count; j++) mean[i + j] = m[j], square[i + j] = v[j], values[i + j] = x[j], narrow[i + j] = to_bf16(x[j]);
        if (average)
            for (u32 j = 0; j < count; j++) average[i + j] = a[j];
    }
}

// Sum over a block of 256 threads, in one order; thread 0 has the result.
__device__ __forceinline__ double block_sum(double x) {
    __shared__ double all[256];
    all[threadIdx.x] = x;
    __syncthreads();
    for (u32 half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
        __syncthreads();
    }
    return all[0];
}

// Sum of squares of 16,384 elements for each block.
extern "C" __global__ void squares(const float* gradients, double* sums, u64 n) {
    u64 first = (u64)blockIdx.x * 16384, end = min(first + 16384, n);
    double sum = 0.0;
#pragma unroll 4
    for (u64 i = first + 4 * threadIdx.x; i < end; i += 1024) {
        float g[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (i + 4 <= end) load4(gradients + i, g);
        else for (u32 j = 0; i + j < end; j++) g[j] = gradients[i + j];
        for (u32 j = 0; j < 4; j++) sum += (double)g[j] * (double)g[j];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Square root of the sum of `sums`, by a block of 256 threads.
__device__ __forceinline__ float root_of(const double* sums, u32 count) {
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < count; i += 256) sum += sums[i];
    return (float)sqrt(block_sum(sum));
}

// One block: the norm from all sums.
extern "C" __global__ void root(const double* sums, float* norm, u32 count) {
    float found = root_of(sums, count);
    if (threadIdx.x == 0) norm[0] = found;
}

// The state of guard.rs on the GPU.
struct Guard {
    u32 is_rejected;    // an update was rejected: all later ones are skipped
    u32 count, next;    // number of recorded norms, and the slot of the next one
    u32 unused;
    float norms[128];
};

// One batch of the step.
struct Loss {
    const double* totals;       // loss, -log p(label), right labels: sums over its tokens
    float share;                // of all tokens
    u32 tokens;
};

// The report of a step to the host.
struct Report {
    u32 verdict;                // see guard.rs
    float norm, median, loss;
    double negative_log_likelihood, correct;
};

struct GuardArgs {
    const double* sums;
    Guard* guard;
    Decision* decision;
    const Loss* losses;
    Report* reports;            // in pinned host memory
    const u32* slot;            // this step's slot among them
    u32 parts, batches;         // of sums, of losses
    float factor, clip_norm;    // 0 and infinity for no limit
};

__device__ __forceinline__ bool is_finite(float x) { return fabsf(x) <= 3.402823466e38f; }

// One block: decides whether the update is rejected, by the same rules in the same arithmetic as guard.rs.
extern "C" __global__ void guard(GuardArgs a) {
    float norm = root_of(a.sums, a.parts);
    __shared__ float median;
    u32 known = a.guard->count, me = threadIdx.x;
    if (me < known) {
        // The median is the norm that has half of the norms before it in sorted order.
        float mine = a.guard->norms[me];
        u32 before = 0;
        for (u32 i = 0; i < known; i++) {
            float other = a.guard->norms[i];
            before += other < mine || (other == mine && i < me);
        }
        if (before == known / 2) median = mine;
    }
    __syncthreads();
    if (me) return;
    float loss = 0.0f, bad_loss = 0.0f;
    double negative_log_likelihood = 0.0, correct = 0.0;
    bool is_bad = false;
    for (u32 i = 0; i < a.batches; i++) {
        const Loss& batch = a.losses[i];
        float mean = (float)(batch.totals[0] / batch.tokens);
        if (!is_finite(mean) && !is_bad) is_bad = true, bad_loss = mean;
        loss += batch.share * mean;
        negative_log_likelihood += batch.totals[1];
        correct += batch.totals[2];
    }
    bool has_limit = a.factor > 0.0f && known >= 32;
    u32 verdict = 0;
    if (a.guard->is_rejected) verdict = 4;
    else if (is_bad) verdict = 1, loss = bad_loss;
    else if (!is_finite(norm)) verdict = 2;
    else if (has_limit && norm > a.factor * median) verdict = 3;
    if (verdict) {
        a.guard->is_rejected = 1;
    } else {
        u32 next = a.guard->next;
        a.guard->norms[next] = norm;
        a.guard->next = (next + 1) % 128;
        a.guard->count = min(known + 1, 128u);
    }
    a.decision->scale = norm > a.clip_norm ? a.clip_norm / norm : 1.0f;
    a.decision->is_rejected = verdict != 0;
    Report report = {verdict, norm, has_limit ? median : 0.0f, loss, negative_log_likelihood, correct};
    a.reports[*a.slot] = report;
}
