//! The thread of a translator: one search for all translations that were submitted (continuous batching).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use super::pending::{PendingTranslation, Promise, promise};
use super::{Translation, Translator};
use crate::decode::{DecodeError, Hypothesis, Limits, Search, SearchInput, SearchOptions};

/// The thread, which starts with the first job and ends when there is no translator left to submit one.
#[derive(Default)]
pub(super) struct Worker {
    jobs: OnceLock<Sender<Job>>,
}

struct Job {
    input: SearchInput,
    options: Arc<SearchOptions>,
    limits: Limits,
    promise: Promise,
    /// Tokens that were generated for it.
    generated: usize,
}

impl Worker {
    /// Hands a job to the thread of a translator and of its clones.
    pub(super) fn submit(
        &self,
        translator: &Translator,
        input: SearchInput,
        options: &SearchOptions,
        limits: Limits,
    ) -> PendingTranslation {
        let (promise, pending) = promise();
        let job = Job { input, options: Arc::new(options.clone()), limits, promise, generated: 0 };
        let jobs = self.jobs.get_or_init(|| start(translator.without_worker()));
        // The thread lives as long as somebody can send.
        let _ = jobs.send(job);
        pending
    }
}

/// Starts the thread. The translator has not the worker that keeps the channel open: so the thread ends with the others.
fn start(translator: Translator) -> Sender<Job> {
    let (sender, jobs) = channel();
    thread::spawn(move || {
        // After a panic, the jobs that were being decoded have an error, and those that wait are decoded.
        while catch_unwind(AssertUnwindSafe(|| run(&translator, &jobs))).is_err() {}
    });
    sender
}

/// Runs until no job can come any more.
fn run(translator: &Translator, jobs: &Receiver<Job>) {
    // Type of the products, shortlist and removed heads are those of a search.
    let mut searches: Vec<(Arc<SearchOptions>, Search<'_>)> = Vec::new();
    let mut open: BTreeMap<usize, Job> = BTreeMap::new();
    let mut numbers = 0..;
    loop {
        loop {
            let job = if open.is_empty() {
                jobs.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                jobs.try_recv()
            };
            match (job, numbers.next()) {
                (Ok(job), Some(number)) => admit(translator, number, job, &mut searches, &mut open),
                (Err(TryRecvError::Disconnected), _) if open.is_empty() => return,
                _ => break,
            }
        }
        open.retain(|&number, job| {
            let ended = match job.limits.check(job.generated) {
                _ if job.promise.is_unwanted() => Some(DecodeError::Cancelled),
                Err(error) => Some(error),
                Ok(()) => None,
            };
            let Some(error) = ended else { return true };
            searches.iter_mut().for_each(|(_, search)| search.cancel(number));
            job.promise.fulfil(Err(error));
            false
        });
        for (_, search) in searches.iter_mut().filter(|(_, search)| !search.is_idle()) {
            for (number, found) in search.step() {
                if let Some(job) = open.remove(&number) {
                    finish(translator, job, found);
                }
            }
            for (&number, job) in &mut open {
                job.generated = search.generated_for(number).unwrap_or(job.generated);
            }
        }
    }
}

fn admit<'t>(
    translator: &'t Translator,
    number: usize,
    job: Job,
    searches: &mut Vec<(Arc<SearchOptions>, Search<'t>)>,
    open: &mut BTreeMap<usize, Job>,
) {
    if job.input.source.is_empty() {
        return job.promise.fulfil(Ok(Translation::default()));
    }
    // There are few types and shortlists, and many sets of heads.
    searches.retain(|(of, search)| of.without_heads.is_empty() || !search.is_idle());
    let fits = |of: &SearchOptions| {
        of.compute == job.options.compute
            && of.shortlist == job.options.shortlist
            && of.without_heads == job.options.without_heads
    };
    let place = match searches.iter().position(|(of, _)| fits(of)) {
        Some(place) => place,
        None => match translator.search(&job.options) {
            Ok(search) => {
                searches.push((job.options.clone(), search));
                searches.len() - 1
            }
            Err(error) => return job.promise.fulfil(Err(error)),
        },
    };
    match searches[place].1.push_input(number, job.input.clone(), job.options.clone()) {
        Ok(()) => drop(open.insert(number, job)),
        Err(error) => job.promise.fulfil(Err(error.of_sentence(0))),
    }
}

fn finish(translator: &Translator, job: Job, found: Result<Vec<Hypothesis>, DecodeError>) {
    // The step that finished it is one more.
    let within = job.limits.check(job.generated + 1);
    let translation = |hypotheses| Translation {
        source: job.input.source.clone(),
        outputs: translator.outputs(hypotheses),
    };
    let found = found.map_err(|error| error.of_sentence(0));
    job.promise.fulfil(within.and(found).map(translation));
}
