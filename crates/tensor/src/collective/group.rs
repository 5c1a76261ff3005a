//! What a process sees of the others: its rank, how many there are, and a thread that talks to them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Why ranks cannot talk to each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {error}")]
pub struct Failure {
    /// What was asked of the library.
    pub call: &'static str,
    /// Its answer.
    pub error: String,
}

/// How bytes get from rank to rank. Every rank calls the same functions in the same order.
pub trait Transport: Send {
    /// Every rank has a part of `send` for each, and receives one from each: the parts lie one after the other, and have these
    /// lengths.
    fn all_to_all(
        &mut self,
        send: &[u8],
        send_lengths: &[usize],
        receive: &mut [u8],
        receive_lengths: &[usize],
    ) -> Result<(), Failure>;

    /// Every rank has `mine`, and all of them get everybody's, which have these lengths, in the order of the ranks.
    fn all_gather(&mut self, mine: &[u8], all: &mut [u8], lengths: &[usize]) -> Result<(), Failure>;

    /// All ranks get the bytes of rank 0.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), Failure>;

    /// Ends all ranks at once, this one too where it can.
    fn abort(&mut self);
}

type Job = Box<dyn FnOnce(&mut dyn Transport) + Send>;

/// Some processes that work together, as one of them sees them. Cloning shares it.
#[derive(Clone)]
pub struct Group {
    rank: usize,
    size: usize,
    line: Arc<Line>,
}

/// The thread that talks to the others.
struct Line {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    spent: Arc<Spent>,
}

/// Nanoseconds.
#[derive(Default)]
struct Spent {
    talking: AtomicU64,
    waiting: AtomicU64,
}

/// What talking to the others took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in which the thread of the group had work, waiting for the others included.
    pub talking: Duration,
    /// Time of that in which the process waited for it.
    pub waiting: Duration,
}

/// What will be known when the others have done their part.
pub struct Pending<R> {
    result: Mutex<Receiver<std::thread::Result<R>>>,
    spent: Arc<Spent>,
}

impl Group {
    /// Opens a transport on a thread of its own, which alone uses it: libraries differ in what they allow to several threads. `open`
    /// returns it with the rank and the number of ranks.
    pub fn open<T: Transport, E: Send + 'static>(
        open: impl FnOnce() -> Result<(T, usize, usize), E> + Send + 'static,
    ) -> Result<Group, E> {
        let (jobs, work) = channel::<Job>();
        let (tell, opened) = channel();
        let spent = Arc::new(Spent::default());
        let times = spent.clone();
        let talk = move || {
            let mut transport = match open() {
                Ok((transport, rank, size)) => {
                    let _ = tell.send(Ok((rank, size)));
                    transport
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            while let Ok(job) = work.recv() {
                let began = Instant::now();
                job(&mut transport);
                times.talking.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
        };
        let thread = std::thread::Builder::new().name("group".to_owned()).spawn(talk);
        let thread = thread.expect("a thread can be started");
        let (rank, size) = opened.recv().expect("the thread tells how it went")?;
        Ok(Group { rank, size, line: Arc::new(Line { jobs: Some(jobs), thread: Some(thread), spent }) })
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this is the one that reads, writes and decides.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// Does `work` with the others after everything that was asked before, while this thread goes on.
    pub fn begin<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Transport) -> R + Send + 'static,
    ) -> Pending<R> {
        let (tell, result) = channel();
        let job: Job = Box::new(move |transport| {
            let _ = tell.send(catch_unwind(AssertUnwindSafe(|| work(transport))));
        });
        let jobs = self.line.jobs.as_ref().expect("it is there until the last group is gone");
        jobs.send(job).expect("the thread lives as long as the group");
        Pending { result: Mutex::new(result), spent: self.line.spent.clone() }
    }

    /// As [`Group::begin`], and waits.
    pub fn run<R: Send + 'static>(&self, work: impl FnOnce(&mut dyn Transport) -> R + Send + 'static) -> R {
        self.begin(work).wait()
    }

    /// All ranks get the message of rank 0; what the others give is not read.
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

    /// All ranks get the numbers of rank 0; the others give none.
    pub fn broadcast_numbers(&self, numbers: Option<&[f32]>) -> Result<Vec<f32>, Failure> {
        let given = numbers.map(|numbers| bytemuck::cast_slice(numbers).to_vec()).unwrap_or_default();
        let bytes = self.broadcast(given)?;
        Ok(bytes.as_chunks().0.iter().map(|&number| f32::from_ne_bytes(number)).collect())
    }

    /// All ranks get everybody's message, in the order of the ranks.
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
                .map(|&length| rest.split_off(..length).expect("as long as all").to_vec())
                .collect())
        })
    }

    /// What talking to the others has taken so far.
    pub fn times(&self) -> Times {
        let of = |nanoseconds: &AtomicU64| Duration::from_nanos(nanoseconds.load(Ordering::Relaxed));
        Times { talking: of(&self.line.spent.talking), waiting: of(&self.line.spent.waiting) }
    }

    /// Ends all ranks at once.
    pub fn abort(&self) {
        // A line that is busy with a rank that is gone will never take another job.
        let aborted = self.begin(|transport| transport.abort());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) && !aborted.is_known() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl<R> Pending<R> {
    /// Waits for it.
    pub fn wait(self) -> R {
        let began = Instant::now();
        let result = self.result.into_inner().expect("nobody panics with it");
        let result = result.recv().expect("the thread tells how it went");
        self.spent.waiting.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        match result {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn is_known(&self) -> bool {
        self.result.lock().expect("nobody panics with it").try_recv().is_ok()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
