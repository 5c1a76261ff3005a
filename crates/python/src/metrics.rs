//! BLEU, chrF and TER with sacreBLEU's digits and names.

use heedful::metrics::{
    self, BleuOptions, BleuSmoothing, BleuTokenizer, Case, ChrfOptions, Orders, TerOptions,
};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::PyInt;
use crate::calls::detached_on_thread;
use crate::errors::value_error;
use crate::results::{self, Arguments, hash_of};

/// The score of a corpus.
#[pyclass(frozen, subclass, module = "heedful")]
pub(crate) struct MetricScore {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    score: f64,
    #[pyo3(get)]
    signature: String,
    /// As sacreBLEU prints it.
    #[pyo3(get)]
    line: String,
}

#[pymethods]
impl MetricScore {
    #[new]
    #[pyo3(signature = (name, score, signature, line))]
    fn from_values(name: String, score: f64, signature: String, line: String) -> MetricScore {
        MetricScore { name, score, signature, line }
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let contents = PyDict::new(py);
        contents.set_item("name", &self.name)?;
        contents.set_item("score", self.score)?;
        contents.set_item("signature", &self.signature)?;
        contents.set_item("line", &self.line)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<Arguments<'py>> {
        Ok(results::named(self.to_dict(py)?))
    }

    fn __eq__(&self, py: Python<'_>, other: PyRef<'_, MetricScore>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.line)
    }

    fn __float__(&self) -> f64 {
        self.score
    }

    fn __str__(&self) -> &str {
        &self.line
    }

    fn __repr__(&self) -> &str {
        &self.line
    }
}

/// BLEU and its components.
#[pyclass(frozen, extends = MetricScore, module = "heedful")]
pub(crate) struct BleuScore {
    precisions: Py<PyArray1<f64>>,
    /// The brevity penalty.
    #[pyo3(get)]
    bp: f64,
    #[pyo3(get)]
    sys_len: u64,
    #[pyo3(get)]
    ref_len: u64,
}

#[pymethods]
impl BleuScore {
    #[new]
    #[pyo3(signature = (name, score, signature, line, precisions, bp, sys_len, ref_len))]
    #[expect(clippy::too_many_arguments, reason = "the constructor's arguments are the fields, by name")]
    fn from_values(
        py: Python<'_>,
        name: String,
        score: f64,
        signature: String,
        line: String,
        precisions: Vec<f64>,
        bp: f64,
        sys_len: u64,
        ref_len: u64,
    ) -> PyClassInitializer<BleuScore> {
        let precisions = PyArray1::from_vec(py, precisions).unbind();
        let base = MetricScore { name, score, signature, line };
        PyClassInitializer::from(base).add_subclass(BleuScore { precisions, bp, sys_len, ref_len })
    }

    /// The contents as a dict of plain values.
    fn to_dict<'py>(this: &Bound<'py, BleuScore>) -> PyResult<Bound<'py, PyDict>> {
        let (py, score) = (this.py(), this.get());
        let contents = this.as_super().get().to_dict(py)?;
        contents.set_item("precisions", score.precisions.bind(py).call_method0("tolist")?)?;
        contents.set_item("bp", score.bp)?;
        contents.set_item("sys_len", score.sys_len)?;
        contents.set_item("ref_len", score.ref_len)?;
        Ok(contents)
    }

    fn __getnewargs_ex__<'py>(this: &Bound<'py, BleuScore>) -> PyResult<Arguments<'py>> {
        Ok(results::named(BleuScore::to_dict(this)?))
    }

    fn __eq__(this: &Bound<'_, BleuScore>, other: &Bound<'_, BleuScore>) -> PyResult<bool> {
        BleuScore::to_dict(this)?.eq(BleuScore::to_dict(other)?)
    }

    fn __hash__(this: &Bound<'_, BleuScore>) -> u64 {
        this.as_super().get().__hash__()
    }

    #[getter]
    fn precisions(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.precisions.clone_ref(py)
    }
}

/// Checks the numbers of sentences, because the library panics if they differ.
fn check(hypotheses: &[String], references: &[Vec<String>]) -> PyResult<()> {
    let sentences = hypotheses.len();
    if references.is_empty() {
        return Err(value_error(
            "there are no references: give a list of translations, each of all sentences",
        ));
    }
    match references.iter().find(|translation| translation.len() != sentences) {
        Some(other) => Err(value_error(format!(
            "{sentences} hypotheses, and a reference of {} sentences: references are a list of translations, each of all \
             sentences",
            other.len()
        ))),
        None => Ok(()),
    }
}

