//! The thread of a translator: continuous batching of all submitted translations.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use heedful_tensor::OutOfMemory;

use super::pending::{PendingTranslation, Promise, promise};
use super::{Translation, Translator};
use crate::decode::{DecodeError, Hypothesis, Limits, Scheduler, SearchInput, SearchOptions, SentenceId};

/// The thread. It starts with the first job and ends when all clones of the translator are dropped.
#[derive(Default)]
pub(super) struct Worker {
    jobs: OnceLock<Sender<Job>>,
}

struct Job {
    input: SearchInput,
    options: Arc<SearchOptions>,
    limits: Limits,
    promise: Promise,
    /// Number of tokens generated so far.
    generated: usize,
}

impl Worker {
    /// Submits a job to the thread that a translator shares with its clones.
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
        // The receiver lives as long as this sender: sending cannot fail.
        let _ = jobs.send(job);
        pending
    }
}

/// Starts the thread. Its translator does not own the sender, so that the channel closes when the other
/// clones are dropped.
fn start(translator: Translator) -> Sender<Job> {
    let (sender, jobs) = channel();
    thread::spawn(move || {
        // After a panic, the jobs in progress fail, and queued jobs are decoded.
        while catch_unwind(AssertUnwindSafe(|| run(&translator, &jobs))).is_err() {}
    });
    sender
}

/// Runs until the channel is closed.
fn run(translator: &Translator, jobs: &Receiver<Job>) {
    let mut searches: Vec<Search<'_>> = Vec::new();
    loop {
        loop {
            let is_idle = searches.iter().all(|search| search.jobs.is_empty());
            let job =
                if is_idle { jobs.recv().map_err(|_| TryRecvError::Disconnected) } else { jobs.try_recv() };
            match job {
                Ok(job) => admit(translator, job, &mut searches),
                Err(TryRecvError::Disconnected) if is_idle => return,
                Err(_) => break,
            }
        }
        searches.retain_mut(|search| search.step(translator).is_ok());
    }
}

fn admit<'t>(translator: &'t Translator, job: Job, searches: &mut Vec<Search<'t>>) {
    if job.input.source.is_empty() {
        return job.promise.fulfil(Ok(Translation::default()));
    }
    let fits = |search: &Search<'_>| {
        search.options.compute == job.options.compute && search.options.shortlist == job.options.shortlist
    };
    let index = match searches.iter().position(fits) {
        Some(index) => index,
        None => {
            let options = SearchOptions { without_heads: Vec::new(), ..(*job.options).clone() };
            match translator.scheduler(&options) {
                Ok(scheduler) => searches.push(Search { options, scheduler, jobs: BTreeMap::new() }),
                Err(error) => return job.promise.fulfil(Err(error)),
            }
            searches.len() - 1
        }
    };
    let Search { scheduler, jobs, .. } = &mut searches[index];
    jobs.insert(scheduler.push_with(job.input.clone(), job.options.clone()), job);
}

/// The jobs with the same type of matrix products and the same shortlist.
struct Search<'t> {
    options: SearchOptions,
    scheduler: Scheduler<'t>,
    jobs: BTreeMap<SentenceId, Job>,
}

impl Search<'_> {
    /// Ends cancelled jobs and those that reached their limits, and decodes one token of the others. An error
    /// fails all jobs and ends the search.
    fn step(&mut self, translator: &Translator) -> Result<(), OutOfMemory> {
        let Search { scheduler, jobs, .. } = self;
        jobs.retain(|&id, job| {
            let ended = match job.limits.check(job.generated) {
                _ if job.promise.is_cancelled() => Some(DecodeError::Cancelled),
                Err(error) => Some(error),
                Ok(()) => None,
            };
            let Some(error) = ended else { return true };
            scheduler.cancel(id);
            job.promise.fulfil(Err(error));
            false
        });
        if let Err(full) = scheduler.step() {
            std::mem::take(jobs).into_values().for_each(|job| job.promise.fulfil(Err(full.into())));
            return Err(full);
        }
        while let Some((id, found)) = scheduler.poll() {
            if let Some(job) = jobs.remove(&id) {
                finish(translator, job, found);
            }
        }
        for (&id, job) in jobs {
            job.generated = scheduler.generated_for(id).unwrap_or(job.generated);
        }
        Ok(())
    }
}

fn finish(translator: &Translator, job: Job, found: Result<Vec<Hypothesis>, DecodeError>) {
    // Plus the last step.
    let limits = job.limits.check(job.generated + 1);
    let translation =
        |hypotheses| Translation { source: job.input.source, outputs: translator.outputs(hypotheses) };
    let found = found.map_err(|error| error.with_sentence(0));
    job.promise.fulfil(limits.and(found).map(translation));
}
