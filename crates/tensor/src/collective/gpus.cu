// out = the sum of `ranks` parts, `stride` apart, in tree order: ((p0 + p1) + (p2 + p3)) + …
extern "C" __global__ void add_tree(float* out, const float* parts, u64 stride, u32 ranks, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // Partial sums that wait for their other half: as many as the number of ranks has binary digits.
    float waiting[16];
    u32 count = 0;
    for (u32 rank = 0; rank < ranks; rank++) {
        float sum = parts[rank * stride + i];
        for (u32 bits = rank; bits & 1; bits >>= 1) {
            count -= 1;
            sum = waiting[count] + sum;
        }
        waiting[count] = sum;
        count += 1;
    }
    out[i] = waiting[0];
}