fn case(lowercase: bool) -> Case {
    if lowercase { Case::Lower } else { Case::Mixed }
}

/// BLEU of a corpus; `references` is a list of translations, each of all sentences.
#[pyfunction]
#[pyo3(signature = (hypotheses, references, *, tokenize = "13a", lowercase = false, smooth_method = "exp", smooth_value = None, use_effective_order = false))]
#[expect(clippy::too_many_arguments, reason = "Python's keyword arguments, with sacreBLEU's names")]
pub(crate) fn corpus_bleu(
    py: Python<'_>,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    tokenize: &str,
    lowercase: bool,
    smooth_method: &str,
    smooth_value: Option<f64>,
    use_effective_order: bool,
) -> PyResult<Py<BleuScore>> {
    check(&hypotheses, &references)?;
    let tokenizer = BleuTokenizer::named(tokenize).ok_or_else(|| {
        let names = BleuTokenizer::ALL.map(BleuTokenizer::name).join(", ");
        value_error(format!("tokenize is {tokenize:?}: it must be one of {names}"))
    })?;
    let smoothing = match smooth_method {
        "exp" => BleuSmoothing::Exponential,
        "floor" => BleuSmoothing::Floor(smooth_value.unwrap_or(BleuSmoothing::FLOOR)),
        "add-k" => BleuSmoothing::AddK(smooth_value.unwrap_or(BleuSmoothing::ADD_K)),
        "none" => BleuSmoothing::None,
        other => {
            return Err(value_error(format!(
                "smooth_method is {other:?}: it must be exp, floor, add-k or none"
            )));
        }
    };
    let orders = if use_effective_order { Orders::Effective } else { Orders::All };
    let options = BleuOptions {
        tokenize: tokenizer,
        smoothing,
        case: case(lowercase),
        orders,
        ..BleuOptions::default()
    };
    let bleu = detached_on_thread(py, move || Ok(metrics::corpus_bleu(&hypotheses, &references, &options)))?;
    let line = format!("{bleu:.2}");
    let (lengths, name) = ((bleu.hypothesis_length, bleu.reference_length), "BLEU".to_owned());
    let score = BleuScore::from_values(
        py,
        name,
        bleu.score,
        bleu.signature,
        line,
        bleu.precisions,
        bleu.brevity_penalty,
        lengths.0,
        lengths.1,
    );
    Py::new(py, score)
}

/// chrF of a corpus; with `word_order=2`, chrF++.
#[pyfunction]
#[pyo3(
    signature = (hypotheses, references, *, char_order = PyInt::from(6), word_order = PyInt::from(0), beta = PyInt::from(2), lowercase = false),
    text_signature = "(hypotheses, references, *, char_order=6, word_order=0, beta=2, lowercase=False)"
)]
pub(crate) fn corpus_chrf(
    py: Python<'_>,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    char_order: PyInt,
    word_order: PyInt,
    beta: PyInt,
    lowercase: bool,
) -> PyResult<MetricScore> {
    check(&hypotheses, &references)?;
    let (char_order, word_order): (usize, usize) =
        (char_order.at_least("char_order", 0)?, word_order.at_least("word_order", 0)?);
    let beta = beta.at_least("beta", 0)?;
    if char_order == 0 && word_order == 0 {
        return Err(value_error("char_order and word_order are 0: set one of them to at least 1"));
    }
    // Statistics are stored for each order and sentence.
    if char_order > 32 || word_order > 32 {
        return Err(value_error("char_order and word_order may be at most 32"));
    }
    let options =
        ChrfOptions { char_order, word_order, beta, case: case(lowercase), ..ChrfOptions::default() };
    scored(py, move || metrics::corpus_chrf(&hypotheses, &references, &options))
}

/// TER of a corpus; lower is better.
#[pyfunction]
#[pyo3(signature = (hypotheses, references, *, case_sensitive = false))]
pub(crate) fn corpus_ter(
    py: Python<'_>,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    case_sensitive: bool,
) -> PyResult<MetricScore> {
    check(&hypotheses, &references)?;
    let options = TerOptions { case: case(!case_sensitive), ..TerOptions::default() };
    scored(py, move || metrics::corpus_ter(&hypotheses, &references, &options))
}

fn scored(
    py: Python<'_>,
    metric: impl FnOnce() -> metrics::MetricScore + Send + 'static,
) -> PyResult<MetricScore> {
    let found = detached_on_thread(py, move || Ok(metric()))?;
    let line = format!("{found:.2}");
    Ok(MetricScore { name: found.name, score: found.score, signature: found.signature.to_string(), line })
}
