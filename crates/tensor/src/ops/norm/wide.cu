// Rows that are too wide for the registers of a warp: a block of 256 threads makes several passes over a row.
// A thread has the same columns in each pass, so it reads only what it has written itself.

template <class S> __device__ __forceinline__ float sum_at(const NormForward& a, const Dropout& dropout, u64 i) {
    float z = a.x[i];
    if (a.sublayer) z += widen(((const S*)a.sublayer)[i]) * factor(dropout, i);
    return z;
}

template <class S, class T> __device__ __forceinline__ void forward_wide(const NormForward& a) {
    grid_dependency_wait();
    u64 start = (u64)blockIdx.x * a.width;
    Dropout dropout = dropout_of(a.dropout);
    float sum = 0.0f, squares = 0.0f;
    for (u32 column = threadIdx.x; column < a.width; column += 256) {
        float z = sum_at<S>(a, dropout, start + column);
        a.y[start + column] = z;
        sum += z;
    }
    float mean = sum_of_block(sum) / a.width;
    for (u32 column = threadIdx.x; column < a.width; column += 256) {
        float d = a.y[start + column] - mean;
        squares += d * d;
    }
    float rstd = 1.0f / sqrtf(sum_of_block(squares) / a.width + a.epsilon);
    if (threadIdx.x == 0) a.rstd[blockIdx.x] = rstd;
    for (u32 column = threadIdx.x; column < a.width; column += 256) {
        float x_hat = (a.y[start + column] - mean) * rstd;
        float y = a.gamma[column] * x_hat + a.beta[column];
        a.y[start + column] = y;
        if (a.narrow) a.narrow[start + column] = to_bf16(y);
        if (a.x_hat) ((T*)a.x_hat)[start + column] = narrow<T>(x_hat);
    }
}

// A block processes `part` rows one after the other; its sums are in global memory.
template <class S, class T> __device__ __forceinline__ void backward_wide(const NormBackward& a) {
    grid_dependency_wait();
    u32 first = blockIdx.x * a.part, end = min(first + a.part, a.rows);
    float* d_gamma = a.partial + (u64)blockIdx.x * 3 * a.width;
    float *d_beta = d_gamma + a.width, *d_bias = d_beta + a.width;
    Dropout dropout = dropout_of(a.dropout);
    for (u32 row = first; row < end; row++) {
        u64 start = (u64)row * a.width;
        const T* x_hat = (const T*)a.x_hat + start;
        bool is_first = row == first;
        float sum = 0.0f, product = 0.0f;
        for (u32 column = threadIdx.x; column < a.width; column += 256) {
            float g = a.gradient[start + column], s = widen(x_hat[column]), h = g * a.gamma[column];
            d_gamma[column] = (is_first ? 0.0f : d_gamma[column]) + g * s;
            d_beta[column] = (is_first ? 0.0f : d_beta[column]) + g;
            sum += h;
            product += h * s;
        }
        sum = sum_of_block(sum) / a.width;
        product = sum_of_block(product) / a.width;
        float rstd = a.rstd[row];
        for (u32 column = threadIdx.x; column < a.width; column += 256) {
            float h = a.gradient[start + column] * a.gamma[column];
            float slope = (h - sum - widen(x_hat[column]) * product) * rstd;
            a.gradient[start + column] = slope;
            if (!a.d_sublayer) continue;
            slope *= factor(dropout, start + column);
            ((S*)a.d_sublayer)[start + column] = narrow<S>(slope);
            d_bias[column] = (is_first ? 0.0f : d_bias[column]) + slope;
        }
    }
}

#define WIDE(S, T, name) \
    extern "C" __global__ void __launch_bounds__(256) forward_##name##_wide(NormForward a) { forward_wide<S, T>(a); } \
    extern "C" __global__ void __launch_bounds__(256) backward_##name##_wide(NormBackward a) { backward_wide<S, T>(a); }
WIDE(float, float, f32_f32)
WIDE(bf16, float, bf16_f32)
WIDE(float, bf16, f32_bf16)
WIDE(bf16, bf16, bf16_bf16)
