// What choosing among ways to compute a product needs: numbers to multiply, and whether two results are the same.

__device__ __forceinline__ float noise(u64 i, u32 key) { return (float)(int)draw(key, 1, (u32)i) * 4.656612873e-10f; }

extern "C" __global__ void noise_f32(float* x, u32 key, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = noise(i, key);
}
extern "C" __global__ void noise_bf16(bf16* x, u32 key, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = to_bf16(noise(i, key));
}

// Sets the flag if any word differs: whoever finds one writes the same.
extern "C" __global__ void differ(const u32* a, const u32* b, u32* flag, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && a[i] != b[i]) *flag = 1;
}
