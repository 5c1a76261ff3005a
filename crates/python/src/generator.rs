//! A language model.

use std::path::PathBuf;
use std::sync::Arc;

use heedful::data::tokenizer::Tokenizer as Vocabulary;
use heedful::decode::{Sampling, SearchOptions, TargetScore};
use heedful::explain::Explanation as Explained;
use heedful::tasks::language::{Generator as Model, TextScorer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Kwargs, PyInt, absolute};
use crate::calls::{Signals, detached, detached_on_thread};
use crate::errors::{ToException, value_error};
use crate::explanation::{self, Explanation};
use crate::model_options::ModelOptions;
use crate::scores::TextScore;
use crate::tokenizer::{Encode, Tokenizer};

/// Continues texts.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Generator {
    model: Arc<Model>,
    folder: PathBuf,
    model_options: ModelOptions,
}

#[pymethods]
impl Generator {
    #[new]
    #[pyo3(signature = (path, *, compute = None, device = None, max_tokens = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        compute: Option<String>,
        device: Option<String>,
        max_tokens: Option<PyInt>,
    ) -> PyResult<Generator> {
        let (folder, model_options) = (absolute(&path), ModelOptions::new(compute, device, max_tokens)?);
        let options = model_options.options()?;
        let mut model =
            py.detach(|| Model::open_with(&folder, &options)).map_err(|error| error.exception())?;
        model_options
            .max_tokens
            .map_or(Ok(()), |tokens| model.set_max_tokens(tokens))
            .map_err(value_error)?;
        Ok(Generator { model: Arc::new(model), folder, model_options })
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((PathBuf,), Bound<'py, PyDict>)> {
        Ok(((self.folder.clone(),), self.model_options.named(py)?))
    }

    /// The tokenizer and its vocabulary.
    #[getter]
    fn tokenizer(&self) -> Tokenizer {
        Tokenizer::new(self.model.clone())
    }

    /// Continues a prompt: returns prompt and continuation, `num_hypotheses` times.
    #[pyo3(
        signature = (prompt = "", **options),
        text_signature = "($self, prompt='', *, max_tokens=100, num_hypotheses=1, temperature=1.0, top_k=None, top_p=None, \
                          seed=1, beam_size=None, no_repeat_ngram_size=None, long='error')"
    )]
    fn generate(
        &self,
        py: Python<'_>,
        prompt: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<String>> {
        let mut named = Kwargs::new(options)?;
        let tokens = named.whole("max_tokens", 100, 1)?;
        let long: String = named.take("long", "error".to_owned())?;
        let options = self.search_options(&mut named)?;
        named.finish("generate")?;
        options.check().map_err(value_error)?;
        detached(py, |signals| {
            let prompt = self.prompt(prompt, &long)?;
            let options = self.model.options(prompt.len(), tokens, &options);
            let options = options.map_err(|error| error.exception())?;
            let mut generation = self.model.begin(prompt, &options).map_err(|error| error.exception())?;
            while generation.step().map_err(|error| error.exception())? {
                signals.check()?;
            }
            Ok(generation.texts())
        })
    }

    /// The log-probability of each text; for running text, given all previous text.
    fn score(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<Vec<TextScore>> {
        let scores = detached(py, |signals| self.scored(&texts, signals))?;
        Ok(scores.into_iter().map(|score| TextScore::new(py, score)).collect())
    }

    /// The attention of the model over a text.
    fn explain(&self, py: Python<'_>, text: &str) -> PyResult<Explanation> {
        let search = SearchOptions::default();
        let options = explanation::options(&search);
        let (model, text) = (self.model.clone(), text.to_owned());
        let explained = detached_on_thread(py, move || {
            let ids = model.limit().encode(&text, |text| model.encode(text)).map_err(value_error)?;
            Explained::of_text(&model, &ids, &options).map_err(|error| error.exception())
        })?;
        Ok(Explanation::new(explained))
    }

    fn __repr__(&self) -> String {
        format!("Generator({:?})", self.folder.display().to_string())
    }
}

impl Generator {
    /// Takes the search options, with the defaults of the command line.
    fn search_options(&self, named: &mut Kwargs<'_>) -> PyResult<SearchOptions> {
        let sampling = Sampling {
            temperature: named.take("temperature", 1.0)?,
            top_k: named.optional("top_k", None)?,
            top_p: named.take("top_p", None)?,
            seed: named.whole("seed", 1, 0)?,
        };
        let beam = named.optional("beam_size", None)?;
        let samples = beam.is_none() && sampling.temperature != 0.0;
        Ok(SearchOptions {
            beam: beam.unwrap_or(1),
            n_best: named.whole("num_hypotheses", 1, 1)?,
            sampling: samples.then_some(sampling),
            no_repeat_ngram: named.optional("no_repeat_ngram_size", None)?,
            ..SearchOptions::default()
        })
    }

    /// The tokens of a prompt; a truncated prompt keeps its end, which the output continues.
    fn prompt(&self, prompt: &str, long: &str) -> PyResult<Vec<u32>> {
        let (limit, encode) = (self.model.limit(), |text: &str| self.model.encode(text));
        match (limit.encode(prompt, encode), long) {
            (Ok(tokens), "error" | "cut") => Ok(tokens),
            (Err(error), "error") => {
                Err(value_error(format!("the prompt: {error}; shorten it, or use long=\"cut\"")))
            }
            (Err(_), "cut") => Ok(limit.last(prompt, encode).tokens),
            (_, other) => Err(PyValueError::new_err(format!("long is {other:?}: it must be cut or error"))),
        }
    }

    fn scored(&self, texts: &[String], signals: &mut Signals) -> PyResult<Vec<TargetScore>> {
        let mut scorer = TextScorer::new(&self.model);
        let mut scores = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            let encode = |text: &str| self.model.encode(text);
            let tokens = if self.model.ends_texts() {
                let long = |error| value_error(format!("text {number} (counted from 0): {error}"));
                self.model.limit().encode(text, encode).map_err(long)?
            } else {
                // Running text is split into blocks.
                encode(text)
            };
            scores.extend(scorer.push(text, tokens).map_err(|error| error.exception())?);
            signals.check()?;
        }
        scores.extend(scorer.finish().map_err(|error| error.exception())?.0);
        Ok(scores)
    }
}

impl Encode for Model {
    fn encode(&self, text: &str) -> Vec<u32> {
        self.encode(text)
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.tokenizer()
    }
}
