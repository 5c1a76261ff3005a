//! BLEU, chrF and TER with sacreBLEU's digits, under the names that sacreBLEU's users know.

use heedful::metrics::{
    self, BleuOptions, BleuSmoothing, BleuTokenizer, Case, ChrfOptions, Orders, TerOptions,
};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::calls::computed;
use crate::errors::value;

/// The score of a corpus.
#[pyclass(frozen, subclass, module = "heedful")]
pub(crate) struct MetricScore {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    score: f64,
    #[pyo3(get)]
    signature: String,
    line: String,
}

#[pymethods]
impl MetricScore {
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

/// BLEU and what it is made of.
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
    #[getter]
    fn precisions(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        self.precisions.clone_ref(py)
    }
}

/// The library panics where numbers of sentences differ.
fn check(hypotheses: &[String], references: &[Vec<String>]) -> PyResult<()> {
    let sentences = hypotheses.len();
    if references.is_empty() {
        return Err(value("there are no references: give a list of translations, each of all sentences"));
    }
    match references.iter().find(|translation| translation.len() != sentences) {
        Some(other) => Err(value(format!(
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
        value(format!("tokenize is {tokenize:?}: it must be one of {names}"))
    })?;
    let smoothing = match smooth_method {
        "exp" => BleuSmoothing::Exponential,
        "floor" => BleuSmoothing::Floor(smooth_value.unwrap_or(BleuSmoothing::FLOOR)),
        "add-k" => BleuSmoothing::AddK(smooth_value.unwrap_or(BleuSmoothing::ADD_K)),
        "none" => BleuSmoothing::None,
        other => {
            return Err(value(format!("smooth_method is {other:?}: it must be exp, floor, add-k or none")));
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
    let bleu = computed(py, |_| Ok(metrics::corpus_bleu(&hypotheses, &references, &options)))?;
    let line = format!("{bleu:.2}");
    let base = MetricScore { name: "BLEU".to_owned(), score: bleu.score, signature: bleu.signature, line };
    let score = BleuScore {
        precisions: PyArray1::from_vec(py, bleu.precisions).unbind(),
        bp: bleu.brevity_penalty,
        sys_len: bleu.hypothesis_length,
        ref_len: bleu.reference_length,
    };
    Py::new(py, PyClassInitializer::from(base).add_subclass(score))
}

/// chrF of a corpus; with `word_order=2`, chrF++.
#[pyfunction]
#[pyo3(signature = (hypotheses, references, *, char_order = 6, word_order = 0, beta = 2, lowercase = false))]
pub(crate) fn corpus_chrf(
    py: Python<'_>,
    hypotheses: Vec<String>,
    references: Vec<Vec<String>>,
    char_order: usize,
    word_order: usize,
    beta: u32,
    lowercase: bool,
) -> PyResult<MetricScore> {
    check(&hypotheses, &references)?;
    // Every order has its numbers for every sentence.
    if char_order > 32 || word_order > 32 {
        return Err(value("char_order and word_order may be at most 32"));
    }
    let options =
        ChrfOptions { char_order, word_order, beta, case: case(lowercase), ..ChrfOptions::default() };
    scored(py, || metrics::corpus_chrf(&hypotheses, &references, &options))
}

/// TER of a corpus; less is better.
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
    scored(py, || metrics::corpus_ter(&hypotheses, &references, &options))
}

fn scored(py: Python<'_>, metric: impl FnOnce() -> metrics::MetricScore + Send) -> PyResult<MetricScore> {
    let found = computed(py, |_| Ok(metric()))?;
    let line = format!("{found:.2}");
    Ok(MetricScore { name: found.name, score: found.score, signature: found.signature.to_string(), line })
}
