//! Ranks that are threads of one process: for tests, and to see what a division costs without a library.

use std::sync::{Arc, Barrier, Mutex};

use super::group::{Failure, Group, Transport};

/// Runs `work` once for each of `size` ranks, all at the same time, and returns what they return in the order of the ranks.
pub fn in_threads<R: Send>(size: usize, work: impl Fn(Group) -> R + Sync) -> Vec<R> {
    let table = Arc::new(Table { barrier: Barrier::new(size), parcels: Mutex::new(vec![Vec::new(); size]) });
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (table, work) = (table.clone(), &work);
                scope.spawn(move || {
                    let open = move || Ok::<_, Failure>((AtTable { table, rank }, rank, size));
                    work(Group::open(open).expect("nothing can fail"))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank that does not panic")).collect()
    })
}

/// Where ranks put what others take.
struct Table {
    barrier: Barrier,
    parcels: Mutex<Vec<Vec<u8>>>,
}

struct AtTable {
    table: Arc<Table>,
    rank: usize,
}

impl AtTable {
    /// Puts bytes on the table, takes what is wanted of everybody's, and waits until all have.
    fn exchange(&mut self, mine: &[u8], take: impl FnOnce(&[Vec<u8>])) {
        self.table.parcels.lock().expect("no rank panics here")[self.rank] = mine.to_vec();
        self.table.barrier.wait();
        take(&self.table.parcels.lock().expect("no rank panics here"));
        self.table.barrier.wait();
    }
}

impl Transport for AtTable {
    fn all_to_all(
        &mut self,
        send: &[u8],
        send_lengths: &[usize],
        receive: &mut [u8],
        receive_lengths: &[usize],
    ) -> Result<(), Failure> {
        let rank = self.rank;
        let header: Vec<u8> = send_lengths.iter().flat_map(|length| (*length as u64).to_le_bytes()).collect();
        let ranks = send_lengths.len();
        self.exchange(&[&header, send].concat(), |parcels| {
            let mut at = 0;
            for (parcel, &expected) in parcels.iter().zip(receive_lengths) {
                let length = |to: usize| {
                    u64::from_le_bytes(*parcel[8 * to..].first_chunk().expect("a header")) as usize
                };
                let start = 8 * ranks + (0..rank).map(length).sum::<usize>();
                assert_eq!(length(rank), expected, "all_to_all: both sides know the lengths");
                receive[at..at + expected].copy_from_slice(&parcel[start..start + expected]);
                at += expected;
            }
        });
        Ok(())
    }

    fn all_gather(&mut self, mine: &[u8], all: &mut [u8], lengths: &[usize]) -> Result<(), Failure> {
        self.exchange(mine, |parcels| {
            assert!(parcels.iter().map(Vec::len).eq(lengths.iter().copied()), "all_gather: {lengths:?}");
            all.copy_from_slice(&parcels.concat());
        });
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let given = bytes.to_vec();
        self.exchange(&given, |parcels| bytes.copy_from_slice(&parcels[0]));
        Ok(())
    }

    fn abort(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_the_order_of_the_ranks() {
        let seen = in_threads(4, |group| {
            let rank = group.rank() as u8;
            let first = group.broadcast(vec![rank + 7; rank as usize + 3]).expect("threads");
            (first, group.all_gather(vec![rank; rank as usize]).expect("threads"))
        });
        for (first, all) in seen {
            assert_eq!(first, [7; 3]);
            assert_eq!(all, [vec![], vec![1], vec![2; 2], vec![3; 3]]);
        }
    }
}
