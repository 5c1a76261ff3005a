//! Lazy translation of an iterable.
//!
//! ```text
//! Python's thread     pulls texts from the iterable when the worker requests some, and returns translations
//! worker thread       owns the queue: requests texts, decodes, and waits while its output buffer is full
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use heedful::tasks::translate::{TranslatedText, TranslationQueue, Translator as Model};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::arguments::text_of;
use crate::calls::detached;
use crate::errors::{ToException, value_error};
use crate::translation::{Translated, Translation};
use crate::translator::{TranslateArguments, inputs};

/// The batch size of texts that are sent to the worker.
const TEXTS_AT_A_TIME: usize = 32;
/// The capacity of the buffer of finished translations.
const BUFFERED: usize = 64;

/// Translations in the order of their texts.
#[pyclass(module = "heedful")]
pub(crate) struct TranslationIterator {
    model: Arc<Model>,
    arguments: Arc<TranslateArguments>,
    texts: Py<PyIterator>,
    prefetch: usize,
    /// The number of texts taken from the iterable, and of translations returned.
    pulled: usize,
    answered: usize,
    /// Whether the iterable is exhausted or has failed.
    has_ended: bool,
    /// None before the first translation is requested, and after the last.
    worker: Option<Worker>,
    is_done: bool,
}

/// The decoding thread, which ends after its current step when this is dropped.
struct Worker {
    texts: Sender<Batch>,
    events: Mutex<Receiver<Event>>,
    is_cancelled: Arc<AtomicBool>,
}

struct Batch {
    texts: Vec<String>,
    is_last: bool,
}

enum Event {
    /// Requests a batch.
    NeedsTexts,
    Translated(TranslatedText),
    Failed(PyErr),
    Ended,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }
}

impl TranslationIterator {
    pub(crate) fn new(
        model: Arc<Model>,
        arguments: TranslateArguments,
        texts: Bound<'_, PyIterator>,
        prefetch: usize,
    ) -> TranslationIterator {
        TranslationIterator {
            model,
            arguments: Arc::new(arguments),
            texts: texts.unbind(),
            prefetch,
            pulled: 0,
            answered: 0,
            has_ended: false,
            worker: None,
            is_done: false,
        }
    }

    /// The next texts of the iterable; empty if `prefetch` texts are unanswered.
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
            let worker = self.worker.get_or_insert_with(|| start(self.model.clone(), self.arguments.clone()));
            let events = &worker.events;
            let event = detached(py, |signals| {
                signals.wait_for(&events.lock().unwrap_or_else(PoisonError::into_inner))
            })?;
            match event {
                Event::Translated(text) => return Ok(Some(text)),
                Event::Ended => return Ok(None),
                Event::Failed(error) => return Err(error),
                Event::NeedsTexts => {
                    let batch = self.pull(py)?;
                    // If the worker has panicked, the next event reports it.
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
                let (translator, options) = (self.model.clone(), Arc::new(self.arguments.options.clone()));
                Ok(Some(Translation::new(Translated { translator, options, text })))
            }
            // Like a generator: exhausted after its end, and after an exception.
            other => {
                self.is_done = true;
                self.worker = None;
                other.map(|_| None)
            }
        }
    }
}

fn start(model: Arc<Model>, arguments: Arc<TranslateArguments>) -> Worker {
    let (texts, batches) = channel();
    let (sender, events) = sync_channel(BUFFERED);
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let stop = is_cancelled.clone();
    thread::spawn(move || {
        let last = match run(&model, &arguments, &batches, &sender, &stop) {
            Ok(()) => Event::Ended,
            Err(error) => Event::Failed(error),
        };
        // The receiver may be gone.
        let _ = sender.send(last);
    });
    Worker { texts, events: Mutex::new(events), is_cancelled }
}

/// Runs until the last translation was sent, or the iterator is dropped.
fn run(
    model: &Model,
    arguments: &TranslateArguments,
    batches: &Receiver<Batch>,
    events: &SyncSender<Event>,
    stop: &AtomicBool,
) -> PyResult<()> {
    let mut queue = TranslationQueue::new(model, &arguments.options).map_err(|error| error.exception())?;
    let (mut number, mut has_ended) = (0, false);
    while !stop.load(Ordering::Relaxed) {
        while !has_ended && queue.wants_text() {
            if events.send(Event::NeedsTexts).is_err() {
                return Ok(());
            }
            let Ok(batch) = batches.recv() else { return Ok(()) };
            (has_ended, number) = (batch.is_last, number + batch.texts.len());
            let first = number - batch.texts.len();
            for (index, text) in batch.texts.iter().enumerate() {
                queue.push(inputs(model, arguments, first + index, text, "")?);
            }
            if batch.texts.is_empty() {
                break;
            }
        }
        if !queue.is_idle() {
            queue.step().map_err(|failed| value_error(format!("text {}: {}", failed.text, failed.error)))?;
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
