//! MPI, found at run time: nothing of it is needed to build.
//!
//! 1. `library` finds the one that belongs to the launcher.
//! 2. `abi` has what differs between the three kinds: Open MPI's, MPICH's, and that of the MPI 5 standard.
//! 3. `calls` are the functions that are used, about ten.

mod library;

mod abi;

mod calls;

use std::time::{Duration, Instant};

use self::abi::{Abi, Kind};
use self::calls::{Calls, Request};
use super::group::{Failure, Group, Transport};

/// Why ranks cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// There is no library.
    #[error(
        "no MPI library was found (looked for {looked_for}): start heedful with mpirun, mpiexec or srun of an MPI that is installed, \
         or name its library, HEEDFUL_MPI=/path/to/libmpi.so.40"
    )]
    NotFound {
        /// The names.
        looked_for: String,
    },
    /// The library that was named cannot be used.
    #[error("{path} is no MPI library that can be used ({why}): name another one with HEEDFUL_MPI")]
    Unusable {
        /// The library.
        path: String,
        /// The reason.
        why: String,
    },
    /// The launcher has started several processes, and the library knows of one only.
    #[error(
        "{variable} says that {launched} processes were started, but each of them is alone for {library}: the launcher and the \
         library belong to different MPIs. Name the library of the launcher, HEEDFUL_MPI=/path/to/libmpi.so, or use the launcher of \
         the library"
    )]
    Alone {
        /// What the launcher has set.
        variable: &'static str,
        /// Its number of processes.
        launched: usize,
        /// The library, by its own words.
        library: String,
    },
    /// The library does not start.
    #[error("MPI does not start: {0}")]
    Failed(#[from] Failure),
}

/// Joins the processes that a launcher has started with this one. It may be called once in a process.
pub fn join() -> Result<Group, Unavailable> {
    Group::open(|| {
        let calls = Calls::load(library::find()?)?;
        // MPICH would end the process by itself.
        if calls.abi().kind == Kind::Mpich && launched().is_some_and(|(variable, _)| variable == OPEN_MPI) {
            check_launcher(1, &calls.version())?;
        }
        let transport = Mpi::start(calls)?;
        let (rank, size) = (transport.rank, transport.size);
        check_launcher(size, &transport.calls.version())?;
        Ok((transport, rank, size))
    })
}

/// Open MPI's launcher sets it.
const OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";

/// The number of processes that a launcher has started, and the variable that says so; `None` where there was no launcher.
pub fn launched() -> Option<(&'static str, usize)> {
    // Slurm sets SLURM_NTASKS for a batch script too, which is one process; a task of several has its number.
    let variables = [OPEN_MPI, "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
    let of = |name: &'static str| Some((name, std::env::var(name).ok()?.parse().ok()?));
    let step = || std::env::var_os("SLURM_STEP_NUM_TASKS").and_then(|_| of("SLURM_STEP_NUM_TASKS"));
    variables.into_iter().find_map(of).or_else(step)
}

fn check_launcher(size: usize, library: &str) -> Result<(), Unavailable> {
    match launched() {
        Some((variable, launched)) if launched > 1 && size == 1 => {
            Err(Unavailable::Alone { variable, launched, library: library.to_owned() })
        }
        _ => Ok(()),
    }
}

/// An MPI that was started. Only the thread that started it uses it.
struct Mpi {
    calls: Calls,
    abi: Abi,
    rank: usize,
    size: usize,
}

// SAFETY: it is made and used on one thread; `Transport` asks for `Send` because groups may be handed around.
unsafe impl Send for Mpi {}

/// Looks whether the others have done their part without pause at first: most messages are short.
const IMPATIENT: Duration = Duration::from_micros(200);
/// After that so rarely that whoever computes on the same core hardly notices.
const PAUSE: Duration = Duration::from_micros(20);

impl Mpi {
    fn start(calls: Calls) -> Result<Mpi, Failure> {
        let abi = calls.abi();
        calls.init(abi.funneled)?;
        let (rank, size) = (calls.rank(abi.world)?, calls.size(abi.world)?);
        Ok(Mpi { calls, abi, rank, size })
    }

    fn wait(&self, mut request: Request) -> Result<(), Failure> {
        let began = Instant::now();
        while !self.calls.is_done(&mut request, self.abi.ignored_status)? {
            if began.elapsed() < IMPATIENT {
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
        // SAFETY: counts and places lie within the slices, as asserted, and all of it lives until the request is done.
        let request = unsafe {
            self.calls.all_to_all(
                (send.as_ptr(), &send_counts.counts, &send_counts.places),
                (receive.as_mut_ptr(), &receive_counts.counts, &receive_counts.places),
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
                (mine.as_ptr(), mine.len() as i32),
                (all.as_mut_ptr(), &counts.counts, &counts.places),
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

/// Lengths and places as MPI wants them.
struct Counts {
    counts: Vec<i32>,
    places: Vec<i32>,
    total: usize,
}

impl Counts {
    fn new(lengths: &[usize]) -> Result<Counts, Failure> {
        let (mut counts, mut places, mut total) = (Vec::new(), Vec::new(), 0);
        for &length in lengths {
            places.push(int(total)?);
            counts.push(int(length)?);
            total += length;
        }
        int(total)?;
        Ok(Counts { counts, places, total })
    }
}

fn int(length: usize) -> Result<i32, Failure> {
    i32::try_from(length).map_err(|_| Failure {
        call: "MPI",
        error: format!("a message of {length} bytes is longer than one may be"),
    })
}
