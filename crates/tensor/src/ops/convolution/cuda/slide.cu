// Windows that shift by one token: a thread for each element. Nothing is computed, so a row's bits do not depend on the batch.

// The newest `slots` tokens of each row: those of its parent, which had `before_slots`, then its own newest one.
template <class T>
__device__ __forceinline__ void slide(const T* before, const u32* parents, const T* newest, T* windows, u32 width, u32 before_slots,
                                      u32 slots, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 row = i / ((u64)slots * width), in_row = i % ((u64)slots * width);
    u64 slot = in_row / width, column = in_row % width;
    u32 parent = parents[row];
    if (slot + 1 == slots) {
        windows[i] = newest[row * width + column];
        return;
    }
    // Age in tokens, counted from the parent's newest.
    u64 ago = slots - 2 - slot;
    bool is_inside = parent != 0xffffffffu && ago < before_slots;
    windows[i] = is_inside ? before[((u64)parent * before_slots + before_slots - 1 - ago) * width + column] : T{};
}
extern "C" __global__ void slide_2(const u16* before, const u32* parents, const u16* newest, u16* windows, u32 width, u32 before_slots, u32 slots, u64 n) {
    slide(before, parents, newest, windows, width, before_slots, slots, n);
}
extern "C" __global__ void slide_4(const u32* before, const u32* parents, const u32* newest, u32* windows, u32 width, u32 before_slots, u32 slots, u64 n) {
    slide(before, parents, newest, windows, width, before_slots, slots, n);
}

// Every `dilation`-th of the newest tokens, `taps` of them.
template <class T>
__device__ __forceinline__ void dilated(const T* seen, T* windows, u32 width, u32 slots, u32 taps, u64 dilation, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u64 row = i / ((u64)taps * width), in_row = i % ((u64)taps * width);
    u64 back = (taps - 1 - in_row / width) * dilation, column = in_row % width;
    windows[i] = back < slots ? seen[(row * slots + slots - 1 - back) * width + column] : T{};
}
extern "C" __global__ void dilated_2(const u16* seen, u16* windows, u32 width, u32 slots, u32 taps, u64 dilation, u64 n) {
    dilated(seen, windows, width, slots, taps, dilation, n);
}
extern "C" __global__ void dilated_4(const u32* seen, u32* windows, u32 width, u32 slots, u32 taps, u64 dilation, u64 n) {
    dilated(seen, windows, width, slots, taps, dilation, n);
}
