//! A process's communicator: its rank, the number of ranks, and a communication thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A communication error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {error}")]
pub struct Failure {
    /// The library function that failed.
    pub call: &'static str,
    /// Its error.
    pub error: String,
}

/// Moves bytes between ranks. Every rank must call the same functions in the same order.
pub trait Transport: Send {
    /// Every rank sends one part of `send` to each rank and receives one part from each: the parts are
    /// concatenated and have these lengths.
    fn all_to_all(
        &mut self,
        send: &[u8],
        send_lengths: &[usize],
        receive: &mut [u8],
        receive_lengths: &[usize],
    ) -> Result<(), Failure>;

    /// Every rank contributes `mine` and receives the contributions of all, which have these lengths, in the
    /// order of the ranks.
    fn all_gather(&mut self, mine: &[u8], all: &mut [u8], lengths: &[usize]) -> Result<(), Failure>;

    /// All ranks receive the bytes of rank 0.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure>;

    /// Aborts all ranks at once, including this one where the transport can.
    fn abort(&mut self);
}

type Job = Box<dyn FnOnce(&mut dyn Transport) + Send>;

/// A group of processes, as seen by one of them. Clones share it.
#[derive(Clone)]
pub struct Group {
    rank: usize,
    size: usize,
    comm: Arc<CommThread>,
}

/// The communication thread.
struct CommThread {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// Nanoseconds.
#[derive(Default)]
struct Counters {
    communicating: AtomicU64,
    waiting: AtomicU64,
}

/// Time spent on communication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in which the communication thread was busy, waiting for other ranks included.
    pub communicating: Duration,
    /// The part of it in which the process waited for the thread.
    pub waiting: Duration,
}

/// The result of a communication that is under way.
pub struct Pending<R> {
    result: Mutex<Receiver<std::thread::Result<R>>>,
    counters: Arc<Counters>,
}

impl Group {
    /// Opens a transport on a thread of its own, which alone uses it, because libraries differ in their
    /// support of threads. `open` returns it with the rank and the number of ranks.
    pub fn open<T: Transport, E: Send + 'static>(
        open: impl FnOnce() -> Result<(T, usize, usize), E> + Send + 'static,
    ) -> Result<Group, E> {
        let (jobs, work) = channel::<Job>();
        let (sender, opened) = channel();
        let counters = Arc::new(Counters::default());
        let times = counters.clone();
        let serve = move || {
            let mut transport = match open() {
                Ok((transport, rank, size)) => {
                    let _ = sender.send(Ok((rank, size)));
                    transport
                }
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            };
            while let Ok(job) = work.recv() {
                let began = Instant::now();
                job(&mut transport);
                times.communicating.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("group".to_owned()).spawn(serve);
        let thread = thread.expect("the communication thread starts");
        let (rank, size) = opened.recv().expect("the thread reports its result")?;
        Ok(Group {
            rank,
            size,
            comm: Arc::new(CommThread { jobs: Some(jobs), thread: Some(thread), counters }),
        })
    }

    /// The rank of this process, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this is rank 0, which reads files, writes files and decides.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Runs `work` on the communication thread after everything submitted earlier, while this thread
    /// continues.
    pub fn begin<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Transport) -> R + Send + 'static,
    ) -> Pending<R> {
        let (sender, result) = channel();
        let job: Job = Box::new(move |transport| {
            let _ = sender.send(catch_unwind(AssertUnwindSafe(|| work(transport))));
        });
        let jobs = self.comm.jobs.as_ref().expect("it exists until the last clone is dropped");
        jobs.send(job).expect("the thread lives as long as the group");
        Pending { result: Mutex::new(result), counters: self.comm.counters.clone() }
    }

    /// As [`Group::begin`], and waits for the result.
    pub fn run<R: Send + 'static>(&self, work: impl FnOnce(&mut dyn Transport) -> R + Send + 'static) -> R {
        self.begin(work).wait()
    }

    /// All ranks receive the message of rank 0; the messages of other ranks are ignored.
    pub fn broadcast(&self, message: Vec<u8>) -> Result<Vec<u8>, Failure> {
        self.run(move |transport| {
            let mut length = (message.len() as u64).to_le_bytes();
            transport.broadcast(&mut length)?;
            let mut message = message;
            message.resize(u64::from_le_bytes(length) as usize, 0);
            transport.broadcast(&mut message)?;
            Ok(message)
        })
    }

    /// All ranks receive the values of rank 0; the others pass `None`.
    pub fn broadcast_numbers(&self, numbers: Option<&[f32]>) -> Result<Vec<f32>, Failure> {
        let given = numbers.map(|numbers| bytemuck::cast_slice(numbers).to_vec()).unwrap_or_default();
        let bytes = self.broadcast(given)?;
        Ok(bytes.as_chunks().0.iter().map(|&number| f32::from_ne_bytes(number)).collect())
    }

    /// All ranks receive the messages of all ranks, in the order of the ranks.
    pub fn all_gather(&self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
        let size = self.size;
        self.run(move |transport| {
            let mut lengths = vec![0; 8 * size];
            let length = (message.len() as u64).to_le_bytes();
            transport.all_gather(&length, &mut lengths, &vec![8; size])?;
            let (lengths, _) = lengths.as_chunks::<8>();
            let lengths: Vec<usize> =
                lengths.iter().map(|&length| u64::from_le_bytes(length) as usize).collect();
            let mut all = vec![0; lengths.iter().sum()];
            transport.all_gather(&message, &mut all, &lengths)?;
            let mut rest = &all[..];
            Ok(lengths
                .iter()
                .map(|&length| rest.split_off(..length).expect("within all bytes").to_vec())
                .collect())
        })
    }

    /// Communication time so far.
    pub fn times(&self) -> Times {
        let duration = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed));
        Times {
            communicating: duration(&self.comm.counters.communicating),
            waiting: duration(&self.comm.counters.waiting),
        }
    }

    /// Aborts all ranks at once.
    pub fn abort(&self) {
        // If the thread waits for a rank that has died, it never runs another job.
        let aborted = self.begin(|transport| transport.abort());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) && !aborted.is_ready() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl<R> Pending<R> {
    /// Waits for the result.
    pub fn wait(self) -> R {
        let began = Instant::now();
        let result = self.result.into_inner().expect("not poisoned");
        let result = result.recv().expect("the thread reports its result");
        self.counters.waiting.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        match result {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn is_ready(&self) -> bool {
        self.result.lock().expect("not poisoned").try_recv().is_ok()
    }
}

impl Drop for CommThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
