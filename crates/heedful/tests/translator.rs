//! A translator gives the same translations in one call, streamed and from its own thread, alone and in a
//! batch.

#[path = "support/waiting.rs"]
mod waiting;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use heedful::data::batch::{Batch, BatchError};
use heedful::data::text_limit::TextPart;
use heedful::data::tokenizer::{Tokenizer, Tokenizers, VocabularyKind, VocabularyOptions, WordCounts};
use heedful::decode::{Cancel, DecodeError, Limits, MaxLength, SearchOptions};
use heedful::layers::Pass;
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{Decoding, Generate, HeadName, Model};
use heedful::tasks::translate::{
    JoinError, LongText, Terms, Translation, TranslationEvent, TranslationQueue, Translator,
};
use heedful::tensor::ops::CrossEntropy;
use heedful::tensor::{Params, Precision, Ragged};
use waiting::Waiting;

const TEXTS: [&str; 5] = ["a dog runs", "the cat", "", "a dog runs", "cats and dogs run to the house"];

fn tokenizer(text: &str) -> Tokenizer {
    let options =
        VocabularyOptions { kind: VocabularyKind::Character, size: 290, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    counts.add(text);
    counts.train().expect("a vocabulary")
}

fn translator_of(seed: u64, text: &str) -> Translator {
    let tokenizer = tokenizer(text);
    let config = TransformerConfig { d_model: 32, d_ff: 64, ..TransformerConfig::tiny(tokenizer.size()) };
    let model = Transformer::new(config, seed).expect("a good configuration");
    // Untrained models have flat distributions; sharper scores make translations differ.
    for param in model.params().iter().filter(|param| param.name() == "embedding.weight") {
        let sharper: Vec<f32> = param.to_vec().iter().map(|x| 3.0 * x).collect();
        param.set(&sharper);
    }
    Translator::new(Box::new(model), Tokenizers::joint(tokenizer))
}

fn translator(seed: u64) -> Translator {
    translator_of(seed, "a dog runs the cat cats and dogs run to the house")
}

fn options() -> SearchOptions {
    SearchOptions { max_length: MaxLength::Absolute(10), n_best: 2, beam: 3, ..SearchOptions::default() }
}

/// The cause of a failed call.
fn cause(error: &heedful::Error) -> DecodeError {
    error.cause::<DecodeError>().expect("an error of the search").clone()
}

fn all(translator: &Translator) -> Vec<Translation> {
    translator.translate(TEXTS, &options()).expect("good texts")
}

#[test]
fn a_translator_can_be_shared_and_cloned() {
    let _limit = Waiting::on("translations of two threads");
    fn is_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let translator = translator(4);
    is_shared(&translator);
    let expected = all(&translator);
    assert!(expected[0].outputs.len() == 2 && expected[2].outputs.is_empty());
    assert_ne!(expected[0].outputs, expected[4].outputs);
    let clones = [translator.clone(), translator];
    thread::scope(|scope| {
        let found = clones.each_ref().map(|translator| scope.spawn(|| all(translator)));
        for found in found {
            assert_eq!(found.join().expect("no panic"), expected);
        }
    });
}

#[test]
fn a_stream_ends_with_the_same_translation() {
    let translator = translator(4);
    let expected = all(&translator);
    for beam in [1, 3] {
        let options = SearchOptions { beam, n_best: 1, ..options() };
        for (text, expected) in TEXTS.iter().zip(&expected) {
            let stream = translator.stream(text, &options, Limits::default()).expect("a good text");
            let events: Vec<TranslationEvent> = stream.map(|event| event.expect("no limit")).collect();
            let Some((TranslationEvent::Done(done), partial)) = events.split_last() else {
                panic!("a stream ends with its result: {events:?}");
            };
            assert_eq!(done.outputs.is_empty(), expected.source.is_empty());
            let whole = translator.translate([text], &options).expect("a good text").swap_remove(0);
            assert_eq!(done, &whole);
            for (number, event) in partial.iter().enumerate() {
                let TranslationEvent::Partial { tokens, .. } = event else { panic!("one end: {event:?}") };
                assert_eq!(tokens.len(), number + 1);
                if beam == 1 {
                    assert!(whole.outputs[0].hypothesis.tokens.starts_with(tokens));
                }
            }
        }
    }
}

#[test]
fn a_queue_gives_the_same_translations_in_the_order_of_the_texts() {
    let translator = translator(4);
    let expected = all(&translator);
    let mut queue = TranslationQueue::new(&translator, &options()).expect("good options");
    // Added in two groups: the second while the first is being decoded.
    let mut found = Vec::new();
    for group in [&TEXTS[..2], &TEXTS[2..]] {
        while !queue.wants_text() {
            queue.step().expect("good texts");
        }
        for text in group {
            let parts = translator.parts(text, LongText::Refused).expect("a short text");
            queue.push(translator.part_inputs(parts, Vec::new(), &Terms::default()));
        }
        queue.step().expect("good texts");
    }
    while !queue.is_idle() {
        queue.step().expect("good texts");
        found.extend(std::iter::from_fn(|| queue.pop()));
    }
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for ((_, found), expected) in found.iter().zip(&expected) {
        assert_eq!(found.whole().unwrap_or_default(), *expected);
        assert_eq!(found.best(), expected.best());
    }
}

#[test]
fn a_queue_names_the_text_that_cannot_be_translated() {
    let translator = translator(4);
    let mut queue = TranslationQueue::new(&translator, &options()).expect("good options");
    let good = translator.parts("a dog", LongText::Split).expect("a short text");
    queue.push(translator.part_inputs(good, Vec::new(), &Terms::default()));
    // A token outside the vocabulary.
    let bad = vec![TextPart { tokens: vec![1_000_000], begins_word: true }];
    queue.push(translator.part_inputs(bad, Vec::new(), &Terms::default()));
    let error = queue.step().expect_err("the second cannot be read");
    assert_eq!(error.text, 1);
    assert!(error.to_string().starts_with("text 2: "), "{error}");
}

/// Wakes the thread that waits.
struct Alarm(Thread, AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Alarm>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let alarm = Arc::new(Alarm(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(alarm);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn futures_of_one_thread_have_the_same_translations() {
    let _limit = Waiting::on("translations that were submitted");
    let translator = translator(4);
    let expected = all(&translator);
    let none = Terms::default();
    let submit =
        |text: &str| translator.submit(translator.input(text, "", &none), &options(), Limits::default());
    let pending = TEXTS.map(submit);
    let bf16 = SearchOptions { compute: Some(Precision::Bf16), ..options() };
    let other = translator.submit(translator.input(TEXTS[0], "", &none), &bf16, Limits::default());
    for (pending, expected) in pending.into_iter().zip(&expected) {
        assert_eq!(&block_on(pending).expect("a good text"), expected);
    }
    let in_bf16 = translator.translate(&TEXTS[..1], &bf16).expect("a good text").swap_remove(0);
    assert_eq!(other.wait().expect("a good text"), in_bf16);
    // Bad options are errors of their own call.
    let bad = SearchOptions { beam: 0, ..options() };
    let input = translator.input("a dog", "", &none);
    let error = translator.submit(input, &bad, Limits::default()).wait().expect_err("no beam");
    assert!(matches!(error.cause(), Some(DecodeError::Options(_))), "{error}");
    assert_eq!(submit(TEXTS[1]).wait().expect("a good text"), expected[1]);
}

#[test]
fn cancellation_and_budgets_end_all_kinds_of_calls_alike() {
    let _limit = Waiting::on("translations that end early");
    let translator = translator(4);
    let text = "a dog runs";
    let run = |limits: &Limits| {
        let input = || translator.input(text, "", &Terms::default());
        let whole =
            translator.translate_inputs(vec![input()], &options(), limits).map(|mut all| all.remove(0));
        let ended = |result: heedful::Result<Translation>| result.map_err(|error| cause(&error));
        let whole = ended(whole);
        let pending = ended(translator.submit(input(), &options(), limits.clone()).wait());
        assert_eq!(whole, pending);
        let stream = translator.stream(text, &options(), limits.clone()).expect("a good text");
        let last = stream.last().expect("an event").map(|event| match event {
            TranslationEvent::Done(done) => done,
            TranslationEvent::Partial { .. } => panic!("a stream ends with a result or an error"),
        });
        assert_eq!(whole, ended(last));
        whole
    };
    let enough = (1..).find(|&tokens| run(&Limits::max_tokens(tokens)).is_ok()).expect("a number");
    assert!(enough > 1);
    let error = run(&Limits::max_tokens(enough - 1)).expect_err("too few");
    assert_eq!(error, DecodeError::OverBudget { budget: enough - 1 });
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(run(&Limits { cancel, tokens: None }), Err(DecodeError::Cancelled));
    // A dropped request is cancelled, and the next one is translated.
    drop(translator.submit(translator.input(text, "", &Terms::default()), &options(), Limits::default()));
    run(&Limits::default()).expect("no limit");
}

/// A model whose first search panics.
struct PanicsOnce {
    model: Transformer,
    has_panicked: AtomicBool,
}

impl Model for PanicsOnce {
    fn params(&self) -> &Params {
        self.model.params()
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.model.check(batch)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        self.model.loss(batch, pass)
    }
}

impl Generate for PanicsOnce {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.model.check_source(source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.model.longest_target()
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        assert!(self.has_panicked.swap(true, Ordering::Relaxed), "panics for the test");
        self.model.start(compute)
    }
}

#[test]
fn a_panic_of_the_thread_is_an_error_and_the_next_text_is_translated() {
    let _limit = Waiting::on("a thread that panicked");
    let tokenizer = tokenizer("a dog");
    let config = TransformerConfig { d_model: 32, d_ff: 64, ..TransformerConfig::tiny(tokenizer.size()) };
    let model = Transformer::new(config, 4).expect("a good configuration");
    let model = PanicsOnce { model, has_panicked: AtomicBool::new(false) };
    let translator = Translator::new(Box::new(model), Tokenizers::joint(tokenizer));
    let submit =
        || translator.submit(translator.input("a dog", "", &Terms::default()), &options(), Limits::default());
    assert_eq!(cause(&submit().wait().expect_err("the first call panics")), DecodeError::Panicked);
    let again = submit().wait().expect("the second call works");
    assert_eq!(again, translator.translate(["a dog"], &options()).expect("a good text").swap_remove(0));
}

#[test]
fn heads_are_removed_for_one_call_only() {
    let _limit = Waiting::on("translations without some heads");
    let translator = translator(4);
    let whole = all(&translator);
    let heads = translator.model().heads();
    let set =
        |names: &[&str]| names.iter().map(|name| name.parse().expect("a head's name")).collect::<Vec<_>>();
    for removed in [set(&["cross.0.0"]), set(&["enc.0.1", "dec.0.0"]), heads.clone()] {
        let options = SearchOptions { without_heads: removed.clone(), ..options() };
        let found = translator.translate(TEXTS, &options).expect("good texts");
        let pruned = translator_of_pruned(&removed);
        assert_eq!(found, all(&pruned), "{removed:?}");
        assert_ne!(found, whole, "{removed:?}");
        // From the translator's thread, together with calls that remove no heads.
        let input = || translator.input(TEXTS[0], "", &Terms::default());
        let pending = [&options, &self::options(), &options]
            .map(|options| translator.submit(input(), options, Limits::default()));
        let [one, other, again] = pending.map(|pending| pending.wait().expect("a good text"));
        assert_eq!((&one, &other, &again), (&found[0], &whole[0], &found[0]));
        // The score equals that of the search, and the attention that of the pass without these heads.
        let tokens = &found[0].outputs[0].hypothesis.tokens;
        let scored = translator.token_scores(&found[0].source, tokens, &options).expect("a good pair");
        assert_eq!(scored.log_probability, found[0].outputs[0].hypothesis.log_probability);
        let maps = |translator: &Translator, options: &SearchOptions| {
            let maps = translator.attend(&found[0].source, tokens, options).expect("few weights");
            maps.into_iter().map(|map| map.weights).collect::<Vec<_>>()
        };
        assert_eq!(maps(&translator, &options), maps(&pruned, &self::options()));
    }
    assert_eq!(all(&translator), whole);
    let unknown = SearchOptions { without_heads: set(&["cross.7.0"]), ..options() };
    for error in [
        translator.translate(TEXTS, &unknown).err().map(|error| cause(&error)),
        translator.attend(&whole[0].source, &[5], &unknown).err(),
        translator.token_scores(&whole[0].source, &[5], &unknown).err(),
    ] {
        assert!(error.expect("there is no such head").to_string().contains("no head decoder.7.cross.0"));
    }
    let both = Translator::join([translator.clone(), translator]).expect("one vocabulary");
    let error = both.translate(TEXTS, &SearchOptions { without_heads: heads, ..options() });
    assert!(error.expect_err("an ensemble").to_string().contains("from a single model"));
}

/// Like [`translator`] with seed 4, with heads pruned in the weights: their rows of `W_o` are zero.
fn translator_of_pruned(heads: &[HeadName]) -> Translator {
    let text = "a dog runs the cat cats and dogs run to the house";
    let tokenizer = tokenizer(text);
    let config = TransformerConfig { d_model: 32, d_ff: 64, ..TransformerConfig::tiny(tokenizer.size()) };
    let rows = config.d_model / config.heads;
    let model = Transformer::new(config, 4).expect("a good configuration");
    for head in heads {
        let weight = model.params().get(&format!("{}.output.weight", head.prefix())).expect("it is there");
        let [_, width] = weight.shape();
        let mut values = weight.to_vec();
        values[head.head * rows * width..(head.head + 1) * rows * width].fill(0.0);
        weight.set(&values);
    }
    for param in model.params().iter().filter(|param| param.name() == "embedding.weight") {
        let sharper: Vec<f32> = param.to_vec().iter().map(|x| 3.0 * x).collect();
        param.set(&sharper);
    }
    Translator::new(Box::new(model), Tokenizers::joint(tokenizer))
}

#[test]
fn prefixes_and_terms_are_in_the_translation() {
    let translator = translator(4);
    let terms = Terms::parse("terms", "dog\tcat\nhouse\tthe run").expect("good terms");
    let input = translator.input("a dog runs to the house", "the dogs", &terms);
    assert_eq!(input.constraints.phrases.len(), 2);
    let options = SearchOptions { max_length: MaxLength::Absolute(60), beam: 6, ..options() };
    let found = translator.translate_inputs(vec![input.clone()], &options, &Limits::default());
    let found = found.expect("a good text").swap_remove(0);
    assert_eq!(found.outputs.len(), 2);
    for output in &found.outputs {
        assert!(output.text.starts_with("the dogs"), "{}", output.text);
        assert!(output.text.contains("cat") && output.text.contains("the run"), "{}", output.text);
        assert!(input.constraints.missing(&output.hypothesis.tokens).is_empty());
    }
}

#[test]
fn translators_with_one_vocabulary_form_an_ensemble() {
    let [first, second] = [4, 5].map(translator);
    let twice = Translator::join([first.clone(), first.clone()]).expect("one vocabulary");
    assert_eq!(all(&twice), all(&first));
    let both = Translator::join([first.clone(), second.clone()]).expect("one vocabulary");
    let swapped = Translator::join([second.clone(), first.clone()]).expect("one vocabulary");
    assert_eq!(all(&both), all(&swapped));
    assert_ne!(all(&both), all(&first));
    assert_ne!(all(&both), all(&second));
    // Scoring its outputs gives the reported scores.
    let found = all(&both).swap_remove(0);
    let tokens = &found.outputs[0].hypothesis.tokens;
    let scored = both.token_scores(&found.source, tokens, &options()).expect("a good pair");
    assert_eq!(scored.log_probability, found.outputs[0].hypothesis.log_probability);

    let foreign = translator_of(4, "other words with xyz");
    let error = Translator::join([first, second, foreign]).err().expect("another vocabulary");
    assert!(matches!(error.cause(), Some(JoinError::Vocabulary { number: 3, .. })), "{error}");
    assert!(
        error.to_string().starts_with("model 3 of the ensemble has a different source vocabulary"),
        "{error}"
    );
    let none = Translator::join([]).err().expect("no translator");
    assert_eq!(none.cause(), Some(&JoinError::Empty));
}
