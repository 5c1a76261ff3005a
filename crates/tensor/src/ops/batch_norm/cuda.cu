// Column sums of `part` rows at a time, then elementwise work.

// A block sums 32 columns, a warp every eighth row; the warps' sums are added in order. `add` is called with
// a row and a column and adds to one or two sums, which are written to columns c and width + c of the block's
// row of `partial`.
template <int SUMS, class Add>
__device__ __forceinline__ void sum_columns(float* partial, u32 rows, u32 width, u32 part, Add add) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    u32 first = blockIdx.y * part, end = min(first + part, rows);
    float sums[SUMS] = {};
    if (column < width)
        for (u32 row = first + warp; row < end; row += 8) add(row, column, sums);
    __shared__ float all[SUMS][8][33];
    for (int i = 0; i < SUMS; i++) all[i][warp][lane] = sums[i];
    __syncthreads();
    if (warp || column >= width) return;
    for (int i = 0; i < SUMS; i++) {
        float total = 0.0f;
        for (int other = 0; other < 8; other++) total += all[i][other][lane];
        partial[((u64)blockIdx.y * SUMS + i) * width + column] = total;
    }
}

// Σ x
extern "C" __global__ void __launch_bounds__(256) batch_sums(const float* x, float* partial, u32 rows, u32 width, u32 part) {
    sum_columns<1>(partial, rows, width, part, [=](u32 row, u32 column, float* sums) { sums[0] += x[(u64)row * width + column]; });
}

// Σ (x - μ)², given the sums of x.
extern "C" __global__ void __launch_bounds__(256)
batch_squares(const float* x, const float* totals, float* partial, u32 rows, u32 width, u32 part, float share) {
    sum_columns<1>(partial, rows, width, part, [=](u32 row, u32 column, float* sums) {
        float centered = x[(u64)row * width + column] - totals[column] * share;
        sums[0] += centered * centered;
    });
}

// Σ g x̂ and Σ g.
extern "C" __global__ void __launch_bounds__(256)
batch_products(const float* g, const float* x_hat, float* partial, u32 rows, u32 width, u32 part) {
    sum_columns<2>(partial, rows, width, part, [=](u32 row, u32 column, float* sums) {
        float slope = g[(u64)row * width + column];
        sums[0] += slope * x_hat[(u64)row * width + column];
        sums[1] += slope;
    });
}

// From the sums of x and of its squares: mean, variance and 1 / √(variance + ε) of each column.
extern "C" __global__ void batch_statistics(const float* sums, const float* squares, float* mean, float* variance, float* rstd,
                                            u32 width, float share, float epsilon) {
    u32 column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    mean[column] = sums[column] * share;
    variance[column] = squares[column] * share;
    rstd[column] = 1.0f / sqrtf(variance[column] + epsilon);
}

// x̂ and y = γ x̂ + β
extern "C" __global__ void batch_normalize(const float* x, const float* mean, const float* rstd, const float* gamma,
                                           const float* beta, float* x_hat, float* y, u32 width, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 column = modulo(i, width);
    float value = (x[i] - mean[column]) * rstd[column];
    x_hat[i] = value;
    y[i] = value * gamma[column] + beta[column];
}

// dx = (g - dβ / T - x̂ dγ / T) γ / √(σ² + ε), in place of g
extern "C" __global__ void batch_slopes(float* g, const float* x_hat, const float* d_gamma, const float* d_beta,
                                        const float* gamma, const float* rstd, u32 width, float share, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 column = modulo(i, width);
    g[i] = (g[i] - share * d_beta[column] - share * x_hat[i] * d_gamma[column]) * (gamma[column] * rstd[column]);
}

// With given statistics.
extern "C" __global__ void batch_norm_with_statistics(const float* x, const float* mean, const float* variance, const float* gamma,
                                         const float* beta, float* y, u32 width, float epsilon, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 column = modulo(i, width);
    float rstd = 1.0f / sqrtf(variance[column] + epsilon);
    y[i] = (x[i] - mean[column]) * rstd * gamma[column] + beta[column];
}

// running += share (batch - running), unless the update of this step was rejected.
extern "C" __global__ void batch_update_running(float* running, const float* batch, const u32* is_rejected, float share, u32 n) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && !*is_rejected) running[i] += share * (batch[i] - running[i]);
}
