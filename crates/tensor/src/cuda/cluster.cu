// How the blocks of a cluster hand numbers to each other (from Hopper on): each writes them into the shared memory of all of them,
// where arriving bytes are counted. A block waits at a barrier in its own shared memory and looks at nothing that is far away.
//
// A message is what all blocks give at one step together. Messages lie in two places by turns, each with its own barrier. Two
// suffice because whoever gives a part of message m + 2 has got all of m + 1, and a warp gives its part of m + 1 only after it
// has waited for m and read it. So when the first byte of m + 2 arrives, no warp reads m any more or still waits for it. For this
// every warp that reads messages must give a part of each, or meet those of its block that do after it has read one.

static constexpr bool HAS_CLUSTERS = __CUDA_ARCH__ >= 900;

// The place of another block's shared memory that is as far from its start as `own` is from that of this one.
__device__ __forceinline__ u32 place_in(u32 own, u32 block) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(block));
    return there;
}

// All threads of all blocks of the cluster: what they wrote before is there for all of them afterwards.
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

// Writes into another block's shared memory, and counts the bytes at a barrier there once they have arrived.
__device__ __forceinline__ void give_block(u32 to, u32 barrier, uint2 words) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(words.x),
                 "r"(words.y), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void give_block(u32 to, u32 barrier, uint4 words) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void begin_barrier(u32 barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
// Other blocks may count at barriers that were begun before this and before a barrier of the cluster.
__device__ __forceinline__ void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// The next phase ends when so many bytes have been counted; bytes that arrived before this call count too.
__device__ __forceinline__ void expect_bytes(u32 barrier, u32 bytes) {
    asm volatile("{\n .reg .b64 state;\n mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 state, [%0], %1;\n}" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}
// Waits for the end of the phase with this parity. The counted bytes are there then; nothing else that other blocks wrote is asked
// for, so the wait need not be of the cluster's scope, for which the first cache would be emptied at every step.
__device__ __forceinline__ void await_bytes(u32 barrier, u32 parity) {
    u32 is_over;
    do
        asm volatile(
            "{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
            : "=r"(is_over)
            : "r"(barrier), "r"(parity)
            : "memory");
    while (!is_over);
}

// The two places of messages, of PLACE bytes each, then their barriers; messages are counted from 0.
template <u32 PLACE> struct Mail {
    static constexpr u32 BARRIERS = 2 * PLACE;
    u32 start, bytes;

    // All threads of the block. Between this and the first message there must be a barrier of the cluster.
    __device__ __forceinline__ Mail(char* at, u32 bytes) : start(shared_address(at)), bytes(bytes) {
        // What no block writes is multiplied too, by zeros.
        for (u32 i = 16 * threadIdx.x; i < BARRIERS; i += 16 * blockDim.x) *(uint4*)(at + i) = make_uint4(0, 0, 0, 0);
        if (threadIdx.x > 0) return;
        for (u32 message = 0; message < 2; message++) begin_barrier(start + barrier(message));
        show_barriers();
        for (u32 message = 0; message < 2; message++) expect_bytes(start + barrier(message), bytes);
    }
    static __device__ __forceinline__ u32 place(u32 message) { return message % 2 * PLACE; }
    static __device__ __forceinline__ u32 barrier(u32 message) { return BARRIERS + message % 2 * 8; }
    // Waits until a message is there.
    __device__ __forceinline__ void await(u32 message) const {
        await_bytes(start + barrier(message), message / 2 % 2);
        if (threadIdx.x == 0) expect_bytes(start + barrier(message), bytes);
    }
};
