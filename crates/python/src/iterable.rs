//! Translations of the texts of an iterable, as lazily as it gives them.
//!
//! ```text
//! Python's thread     pulls texts from the iterable when the other asks for some, and hands translations out
//! a thread of ours    owns the queue: it asks for texts, decodes, and waits when nobody takes its translations
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use heedful::tasks::translate::{TranslatedText, TranslationQueue, Translator as Model};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::arguments::text_of;
use crate::calls::computed;
use crate::errors::{Exception, value};
use crate::translation::{Translated, Translation};
use crate::translator::{Reading, inputs};

/// Texts that are handed over at a time.
const TEXTS_AT_A_TIME: usize = 32;
/// Translations that wait to be taken while others are decoded.
const WAITING: usize = 64;

/// Translations in the order of their texts.
#[pyclass(module = "heedful")]
pub(crate) struct TranslationIterator {
    model: Arc<Model>,
    reading: Arc<Reading>,
    texts: Py<PyIterator>,
    prefetch: usize,
    /// Texts that were taken from the iterable, and translations that were handed out.
    pulled: usize,
    answered: usize,
    /// Whether the iterable has ended, or failed.
    has_ended: bool,
    /// None before the first translation is asked for, and after the last.
    worker: Option<Worker>,
    is_done: bool,
}

/// The thread that decodes. Dropped, it ends after the step that it is in.
struct Worker {
    texts: Sender<Batch>,
    events: Mutex<Receiver<Event>>,
    is_unwanted: Arc<AtomicBool>,
}

struct Batch {
    texts: Vec<String>,
    is_last: bool,
}

enum Event {
    /// A batch is asked for, and will come.
    WantsTexts,
    Translated(TranslatedText),
    Failed(PyErr),
    Ended,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }
}

impl TranslationIterator {
    pub(crate) fn new(
        model: Arc<Model>,
        reading: Reading,
        texts: Bound<'_, PyIterator>,
        prefetch: usize,
    ) -> TranslationIterator {
        TranslationIterator {
            model,
            reading: Arc::new(reading),
            texts: texts.unbind(),
            prefetch,
            pulled: 0,
            answered: 0,
            has_ended: false,
            worker: None,
            is_done: false,
        }
    }

    /// The next texts of the iterable: none if enough of them wait for their answers.
    fn pull(&mut self, py: Python<'_>) -> PyResult<Batch> {
        let mut texts = Vec::new();
        while !self.has_ended && texts.len() < TEXTS_AT_A_TIME && self.pulled - self.answered < self.prefetch
        {
            match self.texts.bind(py).clone().next() {
                Some(text) => texts.push(text_of(self.pulled, &text?)?),
                None => self.has_ended = true,
            }
            self.pulled += usize::from(!self.has_ended);
        }
        Ok(Batch { texts, is_last: self.has_ended })
    }

    fn step(&mut self, py: Python<'_>) -> PyResult<Option<TranslatedText>> {
        loop {
            let worker = self.worker.get_or_insert_with(|| start(self.model.clone(), self.reading.clone()));
            let events = &worker.events;
            let event = computed(py, |signals| {
                signals.wait_for(&events.lock().unwrap_or_else(PoisonError::into_inner))
            })?;
            match event {
                Event::Translated(text) => return Ok(Some(text)),
                Event::Ended => return Ok(None),
                Event::Failed(error) => return Err(error),
                Event::WantsTexts => {
                    let batch = self.pull(py)?;
                    // It waits for them; if it has panicked, the next event says so.
                    let _ = self.worker.as_ref().map(|worker| worker.texts.send(batch));
                }
            }
        }
    }
}

#[pymethods]
impl TranslationIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Translation>> {
        if self.is_done {
            return Ok(None);
        }
        match self.step(py) {
            Ok(Some(text)) => {
                self.answered += 1;
                let (translator, options) = (self.model.clone(), Arc::new(self.reading.options.clone()));
                Ok(Some(Translation::new(Translated { translator, options, text })))
            }
            // As a generator's: after its end, and after an exception, there is nothing more.
            other => {
                self.is_done = true;
                self.worker = None;
                other.map(|_| None)
            }
        }
    }
}

fn start(model: Arc<Model>, reading: Arc<Reading>) -> Worker {
    let (texts, batches) = channel();
    let (sender, events) = sync_channel(WAITING);
    let is_unwanted = Arc::new(AtomicBool::new(false));
    let stop = is_unwanted.clone();
    thread::spawn(move || {
        let last = match run(&model, &reading, &batches, &sender, &stop) {
            Ok(()) => Event::Ended,
            Err(error) => Event::Failed(error),
        };
        // Whoever is gone does not want to know.
        let _ = sender.send(last);
    });
    Worker { texts, events: Mutex::new(events), is_unwanted }
}

/// Runs until the last translation was handed over, or nobody wants one.
fn run(
    model: &Model,
    reading: &Reading,
    batches: &Receiver<Batch>,
    events: &SyncSender<Event>,
    stop: &AtomicBool,
) -> PyResult<()> {
    let mut queue = TranslationQueue::new(model, &reading.options).map_err(|error| error.exception())?;
    let (mut number, mut has_ended) = (0, false);
    while !stop.load(Ordering::Relaxed) {
        while !has_ended && queue.wants_text() {
            if events.send(Event::WantsTexts).is_err() {
                return Ok(());
            }
            let Ok(batch) = batches.recv() else { return Ok(()) };
            (has_ended, number) = (batch.is_last, number + batch.texts.len());
            let first = number - batch.texts.len();
            for (index, text) in batch.texts.iter().enumerate() {
                queue.push(inputs(model, reading, first + index, text, "")?);
            }
            if batch.texts.is_empty() {
                break;
            }
        }
        if !queue.is_idle() {
            queue.step().map_err(|failed| value(format!("text {}: {}", failed.text, failed.error)))?;
        }
        while let Some((_, translated)) = queue.pop() {
            if events.send(Event::Translated(translated)).is_err() {
                return Ok(());
            }
        }
        if has_ended && queue.is_idle() {
            return Ok(());
        }
    }
    Ok(())
}
