// The mapping of blocks to work items, and the kernels.

namespace fast {

// Blocks are assigned to the kinds of items one after another. (A loop over several jobs in a block would cost registers
// for everything that is loop-invariant.)
struct Job {
    u32 rest;           // block index minus the jobs of earlier kinds
    const u32 *items;   // of the current kind

    __device__ __forceinline__ Job(const Attention& a) : rest(blockIdx.x), items(a.work) {}

    // Whether the block belongs to the current kind, which has `jobs` jobs.
    __device__ __forceinline__ bool is_current(u32 jobs) const { return rest < jobs; }
    __device__ __forceinline__ void skip(u32 jobs) { rest -= jobs; }
    __device__ __forceinline__ void skip_items(u32 count) { items += 8 * count; }
    __device__ __forceinline__ Pair pair(u32 heads, u32 unit) const { return Pair(items + 8 * (unit / heads), unit % heads); }
};

template <int D> __device__ __forceinline__ void backward(const Attention& a) {
    u32 heads = a.heads, longer = a.work_count[0] + a.work_count[1], c64 = a.work_count[2], c32 = a.work_count[3];
    Job job(a);
    job.skip_items(longer);
    if (job.is_current(heads * c64)) {
        backward_small<D, 64>(a, job.pair(heads, job.rest));
        return;
    }
    job.skip(heads * c64);
    job.skip_items(c64);
    Group group = { 256, 1 };
    u32 unit = 2 * job.rest + group.number();
    if (unit < heads * c32) backward_small<D, 32>(a, job.pair(heads, unit));
}

template <int D> __device__ __forceinline__ void backward_whole(const Attention& a) {
    u32 heads = a.heads, long_items = a.work_count[0], c128 = a.work_count[1];
    Job job(a);
    job.skip_items(long_items);
    if (job.is_current(heads * c128)) backward_small<D, 128>(a, job.pair(heads, job.rest));
}

}  // namespace fast

// Blocks per multiprocessor: limited by registers, or by shared memory, which is smaller on older GPUs.
#define FAST(D, forward_threads, forward_blocks, small_blocks, long_blocks)                                            \
    extern "C" __global__ void __launch_bounds__(forward_threads, forward_blocks)                                      \
        attention_fast_forward_##D(Attention a) {                                                                      \
        grid_dependency_wait();                                                                                               \
        fast::Job job(a);                                                                                              \
        if (!job.is_current(a.heads * a.work_count[0])) return;                                                        \
        fast::Pair pair = job.pair(a.heads, job.rest);                                                                 \
        fast::forward<D>(a, pair, pair.first);                                                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, small_blocks) attention_fast_backward_##D(Attention a) {         \
        grid_dependency_wait();                                                                                               \
        fast::backward<D>(a);                                                                                          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 1) attention_fast_backward_whole_##D(Attention a) {              \
        grid_dependency_wait();                                                                                               \
        fast::backward_whole<D>(a);                                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(128, long_blocks) attention_fast_backward_queries_##D(Attention a) {  \
        grid_dependency_wait();                                                                                               \
        fast::Job job(a);                                                                                              \
        if (job.is_current(a.heads * a.work_count[0])) fast::backward_queries<D>(a, job.pair(a.heads, job.rest));      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(128, long_blocks) attention_fast_backward_keys_##D(Attention a) {     \
        grid_dependency_wait();                                                                                               \
        fast::Job job(a);                                                                                              \
        if (job.is_current(a.heads * a.work_count[0])) fast::backward_keys<D>(a, job.pair(a.heads, job.rest));         \
    }

#if __CUDA_ARCH__ >= 900
FAST(32, 128, 7, 4, 4)
FAST(64, 128, 5, 4, 3)
#else
FAST(32, 128, 7, 3, 4)
FAST(64, 128, 5, 3, 3)
#endif
FAST(128, 256, 2, 3, 1)
