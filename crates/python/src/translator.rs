//! A translation model, or an ensemble.

use std::path::PathBuf;
use std::sync::Arc;

use heedful::data::shortlist::Shortlist;
use heedful::data::text_limit::{TextPart, TooLong};
use heedful::data::tokenizer::Tokenizer as Vocabulary;
use heedful::decode::{DecodeError, MaxLength, Sampling, SearchInput, SearchOptions, TargetScore};
use heedful::explain::ExplainOptions;
use heedful::tasks::translate::{LongText, Terms, TranslatedText, TranslationQueue, Translator as Model};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{Kwargs, PyInt, Texts, absolute, long_text, terms};
use crate::calls::{Signals, check_process, detached, detached_on_thread};
use crate::errors::{ToException, value_error};
use crate::explanation::{self, Explanation};
use crate::iterable::TranslationIterator;
use crate::model_options::ModelOptions;
use crate::scores::TextScore;
use crate::tokenizer::{Encode, Tokenizer};
use crate::translation::{Translated, Translation};

/// Pairs that are scored together between two checks for Ctrl-C.
const CHUNK: usize = 256;

/// The default prefetch of an iterable: the read-ahead of the command.
const PREFETCH: usize = 4096;

/// Translates text with one model, or with an ensemble of models of the same vocabulary.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Translator {
    model: Arc<Model>,
    folders: Vec<PathBuf>,
    /// The options as given, for pickle.
    model_options: ModelOptions,
}

/// The arguments of a translation call.
pub(crate) struct TranslateArguments {
    pub(crate) options: SearchOptions,
    pub(crate) terms: Terms,
    pub(crate) long: LongText,
}

impl Translator {
    /// Takes the keyword arguments, with the defaults of the command line.
    fn arguments(&self, named: &mut Kwargs<'_>) -> PyResult<TranslateArguments> {
        let defaults = SearchOptions::default();
        let sampling = Sampling {
            temperature: named.take("temperature", 1.0)?,
            top_k: named.optional("top_k", None)?,
            top_p: named.take("top_p", None)?,
            seed: named.whole("seed", 1, 0)?,
        };
        let max_length = named.optional("max_length", None)?;
        let options = SearchOptions {
            beam: named.whole("beam_size", defaults.beam, 1)?,
            length_penalty: named.take("length_penalty", defaults.length_penalty)?,
            max_length: max_length.map_or(defaults.max_length, MaxLength::Absolute),
            min_length: named.whole("min_length", defaults.min_length, 0)?,
            n_best: named.whole("num_hypotheses", defaults.n_best, 1)?,
            sampling: named.take("sample", false)?.then_some(sampling),
            no_repeat_ngram: named.optional("no_repeat_ngram_size", None)?,
            shortlist: if named.take("shortlist", false)? { Some(self.shortlist()?) } else { None },
            batch_tokens: named.optional("batch_tokens", defaults.batch_tokens)?,
            ..defaults
        };
        options.check().map_err(value_error)?;
        let long: String = named.take("long", "split".to_owned())?;
        Ok(TranslateArguments { options, terms: terms(named.take("terms", None)?)?, long: long_text(&long)? })
    }

    fn shortlist(&self) -> PyResult<Arc<Shortlist>> {
        let name = self.folders[0].display();
        self.model.shortlist().cloned().ok_or_else(|| {
            value_error(format!(
                "{name} has no shortlist: learn one with heedful shortlist {name} --src FILE --tgt FILE"
            ))
        })
    }
}

/// Translates texts, in order.
fn translated(
    model: &Model,
    arguments: &TranslateArguments,
    texts: &[String],
    prefixes: &[String],
    signals: &mut Signals,
) -> PyResult<Vec<TranslatedText>> {
    let mut queue = TranslationQueue::new(model, &arguments.options).map_err(|error| error.exception())?;
    let (mut found, mut next) = (Vec::with_capacity(texts.len()), 0);
    while found.len() < texts.len() {
        while next < texts.len() && queue.wants_text() {
            let prefix = prefixes.get(next).map_or("", String::as_str);
            queue.push(inputs(model, arguments, next, &texts[next], prefix)?);
            next += 1;
        }
        if !queue.is_idle() {
            queue.step().map_err(|failed| match failed.error {
                error @ (DecodeError::Broken(_) | DecodeError::OutOfMemory(_) | DecodeError::Panicked) => {
                    error.exception()
                }
                error => value_error(format!("text {}: {error}", failed.text)),
            })?;
        }
        found.extend(std::iter::from_fn(|| queue.pop()).map(|(_, translated)| translated));
        signals.check()?;
    }
    Ok(found)
}

