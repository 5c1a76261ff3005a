//! A translator that works only when a test lets it, and panics when a test says so.

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

use crate::client::PATIENCE;
use crate::models::{tokenizer, transformer};

/// What a test decides.
#[derive(Default)]
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_held: bool,
    /// Sources of more tokens than this are not read.
    longest_read: Option<usize>,
    /// Steps of more rows than this do not begin.
    most_rows: Option<usize>,
    must_panic: bool,
    must_fail_to_start: bool,
    /// Until [`Control::release`].
    always_fails_to_start: bool,
    /// Steps that were asked for, whether they wait or not.
    asked: usize,
    steps: usize,
}

impl Control {
    /// No step begins until [`Control::release`].
    pub(crate) fn hold(&self) {
        self.state.lock().expect("a lock").is_held = true;
    }

    /// No source of more tokens than this is read until [`Control::release`].
    pub(crate) fn hold_longer_than(&self, tokens: usize) {
        self.state.lock().expect("a lock").longest_read = Some(tokens);
    }

    /// No step of more rows than this begins until [`Control::release`].
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

    /// Whether a search has come as far as a step, which may be held.
    pub(crate) fn has_reached_a_step(&self) -> bool {
        self.state.lock().expect("a lock").asked > 0
    }

    pub(crate) fn steps(&self) -> usize {
        self.state.lock().expect("a lock").steps
    }

    fn pass(&self, rows: usize) {
        let mut held = self.state.lock().expect("a lock");
        held.asked += 1;
        let is_held = |state: &mut State| state.is_held || state.most_rows.is_some_and(|most| rows > most);
        let (mut state, waited) = self.changed.wait_timeout_while(held, PATIENCE, is_held).expect("a lock");
        let is_forgotten = waited.timed_out();
        state.steps += 1;
        let must_panic = std::mem::take(&mut state.must_panic);
        // Not while the lock is held.
        drop(state);
        assert!(!is_forgotten, "no test released this step");
        assert!(!must_panic, "as the test wished");
    }

    fn read(&self, sequences: &Ragged) {
        let held = self.state.lock().expect("a lock");
        let is_too_long =
            |state: &mut State| state.longest_read.is_some_and(|most| sequences.longest() > most);
        let (state, waited) = self.changed.wait_timeout_while(held, PATIENCE, is_too_long).expect("a lock");
        drop(state);
        assert!(!waited.timed_out(), "no test released this source");
    }

    fn start(&self) {
        let mut state = self.state.lock().expect("a lock");
        let must_panic = std::mem::take(&mut state.must_fail_to_start) || state.always_fails_to_start;
        drop(state);
        assert!(!must_panic, "as the test wished");
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

/// A model that obeys the control.
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
