// Boxes of matrices that the tensor memory accelerator of Hopper copies into shared memory: one thread asks for a whole box, and
// arriving bytes are counted at a barrier there. What lies outside the matrix arrives as zeros and is counted too.
//
// A row of a box has 64 numbers. It arrives in the order that products want (wgmma.cu): boxes begin at multiples of 1024 bytes.

// Where a matrix lies and how large its boxes are; made by map.rs.
struct __align__(128) Map { u64 words[16]; };

// Fetches the box that begins at a column and row of the matrix.
__device__ __forceinline__ void fetch_box(u32 to, const Map& from, u32 column, u32 row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&from), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// The same for several blocks of the cluster: each has a bit in `blocks`, and gets the box and its bytes counted where this one has
// `to` and `barrier`.
__device__ __forceinline__ void fetch_box_for(u16 blocks, u32 to, const Map& from, u32 column, u32 row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(&from), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}
// Reads a map before its first box is asked for.
__device__ __forceinline__ void expect_boxes(const Map& from) { asm volatile("prefetch.tensormap [%0];" ::"l"(&from) : "memory"); }

// A barrier whose phases end when so many have arrived, and all bytes that were expected.
__device__ __forceinline__ void begin_barrier_of(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Arrives at the barrier of another block of the cluster (place_in), or of this one. It says nothing about what the thread has written:
// for that it would have to wait for all of its stores.
__device__ __forceinline__ void arrive_at(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Waits for the end of the phase with this parity. Boxes that were counted in it are there; what others wrote need not be.
__device__ __forceinline__ void await_phase(u32 barrier, u32 parity) {
    u32 is_over;
    do
        asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    while (!is_over);
}

// Stores four 8 x 8 blocks of sums as bf16, turned: a block's columns lie side by side where lanes 8 i .. 8 i + 7 say for block i.
__device__ __forceinline__ void store_turned_blocks(u32 address, const u32 (&pairs)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(pairs[0]), "r"(pairs[1]),
                 "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}

// All threads of a warpgroup: from here on they have so many registers each, more than before or fewer.
template <u32 COUNT> __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <u32 COUNT> __device__ __forceinline__ void leave_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
