//! Attention weights, as numbers and as a page that a notebook shows.

use heedful::decode::SearchOptions;
use heedful::explain::{ExplainOptions, Explanation as Explained, WeightForm, page};
use pyo3::prelude::*;

use crate::errors::value_error;
use crate::results::hash_of;

/// The title of the page.
const TITLE: &str = "heedful";

/// The explanation of one text.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Explanation {
    explained: Explained,
}

impl Explanation {
    pub(crate) fn new(explained: Explained) -> Explanation {
        Explanation { explained }
    }
}

/// The options of explanations: weights as rows of numbers.
pub(crate) fn options(search: &SearchOptions) -> ExplainOptions {
    ExplainOptions::new(WeightForm::Rows, search)
}

#[pymethods]
impl Explanation {
    #[new]
    #[pyo3(signature = (json))]
    fn read(json: &str) -> PyResult<Explanation> {
        let explained = serde_json::from_str(json);
        explained
            .map(Explanation::new)
            .map_err(|error| value_error(format!("json is not an explanation: {error}")))
    }

    /// The text of the best output.
    #[getter]
    fn text(&self) -> &str {
        self.explained.outputs.first().map_or("", |best| &best.text)
    }

    /// A self-contained page: one file that needs no network.
    #[getter]
    fn html(&self) -> String {
        page(std::slice::from_ref(&self.explained), TITLE)
    }

    /// The numbers, as `heedful explain -o FILE.json` writes them.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.explained).map_err(value_error)
    }

    /// The numbers as a dict of plain values.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json()?,))
    }

    fn __getnewargs__(&self) -> PyResult<(String,)> {
        Ok((self.to_json()?,))
    }

    fn __eq__(&self, other: PyRef<'_, Explanation>) -> bool {
        self.explained == other.explained
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(&self.explained.source.text, self.text()))
    }

    fn _repr_html_(&self) -> String {
        // The page has its own scripts and styles: in a frame they cannot affect the notebook.
        let page = self.html().replace('&', "&amp;").replace('"', "&quot;");
        format!(
            "<iframe sandbox=\"allow-scripts allow-downloads\" style=\"width: 100%; height: 620px; border: 0\" \
             title=\"attention\" srcdoc=\"{page}\"></iframe>"
        )
    }

    fn __repr__(&self) -> String {
        format!("Explanation(text={:?})", self.text())
    }
}
