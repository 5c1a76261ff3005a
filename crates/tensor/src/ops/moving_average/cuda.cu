// values += gain (params − values)
extern "C" __global__ void update_average(float* values, const float* params, float gain, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += gain * (params[i] - values[i]);
}

extern "C" __global__ void swap(float* a, float* b, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    a[i] = b[i];
    b[i] = x;
}