/// The parts of a text with their search inputs.
pub(crate) fn inputs(
    model: &Model,
    arguments: &TranslateArguments,
    number: usize,
    text: &str,
    prefix: &str,
) -> PyResult<Vec<(TextPart, SearchInput)>> {
    let refused = |what: &str, error: TooLong, remedies: &str| {
        let remedies = format!("{remedies}or open the model with max_tokens=N");
        value_error(format!("{what} {number} (counted from 0): {error}; make it shorter, {remedies}"))
    };
    let parts = model.parts(text, arguments.long);
    let parts = parts.map_err(|error| refused("text", error, "use long=\"split\" or long=\"cut\", "))?;
    let prefix = if prefix.trim().is_empty() {
        Vec::new()
    } else {
        let encoded = model.target_limit().encode(prefix, |text| model.encode_target(text));
        encoded.map_err(|error| refused("prefix", error, ""))?
    };
    Ok(model.part_inputs(parts, prefix, &arguments.terms))
}

#[pymethods]
impl Translator {
    #[new]
    #[pyo3(signature = (*paths, compute = None, device = None, max_tokens = None))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        compute: Option<String>,
        device: Option<String>,
        max_tokens: Option<PyInt>,
    ) -> PyResult<Translator> {
        let folders: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
        let model_options = ModelOptions::new(compute, device, max_tokens)?;
        let options = model_options.options()?;
        let model = py.detach(|| -> PyResult<Model> {
            let opened = folders.iter().map(|folder| Model::open_with(folder, &options));
            let opened = opened.collect::<heedful::Result<Vec<_>>>();
            let mut model = Model::join(opened.map_err(|error| error.exception())?).map_err(value_error)?;
            model_options
                .max_tokens
                .map_or(Ok(()), |tokens| model.set_max_tokens(tokens))
                .map_err(value_error)?;
            Ok(model)
        })?;
        Ok(Translator { model: Arc::new(model), folders, model_options })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::new(py, &self.folders)?, self.model_options.named(py)?))
    }

    /// The tokenizer of source texts.
    #[getter]
    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::new(Arc::new(Source(self.model.clone())))
    }

    /// The tokenizer of translations: the same as that of sources if they share a vocabulary.
    #[getter]
    fn target_tokenizer(&self) -> Tokenizer {
        Tokenizer::new(Arc::new(Target(self.model.clone())))
    }

    /// Translates a text, or an iterable of texts into a list.
    #[pyo3(
        signature = (texts, **options),
        text_signature = "($self, texts, *, prefixes=None, beam_size=4, length_penalty=0.6, num_hypotheses=1, max_length=None, min_length=0, \
                          no_repeat_ngram_size=None, sample=False, temperature=1.0, top_k=None, top_p=None, seed=1, terms=None, \
                          shortlist=False, long='split', batch_tokens=None)"
    )]
    fn translate<'py>(
        &self,
        py: Python<'py>,
        texts: Texts,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut named = Kwargs::new(options)?;
        let arguments = self.arguments(&mut named)?;
        let prefixes: Option<Texts> = named.take("prefixes", None)?;
        named.finish("translate")?;
        let (texts, is_one) = texts.list();
        let (prefixes, _) = prefixes.map_or((Vec::new(), false), Texts::list);
        if !prefixes.is_empty() && prefixes.len() != texts.len() {
            return Err(PyValueError::new_err(format!(
                "there are {} prefixes for {} texts: give one for each, blank for no prefix",
                prefixes.len(),
                texts.len()
            )));
        }
        let model = &self.model;
        let found = detached(py, |signals| translated(model, &arguments, &texts, &prefixes, signals))?;
        let options = Arc::new(arguments.options);
        let translation = |text: TranslatedText| {
            Translation::new(Translated { translator: model.clone(), options: options.clone(), text })
        };
        let mut found: Vec<Translation> = found.into_iter().map(translation).collect();
        match is_one.then(|| found.pop()).flatten() {
            Some(only) => Ok(Bound::new(py, only)?.into_any()),
            None => found.into_pyobject(py),
        }
    }

    /// Translates the texts of any iterable, in order and in bounded memory.
    #[pyo3(
        signature = (texts, **options),
        text_signature = "($self, texts, *, prefetch=4096, beam_size=4, length_penalty=0.6, num_hypotheses=1, max_length=None, min_length=0, \
                          no_repeat_ngram_size=None, sample=False, temperature=1.0, top_k=None, top_p=None, seed=1, terms=None, \
                          shortlist=False, long='split', batch_tokens=None)"
    )]
    fn translate_iterable(
        &self,
        texts: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<TranslationIterator> {
        check_process()?;
        let mut named = Kwargs::new(options)?;
        let arguments = self.arguments(&mut named)?;
        let prefetch = named.whole("prefetch", PREFETCH, 1)?;
        named.finish("translate_iterable")?;
        Ok(TranslationIterator::new(self.model.clone(), arguments, texts.try_iter()?, prefetch))
    }

    /// The log-probability of each target, given its source.
    fn score(&self, py: Python<'_>, sources: Vec<String>, targets: Vec<String>) -> PyResult<Vec<TextScore>> {
        let (ours, theirs) = (sources.len(), targets.len());
        if ours != theirs {
            return Err(PyValueError::new_err(format!(
                "{ours} sources and {theirs} targets: give the same number of both"
            )));
        }
        let options = SearchOptions::default();
        let model = &self.model;
        let scores = detached(py, |signals| {
            let mut scores = Vec::with_capacity(ours);
            for (first, (sources, targets)) in
                (0..).step_by(CHUNK).zip(sources.chunks(CHUNK).zip(targets.chunks(CHUNK)))
            {
                scores.extend(scored(model, first, sources, targets, &options)?);
                signals.check()?;
            }
            Ok(scores)
        })?;
        Ok(scores.into_iter().map(|score| TextScore::new(py, score)).collect())
    }

    /// The attention of the model while it translates a text, or scores a given target.
    #[pyo3(
        signature = (text, target = None, *, beam_size = PyInt::from(4), num_hypotheses = PyInt::from(1)),
        text_signature = "($self, text, target=None, *, beam_size=4, num_hypotheses=1)"
    )]
    fn explain(
        &self,
        py: Python<'_>,
        text: &str,
        target: Option<&str>,
        beam_size: PyInt,
        num_hypotheses: PyInt,
    ) -> PyResult<Explanation> {
        let search = SearchOptions {
            beam: beam_size.at_least("beam_size", 1)?,
            n_best: num_hypotheses.at_least("num_hypotheses", 1)?,
            ..SearchOptions::default()
        };
        search.check().map_err(value_error)?;
        let (model, options) = (self.model.clone(), explanation::options(&search));
        let (text, target) = (text.to_owned(), target.map(str::to_owned));
        let explained =
            detached_on_thread(py, move || explained(&model, &text, target.as_deref(), &search, &options))?;
        Ok(Explanation::new(explained))
    }

    /// The folders of the models.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        self.folders.clone()
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> =
            self.folders.iter().map(|folder| format!("{:?}", folder.display().to_string())).collect();
        format!("Translator({})", names.join(", "))
    }
}

