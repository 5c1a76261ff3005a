//! All-reduce over the GPUs of all ranks: as in `reduce`, followed by an all-gather.
//!
//! ```text
//! exchange    each GPU gets its piece of every rank's buckets
//! add         in the order of a tree
//! exchange    the sums, from each to all
//! ```

use super::{Failure, Group, Sharding};
use crate::cuda::{Blocks, Gpus, Module, NcclError, Pointer, Transfer, gpu};
use crate::{Array, DType, Device};

pub(crate) static MODULE: Module = Module::new("gpus", include_str!("gpus.cu"));

/// The maximum number of ranks: the kernel keeps at most 16 partial sums in registers.
pub(crate) const MAX_RANKS: usize = 1 << 15;

impl Gpus {
    /// Connects the GPUs of a group's ranks. All ranks must call it.
    pub fn join(group: &Group) -> Result<Gpus, Failure> {
        let failure = |NcclError { call, error }| Failure { call, error };
        gpu().map_err(|reason| Failure { call: "CUDA", error: reason.to_string() })?;
        // A rank without the library reports it before the others wait for that rank.
        let missing = Gpus::are_possible().err().map_or_else(String::new, |why| failure(why).to_string());
        if let Some(reason) = group.all_gather(missing.into_bytes())?.iter().find(|reason| !reason.is_empty())
        {
            return Err(Failure { call: "NCCL", error: String::from_utf8_lossy(reason).into_owned() });
        }
        let id = if group.is_first() { Gpus::new_id().map_err(failure)?.to_vec() } else { Vec::new() };
        let id = group.broadcast(id)?;
        Gpus::with_id(&id, [group.rank(), group.size()]).map_err(failure)
    }
}

/// All-reduces a vector: replaces it by the sum over all GPUs.
pub(crate) fn sum_over_gpus(gpus: &Gpus, vector: &mut Array) {
    let (rank, ranks) = (gpus.rank(), gpus.size());
    let sharding = Sharding::new(vector.len(), ranks, rank);
    let (owned, starts) = (sharding.owned(), sharding.packed_starts());
    let parts = Array::scratch_on(Device::Cuda, DType::F32, ranks, owned);
    let pointer_at = |start: usize| vector.pointer().offset(4 * start);
    let mut exchange = Vec::new();
    for (bucket, start) in starts.iter().enumerate() {
        let own = 4 * sharding.piece(bucket, rank).len();
        for other in 0..ranks {
            let theirs = sharding.piece(bucket, other);
            exchange.push(Transfer::Send {
                to: other,
                from: pointer_at(theirs.start),
                bytes: 4 * theirs.len(),
            });
            let to = parts.pointer().offset(4 * (other * owned + start));
            exchange.push(Transfer::Receive { from: other, to, bytes: own });
        }
    }
    gpus.exchange(exchange);
    for (bucket, start) in starts.iter().enumerate() {
        let piece = sharding.piece(bucket, rank);
        add_tree(pointer_at(piece.start), parts.pointer().offset(4 * start), owned, ranks, piece.len());
    }
    let mut exchange = Vec::new();
    for bucket in 0..sharding.buckets() {
        let mine = sharding.piece(bucket, rank);
        for other in (0..ranks).filter(|&other| other != rank) {
            let theirs = sharding.piece(bucket, other);
            exchange.push(Transfer::Send { to: other, from: pointer_at(mine.start), bytes: 4 * mine.len() });
            exchange.push(Transfer::Receive {
                from: other,
                to: pointer_at(theirs.start),
                bytes: 4 * theirs.len(),
            });
        }
    }
    if ranks > 1 {
        gpus.exchange(exchange);
    }
}

/// `out = tree(parts)`, the parts `stride` elements apart.
fn add_tree(out: Pointer, parts: Pointer, stride: usize, ranks: usize, n: usize) {
    assert!(ranks <= MAX_RANKS, "add_tree: {ranks} ranks");
    if n > 0 {
        let function = MODULE.function("add_tree");
        launch!(function, Blocks::for_each(n), out, parts, stride as u64, ranks as u32, n as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::in_threads;
    use crate::collective::tree::tree_sum;
    use crate::cuda;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7919) % 10_007) as f32 * 1e-3 - 5.0 + 1.0 / (i + 1) as f32).collect()
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn a_gpu_adds_the_parts_of_all_ranks_with_the_bits_of_the_cpu() {
        for ranks in [1, 2, 4, 8, 32] {
            let n = 10_001;
            let given = numbers(ranks * n);
            let parts = Array::from_f32_on(Device::Cuda, ranks, n, &given);
            let out = Array::zeros_on(Device::Cuda, DType::F32, 1, n);
            add_tree(out.pointer(), parts.pointer(), n, ranks, n);
            let mut expected = given;
            let mut terms: Vec<&mut [f32]> = expected.chunks_mut(n).collect();
            tree_sum(&mut terms);
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            assert!(bits(&out.to_vec()) == bits(terms[0]), "{ranks} ranks");
        }
    }

    #[test]
    #[ignore = "needs an NVIDIA GPU"]
    fn one_gpu_reduces_to_itself_outside_a_step_in_a_step_and_in_a_replayed_step() {
        in_threads(1, |group: Group| {
            let gpus = Gpus::join(&group).expect("NCCL is installed");
            assert_eq!((gpus.rank(), gpus.size()), (0, 1));
            let given = numbers(3_000_000);
            let mut vector = Array::from_f32_on(Device::Cuda, 1, given.len(), &given);
            sum_over_gpus(&gpus, &mut vector);
            assert!(vector.to_vec() == given);
            for _ in 0..3 {
                let ((), submitted) = cuda::step(|| sum_over_gpus(&gpus, &mut vector));
                submitted.wait();
                assert!(vector.to_vec() == given);
            }
        });
    }
}
