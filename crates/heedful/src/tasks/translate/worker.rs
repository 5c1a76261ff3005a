//! The thread of a translator: one search for all translations that were submitted (continuous batching).

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use heedful_tensor::OutOfMemory;

use super::pending::{PendingTranslation, Promise, promise};
use super::{Translation, Translator};
use crate::decode::{DecodeError, Hypothesis, Limits, Scheduler, SearchInput, SearchOptions, SentenceId};

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
    let mut searches: Vec<Search<'_>> = Vec::new();
    loop {
        loop {
            let is_idle = searches.iter().all(|search| search.open.is_empty());
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
    let place = match searches.iter().position(fits) {
        Some(place) => place,
        None => {
            let options = SearchOptions { without_heads: Vec::new(), ..(*job.options).clone() };
            match translator.scheduler(&options) {
                Ok(scheduler) => searches.push(Search { options, scheduler, open: BTreeMap::new() }),
                Err(error) => return job.promise.fulfil(Err(error)),
            }
            searches.len() - 1
        }
    };
    let Search { scheduler, open, .. } = &mut searches[place];
    open.insert(scheduler.push_with(job.input.clone(), job.options.clone()), job);
}

/// The jobs of one type of products and one shortlist, of which there are few.
struct Search<'t> {
    options: SearchOptions,
    scheduler: Scheduler<'t>,
    open: BTreeMap<SentenceId, Job>,
}

impl Search<'_> {
    /// Ends the jobs that are to end, and decodes one more token of the others. On an error all have it, and the search is over.
    fn step(&mut self, translator: &Translator) -> Result<(), OutOfMemory> {
        let Search { scheduler, open, .. } = self;
        open.retain(|&id, job| {
            let ended = match job.limits.check(job.generated) {
                _ if job.promise.is_unwanted() => Some(DecodeError::Cancelled),
                Err(error) => Some(error),
                Ok(()) => None,
            };
            let Some(error) = ended else { return true };
            scheduler.cancel(id);
            job.promise.fulfil(Err(error));
            false
        });
        if let Err(full) = scheduler.step() {
            std::mem::take(open).into_values().for_each(|job| job.promise.fulfil(Err(full.into())));
            return Err(full);
        }
        while let Some((id, found)) = scheduler.poll() {
            if let Some(job) = open.remove(&id) {
                finish(translator, job, found);
            }
        }
        for (&id, job) in open {
            job.generated = scheduler.generated_for(id).unwrap_or(job.generated);
        }
        Ok(())
    }
}

fn finish(translator: &Translator, job: Job, found: Result<Vec<Hypothesis>, DecodeError>) {
    // The step that finished it is one more.
    let within = job.limits.check(job.generated + 1);
    let translation =
        |hypotheses| Translation { source: job.input.source, outputs: translator.outputs(hypotheses) };
    let found = found.map_err(|error| error.of_sentence(0));
    job.promise.fulfil(within.and(found).map(translation));
}
