// One pass over values, gradients and moments; and the norm of the gradients, by chunks in order.

struct Update {
    float beta1, beta2, epsilon, decay, rate, root_correction, gradient_scale;
};

// values = values · decay − rate · m / (√v · root_correction + ε); the bf16 copy follows.
extern "C" __global__ void update(Update u, const float* gradients, float* values, float* mean, float* square, bf16* narrow, u64 n) {
    u64 i = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    // The flat vector is a multiple of sixteen numbers long, but for its last parameter.
    u32 count = (u32)min((u64)4, n - i);
    float g[4], m[4], v[4], x[4];
    if (count == 4) load4(gradients + i, g), load4(mean + i, m), load4(square + i, v), load4(values + i, x);
    else for (u32 j = 0; j < count; j++) g[j] = gradients[i + j], m[j] = mean[i + j], v[j] = square[i + j], x[j] = values[i + j];
    for (u32 j = 0; j < count; j++) {
        g[j] *= u.gradient_scale;
        m[j] = u.beta1 * m[j] + (1.0f - u.beta1) * g[j];
        v[j] = u.beta2 * v[j] + (1.0f - u.beta2) * (g[j] * g[j]);
        x[j] = x[j] * u.decay - u.rate * m[j] / (sqrtf(v[j]) * u.root_correction + u.epsilon);
    }
    if (count == 4) store4(mean + i, m), store4(square + i, v), store4(values + i, x), store4(narrow + i, x);
    else for (u32 j = 0; j < count; j++) mean[i + j] = m[j], square[i + j] = v[j], values[i + j] = x[j], narrow[i + j] = to_bf16(x[j]);
}

// Sum of squares of 16,384 numbers for each block.
extern "C" __global__ void squares(const float* gradients, double* sums, u64 n) {
    u64 first = (u64)blockIdx.x * 16384;
    double sum = 0.0;
    for (u64 i = first + threadIdx.x; i < min(first + 16384, n); i += 256) {
        float g = gradients[i];
        sum += (double)g * (double)g;
    }
    __shared__ double all[256];
    all[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = all[0];
}

// One block: the root of all sums.
extern "C" __global__ void root(const double* sums, float* norm, u32 count) {
    __shared__ double all[256];
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < count; i += 256) sum += sums[i];
    all[threadIdx.x] = sum;
    __syncthreads();
    for (u32 half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) norm[0] = (float)sqrt(all[0]);
}
