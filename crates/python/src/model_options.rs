//! The options with which a model is opened, besides its folder.

use heedful::models::DeviceChoice;
use heedful::tasks::OpenOptions;
use heedful::tensor::Precision;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::PyInt;
use crate::errors::value_error;

/// The given options, which are pickled to open the model in another process.
pub(crate) struct ModelOptions {
    pub(crate) compute: Option<String>,
    pub(crate) device: Option<String>,
    pub(crate) max_tokens: Option<usize>,
}

impl ModelOptions {
    pub(crate) fn new(
        compute: Option<String>,
        device: Option<String>,
        max_tokens: Option<PyInt>,
    ) -> PyResult<ModelOptions> {
        let max_tokens = max_tokens.map(|tokens| tokens.at_least("max_tokens", 1)).transpose()?;
        Ok(ModelOptions { compute, device, max_tokens })
    }

    /// The library's options, with the defaults of the command line.
    pub(crate) fn options(&self) -> PyResult<OpenOptions> {
        let choice = match self.device.as_deref() {
            None | Some("cpu") => DeviceChoice::Cpu,
            Some("cuda") => DeviceChoice::Cuda,
            Some("auto") => DeviceChoice::Auto,
            Some(other) => return Err(wrong("device", other, "cpu, cuda or auto")),
        };
        let device = choice
            .choose()
            .map_err(|why| value_error(format!("{why}: use device=\"cpu\" or \"auto\"")))?
            .device;
        let compute = match self.compute.as_deref() {
            None => None,
            Some("bf16") => Some(Precision::Bf16),
            Some("f32") => Some(Precision::F32),
            Some("int8") if device.has_int8() => Some(Precision::Int8),
            Some("int8") => {
                return Err(value_error("int8 is supported on the CPU only: use compute=\"bf16\""));
            }
            Some(other) => return Err(wrong("compute", other, "bf16, f32 or int8")),
        };
        Ok(OpenOptions::new().device(choice).compute(compute))
    }

    /// The keyword arguments of a constructor.
    pub(crate) fn named<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let named = PyDict::new(py);
        named.set_item("compute", &self.compute)?;
        named.set_item("device", &self.device)?;
        named.set_item("max_tokens", self.max_tokens)?;
        Ok(named)
    }
}

fn wrong(what: &str, found: &str, possible: &str) -> PyErr {
    PyValueError::new_err(format!("{what} is {found:?}: it must be {possible}"))
}
