//! The MPI transport.

use std::time::{Duration, Instant};

use super::abi::{Abi, Kind};
use super::calls::{Calls, Request};
use super::{MpiUnavailable, OPEN_MPI, check_launcher, launched, library};
use crate::collective::group::{Failure, Transport};

/// A started MPI, used only by the thread that started it.
pub(super) struct Mpi {
    calls: Calls,
    abi: Abi,
    rank: usize,
    size: usize,
}

// SAFETY: it is created and used on one thread; `Transport` requires `Send` because groups may move between
// threads.
unsafe impl Send for Mpi {}

/// Polls without pause at first: most messages are short.
const SPIN: Duration = Duration::from_micros(200);
/// Then polls rarely, to leave the core to other work.
const PAUSE: Duration = Duration::from_micros(20);

impl Mpi {
    /// Starts the MPI of the launcher, with the rank of this process and the number of ranks.
    pub(super) fn join() -> Result<(Mpi, usize, usize), MpiUnavailable> {
        let calls = Calls::load(library::find()?)?;
        // MPICH would abort the process.
        if calls.abi().kind == Kind::Mpich && launched().is_some_and(|launched| launched.variable == OPEN_MPI)
        {
            check_launcher(1, &calls.version())?;
        }
        let mpi = Mpi::start(calls)?;
        check_launcher(mpi.size, &mpi.calls.version())?;
        let (rank, size) = (mpi.rank, mpi.size);
        Ok((mpi, rank, size))
    }

    fn start(calls: Calls) -> Result<Mpi, Failure> {
        let abi = calls.abi();
        calls.init(abi.funneled)?;
        let (rank, size) = (calls.rank(abi.world)?, calls.size(abi.world)?);
        Ok(Mpi { calls, abi, rank, size })
    }

    fn wait(&self, mut request: Request) -> Result<(), Failure> {
        let began = Instant::now();
        while !self.calls.is_done(&mut request, self.abi.ignored_status)? {
            if began.elapsed() < SPIN {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

impl Transport for Mpi {
    fn all_to_all(
        &mut self,
        send: &[u8],
        send_lengths: &[usize],
        receive: &mut [u8],
        receive_lengths: &[usize],
    ) -> Result<(), Failure> {
        let (send_counts, receive_counts) = (Counts::new(send_lengths)?, Counts::new(receive_lengths)?);
        assert_eq!((send.len(), receive.len()), (send_counts.total, receive_counts.total), "all_to_all");
        assert_eq!((send_lengths.len(), receive_lengths.len()), (self.size, self.size), "all_to_all");
        // SAFETY: counts and displacements lie within the slices, as asserted, and all of it lives until the
        // request is done.
        let request = unsafe {
            self.calls.all_to_all(
                (start(send), &send_counts.counts, &send_counts.displacements),
                (start_mut(receive), &receive_counts.counts, &receive_counts.displacements),
                self.abi.byte,
                self.abi.world,
            )
        }?;
        self.wait(request)
    }

    fn all_gather(&mut self, mine: &[u8], all: &mut [u8], lengths: &[usize]) -> Result<(), Failure> {
        let counts = Counts::new(lengths)?;
        assert_eq!((lengths.len(), all.len()), (self.size, counts.total), "all_gather");
        assert_eq!(mine.len(), lengths[self.rank], "all_gather");
        // SAFETY: as above.
        let request = unsafe {
            self.calls.all_gather(
                (start(mine), mine.len() as i32),
                (start_mut(all), &counts.counts, &counts.displacements),
                self.abi.byte,
                self.abi.world,
            )
        }?;
        self.wait(request)
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure> {
        for part in bytes.chunks_mut(1 << 30) {
            // SAFETY: the part lives until the request is done.
            let request = unsafe {
                self.calls.broadcast(part.as_mut_ptr(), part.len() as i32, self.abi.byte, self.abi.world)
            }?;
            self.wait(request)?;
        }
        Ok(())
    }

    fn abort(&mut self) {
        self.calls.abort(self.abi.world);
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.calls.finalize();
    }
}

/// Pointer to the bytes; for an empty slice a valid address, because the pointer of an empty slice may be 1,
/// which is `MPI_IN_PLACE` for some implementations.
fn start(bytes: &[u8]) -> *const u8 {
    static NOWHERE: u8 = 0;
    if bytes.is_empty() { &raw const NOWHERE } else { bytes.as_ptr() }
}

/// The same for incoming bytes.
fn start_mut(bytes: &mut [u8]) -> *mut u8 {
    if bytes.is_empty() { start(bytes).cast_mut() } else { bytes.as_mut_ptr() }
}

/// Counts and displacements as MPI takes them.
struct Counts {
    counts: Vec<i32>,
    displacements: Vec<i32>,
    total: usize,
}

impl Counts {
    fn new(lengths: &[usize]) -> Result<Counts, Failure> {
        let (mut counts, mut displacements, mut total) = (Vec::new(), Vec::new(), 0);
        for &length in lengths {
            displacements.push(int(total)?);
            counts.push(int(length)?);
            total += length;
        }
        int(total)?;
        Ok(Counts { counts, displacements, total })
    }
}

fn int(length: usize) -> Result<i32, Failure> {
    i32::try_from(length).map_err(|_| Failure {
        call: "MPI",
        error: format!("a message of {length} bytes is too long for MPI"),
    })
}
