// Which block does what, and the kernels by their names.

namespace fast {

// Blocks for the short sequences of a kind: 4, 2 or 1 warps for a head, so 1, 2 or 4 heads in a block.
__device__ __forceinline__ u32 shared_jobs(const Attention& a, u32 kind) {
    return (a.heads * a.work_count[1 + kind] + (1u << kind) - 1) >> kind;
}

// Takes the block's job off the work list. `task` has functions for long sequences and for short ones. (A loop over
// several jobs would cost registers: all that is the same for each of them would be kept.)
template <class Task>
__device__ __forceinline__ void work(const Attention& a, Task task, bool takes_long, bool takes_short) {
    u32 job = blockIdx.x, heads = a.heads, items = a.work_count[0], long_jobs = takes_long ? items * heads : 0;
    if (job < long_jobs) {
        const u32 *item = a.work + 2 * (job / heads);
        task.run_long(a, Pair(a, item[0], job % heads), item[1]);
        return;
    }
    if (!takes_short) return;
    u32 rest = job - long_jobs, kind = 0, skipped = items;
    while (kind < 3 && rest >= shared_jobs(a, kind)) {
        rest -= shared_jobs(a, kind);
        skipped += a.work_count[1 + kind];
        kind++;
    }
    if (kind == 3) return;
    Group group = { 2 - kind };
    u32 unit = (rest << kind) + group.number();
    if (unit < heads * a.work_count[1 + kind])
        task.run_short(a, Pair(a, a.work[2 * (skipped + unit / heads)], unit % heads), group);
}

template <int D> struct Forward {
    __device__ __forceinline__ void run_long(const Attention& a, const Pair& pair, int first) const {
        forward_long<D>(a, pair, first);
    }
    __device__ __forceinline__ void run_short(const Attention& a, const Pair& pair, Group group) const {
        forward_short<D>(a, pair, group);
    }
};
template <int D> struct Backward {
    __device__ __forceinline__ void run_long(const Attention&, const Pair&, int) const {}
    __device__ __forceinline__ void run_short(const Attention& a, const Pair& pair, Group group) const {
        if (group.shift == 0) backward_small<D>(a, pair, group);
        else backward_short<D>(a, pair, group);
    }
};
template <int D> struct BackwardQueries {
    __device__ __forceinline__ void run_long(const Attention& a, const Pair& pair, int first) const {
        backward_queries<D>(a, pair, first);
    }
    __device__ __forceinline__ void run_short(const Attention&, const Pair&, Group) const {}
};
template <int D> struct BackwardKeys {
    __device__ __forceinline__ void run_long(const Attention& a, const Pair& pair, int first) const {
        backward_keys<D>(a, pair, first);
    }
    __device__ __forceinline__ void run_short(const Attention&, const Pair&, Group) const {}
};

}  // namespace fast

// Blocks per multiprocessor: as many as shared memory has room for.
#define FAST(D, forward_blocks, backward_blocks)                                                                       \
    extern "C" __global__ void __launch_bounds__(128, forward_blocks) attention_fast_forward_##D(Attention a) {        \
        fast::work(a, fast::Forward<D>(), true, true);                                                                 \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(128, backward_blocks) attention_fast_backward_##D(Attention a) {      \
        fast::work(a, fast::Backward<D>(), false, true);                                                               \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(128, backward_blocks)                                                 \
        attention_fast_backward_queries_##D(Attention a) {                                                             \
        fast::work(a, fast::BackwardQueries<D>(), true, false);                                                        \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(128, backward_blocks) attention_fast_backward_keys_##D(Attention a) { \
        fast::work(a, fast::BackwardKeys<D>(), true, false);                                                           \
    }

FAST(32, 5, 4)
FAST(64, 4, 3)
FAST(128, 2, 1)
