//! A translator whose steps a test can block, or make panic.

use std::sync::{Arc, Condvar, Mutex};

use heedful::data::batch::{Batch, BatchError};
use heedful::data::tokenizer::Tokenizers;
use heedful::layers::Pass;
use heedful::models::transformer::Transformer;
use heedful::models::{Decoding, Generate, Model, Row};
use heedful::tasks::translate::Translator;
use heedful::tensor::ops::CrossEntropy;
use heedful::tensor::{Params, Precision, Ragged, Tensor};
use heedful_server::{Engine, ModelSpec, Origin};

use crate::client::TIMEOUT;
use crate::models::{tokenizer, transformer};

/// The switches of a test.
#[derive(Default)]
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_held: bool,
    /// Sources with more tokens than this are blocked.
    longest_read: Option<usize>,
    /// Steps with more rows than this are blocked.
    most_rows: Option<usize>,
    must_panic: bool,
    must_fail_to_start: bool,
    /// Reset by [`Control::release`].
    always_fails_to_start: bool,
    /// Requested steps, blocked or not.
    requested: usize,
    steps: usize,
}

impl Control {
    /// Blocks all steps until [`Control::release`].
    pub(crate) fn hold(&self) {
        self.state.lock().expect("a lock").is_held = true;
    }

    /// Blocks sources with more tokens than this until [`Control::release`].
    pub(crate) fn hold_longer_than(&self, tokens: usize) {
        self.state.lock().expect("a lock").longest_read = Some(tokens);
    }

    /// Blocks steps with more rows than this until [`Control::release`].
    pub(crate) fn hold_in_steps_of_more_than(&self, rows: usize) {
        self.state.lock().expect("a lock").most_rows = Some(rows);
    }

    pub(crate) fn release(&self) {
        let mut state = self.state.lock().expect("a lock");
        state.is_held = false;
        state.longest_read = None;
        state.most_rows = None;
        state.always_fails_to_start = false;
        drop(state);
        self.changed.notify_all();
    }

    /// The next step panics.
    pub(crate) fn panic_once(&self) {
        self.state.lock().expect("a lock").must_panic = true;
    }

    /// The next search, or explanation, panics at its start.
    pub(crate) fn panic_at_start(&self) {
        self.state.lock().expect("a lock").must_fail_to_start = true;
    }

    /// Every search panics at its start until [`Control::release`].
    pub(crate) fn fail_at_start(&self) {
        self.state.lock().expect("a lock").always_fails_to_start = true;
    }

    /// Whether a search has reached a step, which may be blocked.
    pub(crate) fn has_reached_a_step(&self) -> bool {
        self.state.lock().expect("a lock").requested > 0
    }

    pub(crate) fn steps(&self) -> usize {
        self.state.lock().expect("a lock").steps
    }

    fn pass(&self, rows: usize) {
        let mut held = self.state.lock().expect("a lock");
        held.requested += 1;
        let is_held = |state: &mut State| state.is_held || state.most_rows.is_some_and(|most| rows > most);
        let (mut state, waited) = self.changed.wait_timeout_while(held, TIMEOUT, is_held).expect("a lock");
        let has_timed_out = waited.timed_out();
        state.steps += 1;
        let must_panic = std::mem::take(&mut state.must_panic);
        // Panics below must not poison the lock.
        drop(state);
        assert!(!has_timed_out, "no test released this step");
        assert!(!must_panic, "as the test requested");
    }

    fn read(&self, sequences: &Ragged) {
        let held = self.state.lock().expect("a lock");
        let is_too_long =
            |state: &mut State| state.longest_read.is_some_and(|most| sequences.longest() > most);
        let (state, waited) = self.changed.wait_timeout_while(held, TIMEOUT, is_too_long).expect("a lock");
        drop(state);
        assert!(!waited.timed_out(), "no test released this source");
    }

    fn start(&self) {
        let mut state = self.state.lock().expect("a lock");
        let must_panic = std::mem::take(&mut state.must_fail_to_start) || state.always_fails_to_start;
        drop(state);
        assert!(!must_panic, "as the test requested");
    }
}

struct Controlled {
    inner: Transformer,
    control: Arc<Control>,
}

struct ControlledDecoding<'m> {
    inner: Box<dyn Decoding + 'm>,
    control: &'m Control,
}

impl Model for Controlled {
    fn params(&self) -> &Params {
        self.inner.params()
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        Model::check(&self.inner, batch)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        Model::loss(&self.inner, batch, pass)
    }
}

impl Generate for Controlled {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        Generate::check_source(&self.inner, source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        Generate::longest_target(&self.inner)
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        self.control.start();
        Box::new(ControlledDecoding { inner: Generate::start(&self.inner, compute), control: &self.control })
    }
}

impl Decoding for ControlledDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        self.control.read(sequences);
        self.inner.read(source, sequences);
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        self.control.pass(rows.len());
        self.inner.step(rows)
    }
}

/// A model with the given switches.
pub(crate) fn controlled(control: &Arc<Control>) -> ModelSpec {
    let control = control.clone();
    let make = move || {
        let inner = Transformer::new(transformer(), 4).map_err(|error| error.to_string())?;
        let model = Controlled { inner, control: control.clone() };
        Ok(Engine::Translator(Translator::new(Box::new(model), Tokenizers::joint(tokenizer()))))
    };
    ModelSpec {
        name: "zh-en".into(),
        source: "zh".into(),
        target: "en".into(),
        origin: Origin::Factory(Arc::new(make)),
    }
}
