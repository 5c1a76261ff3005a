//! Attention weights as NumPy arrays.

use heedful::layers::AttentionMap;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The weights of the only sequence of a pass: for each layer name a tuple of arrays, one for each head, of
/// queries × keys. An array takes ownership of the model's buffer, without a copy.
pub(crate) fn arrays<'py>(py: Python<'py>, maps: Vec<AttentionMap>) -> PyResult<Bound<'py, PyDict>> {
    let layers = PyDict::new(py);
    for map in maps {
        let shape = [map.queries.tokens(), map.keys.tokens()];
        let heads = map.weights.into_iter().next().unwrap_or_default();
        let array = |head| PyArray1::from_vec(py, head).reshape(shape);
        let heads = heads.into_iter().map(array).collect::<PyResult<Vec<_>>>()?;
        layers.set_item(map.site.layer_name().to_string(), PyTuple::new(py, heads)?)?;
    }
    Ok(layers)
}
