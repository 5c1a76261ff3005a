//! Converts the tensors of another project's model to heedful's parameters.

use std::collections::BTreeSet;

use crate::exchange::names::{Linear, ParamMapping};
use crate::store::formats::{ForeignTensor, FormatError, TensorSet};
use crate::store::weights::Weights;

/// The remedy for unsupported features: only the original program computes them.
pub(super) const REMEDY: &str =
    "Run this model with its original program, or choose one of the kinds in `heedful import --help`";

/// The parameters so far, and the names of the tensors that were read.
pub(super) struct ParamImporter<'t> {
    tensors: &'t TensorSet,
    read: BTreeSet<String>,
    matrices: Vec<(String, [usize; 2])>,
    values: Vec<f32>,
}

impl<'t> ParamImporter<'t> {
    pub(super) fn new(tensors: &'t TensorSet) -> ParamImporter<'t> {
        ParamImporter { tensors, read: BTreeSet::new(), matrices: Vec::new(), values: Vec::new() }
    }

    /// The error about an unsupported feature.
    pub(super) fn unsupported(&self, feature: impl Into<String>) -> FormatError {
        FormatError::unsupported(self.tensors.file(), feature, REMEDY)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.find(name).is_some()
    }

    /// A setting that is stored as a tensor; `None` if it is missing.
    pub(super) fn scalar(&mut self, name: &str) -> Result<Option<f64>, FormatError> {
        let Some(tensor) = self.tensors.find(name) else { return Ok(None) };
        self.read.insert(name.to_owned());
        let value = tensor.scalar();
        let problem = || format!("it is {:?} instead of one number", tensor.shape());
        value.map(Some).ok_or_else(|| self.damaged(name, problem()))
    }

    /// Whether a setting is stored as a floating-point number.
    pub(super) fn is_float(&self, name: &str) -> bool {
        self.tensors.find(name).is_some_and(|tensor| !tensor.element_type().is_integer())
    }

    /// Ignores tensors that do not affect the model's output.
    pub(super) fn ignore(&mut self, is_irrelevant: impl Fn(&str) -> bool) {
        self.read.extend(self.tensors.names().filter(|name| is_irrelevant(name)).map(str::to_owned));
    }

    /// A tensor of this shape.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<&'t ForeignTensor, FormatError> {
        let tensor = self.tensors.get(name)?;
        self.read.insert(name.to_owned());
        if tensor.is_quantized() {
            self.read.insert(format!("{name}_scale"));
        }
        // Some formats store a vector as a matrix of one row.
        let without_ones = |shape: &[usize]| shape.iter().copied().filter(|&n| n != 1).collect::<Vec<_>>();
        match without_ones(tensor.shape()) == without_ones(shape) {
            true => Ok(tensor),
            false => Err(self.damaged(name, format!("it is {:?} instead of {shape:?}", tensor.shape()))),
        }
    }

    /// The shape of a matrix.
    pub(super) fn shape(&self, name: &str) -> Result<[usize; 2], FormatError> {
        let tensor = self.tensors.get(name)?;
        let problem = || self.damaged(name, format!("it is {:?} instead of a matrix", tensor.shape()));
        tensor.shape().try_into().map_err(|_| problem())
    }

    /// Whether two tensors have the same shape and values.
    pub(super) fn are_equal(&self, [a, b]: [&str; 2]) -> bool {
        match (self.tensors.find(a), self.tensors.find(b)) {
            (Some(a), Some(b)) => {
                a.shape() == b.shape()
                    && a.bytes() == b.bytes()
                    && (!a.is_quantized() || a.values() == b.values())
            }
            _ => false,
        }
    }

    /// Adds a parameter with these values.
    pub(super) fn add(&mut self, ours: impl Into<String>, shape: [usize; 2], values: &[f32]) {
        assert_eq!(shape[0] * shape[1], values.len(), "import: a parameter of {shape:?}");
        self.matrices.push((ours.into(), shape));
        self.values.extend(values);
    }

    /// Imports the parameters of these mappings.
    pub(super) fn map(&mut self, pairs: impl IntoIterator<Item = ParamMapping>) -> Result<(), FormatError> {
        for pair in pairs {
            match pair {
                ParamMapping::Vector { ours, theirs, width } => self.vector(&ours, &theirs, width)?,
                ParamMapping::Linear { ours, theirs, layout, shape } => {
                    self.linear(&ours, layout, &theirs, shape)?;
                }
            }
        }
        Ok(())
    }

    /// Imports a matrix of embeddings or positions.
    pub(super) fn matrix(&mut self, ours: &str, theirs: &str, shape: [usize; 2]) -> Result<(), FormatError> {
        let values = self.tensor(theirs, &shape)?.values();
        self.add(ours, shape, &values);
        Ok(())
    }

    pub(super) fn vector(&mut self, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
        let values = self.tensor(theirs, &[width])?.values();
        self.add(ours, [1, width], &values);
        Ok(())
    }

    /// Imports γ and β of a norm.
    pub(super) fn norm(&mut self, ours: &str, theirs: [&str; 2], width: usize) -> Result<(), FormatError> {
        self.vector(&format!("{ours}.gamma"), theirs[0], width)?;
        self.vector(&format!("{ours}.beta"), theirs[1], width)
    }

    /// Imports weight and bias of a layer of `inputs × outputs`, the concatenation of one or more layers of
    /// the other project, each given by the names of its weight and bias. A missing bias is 0.
    pub(super) fn linear(
        &mut self,
        ours: &str,
        layout: Linear,
        theirs: &[[String; 2]],
        [inputs, outputs]: [usize; 2],
    ) -> Result<(), FormatError> {
        let each = outputs / theirs.len();
        // The sizes come from the settings. Memory is allocated only after the file's tensors were checked
        // against them.
        let mut parts = Vec::new();
        for [weights, biases] in theirs {
            let weight = match layout {
                Linear::OutputsFirst => {
                    self.tensor(weights, &[each, inputs])?.transposed_values().unwrap_or_default()
                }
                Linear::InputsFirst => self.tensor(weights, &[inputs, each])?.values(),
            };
            let bias = match self.has(biases) {
                true => self.tensor(biases, &[each])?.values(),
                false => vec![0.0; each],
            };
            parts.push((weight, bias));
        }
        let (mut weight, mut bias) = (vec![0.0; inputs * outputs], Vec::with_capacity(outputs));
        for (number, (weights, biases)) in parts.iter().enumerate() {
            for (row, part) in weight.chunks_exact_mut(outputs).zip(weights.chunks_exact(each)) {
                row[number * each..(number + 1) * each].copy_from_slice(part);
            }
            bias.extend(biases);
        }
        self.add(format!("{ours}.weight"), [inputs, outputs], &weight);
        self.add(format!("{ours}.bias"), [1, outputs], &bias);
        Ok(())
    }

    /// All parameters; an error if a tensor was not read.
    pub(super) fn finish(self) -> Result<Weights, FormatError> {
        let mut unused = self.tensors.names().filter(|name| !self.read.contains(*name));
        if let Some(first) = unused.next() {
            let others = match unused.count() {
                0 => String::new(),
                1 => " and another one".to_owned(),
                more => format!(" and {more} others"),
            };
            return Err(self.unsupported(format!("variable `{first}`{others}")));
        }
        Ok(Weights::from_matrices(self.matrices.into_iter(), self.values))
    }

    fn damaged(&self, name: &str, problem: String) -> FormatError {
        FormatError::damaged(self.tensors.file(), format!("variable `{name}`"), problem)
    }
}