/// The explanation of a text's translation, or of a given target.
fn explained(
    model: &Model,
    text: &str,
    target: Option<&str>,
    search: &SearchOptions,
    options: &ExplainOptions,
) -> PyResult<heedful::explain::Explanation> {
    model.source_limit().encode(text, |text| model.encode(text)).map_err(value_error)?;
    let translation = match target {
        Some(_) if text.trim().is_empty() => {
            return Err(value_error("the text is blank: a target needs a source text to be its translation"));
        }
        Some(target) => {
            model.target_limit().encode(target, |text| model.encode_target(text)).map_err(value_error)?;
            model.force(text, target, search)
        }
        None => model.translate([text], search).map(|mut found| found.swap_remove(0)),
    };
    let translation = translation.map_err(|error| error.exception())?;
    heedful::explain::Explanation::of_translation(model, text, &translation, options)
        .map_err(|error| error.exception())
}

/// The scores of pairs; errors number them from `first`.
fn scored(
    model: &Model,
    first: usize,
    sources: &[String],
    targets: &[String],
    options: &SearchOptions,
) -> PyResult<Vec<TargetScore>> {
    let mut pairs = Vec::new();
    for (index, (source, target)) in sources.iter().zip(targets).enumerate() {
        let long = |error| value_error(format!("pair {} (counted from 0): {error}", first + index));
        let source = model.source_limit().encode(source, |text| model.encode(text)).map_err(long)?;
        let target = model.target_limit().encode(target, |text| model.encode_target(text)).map_err(long)?;
        pairs.push((source, target));
    }
    model.score_tokens_or_blank(&pairs, options).map_err(|error| error.exception())
}

/// The source side and the target side of a model.
struct Source(Arc<Model>);
struct Target(Arc<Model>);

impl Encode for Source {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.0.encode(text)
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.0.tokenizers().source
    }
}

impl Encode for Target {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.0.encode_target(text)
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.0.tokenizers().target
    }
}
