//! A group whose ranks are threads of one process: for tests, and to measure the cost of sharding without a
//! library.

use std::sync::{Arc, Barrier, Mutex};

use super::group::{Failure, Group, Transport};

/// Runs `work` concurrently for each of `size` ranks, and returns the results in the order of the ranks.
pub fn in_threads<R: Send>(size: usize, work: impl Fn(Group) -> R + Sync) -> Vec<R> {
    let mailboxes =
        Arc::new(Mailboxes { barrier: Barrier::new(size), messages: Mutex::new(vec![Vec::new(); size]) });
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (mailboxes, work) = (mailboxes.clone(), &work);
                scope.spawn(move || {
                    let open = move || Ok::<_, Failure>((ThreadTransport { mailboxes, rank }, rank, size));
                    work(Group::open(open).expect("nothing can fail"))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("a rank that does not panic")).collect()
    })
}

/// One message per rank, readable by all.
struct Mailboxes {
    barrier: Barrier,
    messages: Mutex<Vec<Vec<u8>>>,
}

struct ThreadTransport {
    mailboxes: Arc<Mailboxes>,
    rank: usize,
}

impl ThreadTransport {
    /// Posts this rank's bytes, reads from everyone's, and waits until all have read.
    fn exchange(&mut self, mine: &[u8], take: impl FnOnce(&[Vec<u8>])) {
        self.mailboxes.messages.lock().expect("no rank panics here")[self.rank] = mine.to_vec();
        self.mailboxes.barrier.wait();
        take(&self.mailboxes.messages.lock().expect("no rank panics here"));
        self.mailboxes.barrier.wait();
    }
}

impl Transport for ThreadTransport {
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
        self.exchange(&[&header, send].concat(), |messages| {
            let mut at = 0;
            for (message, &expected) in messages.iter().zip(receive_lengths) {
                let length = |to: usize| {
                    u64::from_le_bytes(*message[8 * to..].first_chunk().expect("a header")) as usize
                };
                let start = 8 * ranks + (0..rank).map(length).sum::<usize>();
                assert_eq!(length(rank), expected, "all_to_all: both sides know the lengths");
                receive[at..at + expected].copy_from_slice(&message[start..start + expected]);
                at += expected;
            }
        });
        Ok(())
    }

    fn all_gather(&mut self, mine: &[u8], all: &mut [u8], lengths: &[usize]) -> Result<(), Failure> {
        self.exchange(mine, |messages| {
            assert!(messages.iter().map(Vec::len).eq(lengths.iter().copied()), "all_gather: {lengths:?}");
            all.copy_from_slice(&messages.concat());
        });
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        let given = bytes.to_vec();
        self.exchange(&given, |messages| bytes.copy_from_slice(&messages[0]));
        Ok(())
    }

    fn abort(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_rank_order() {
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
