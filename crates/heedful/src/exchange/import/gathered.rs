//! The parameters of a model of ours, taken one by one from the tensors of another project's.

use std::collections::BTreeSet;

use crate::exchange::names::{Linear, Pair};
use crate::store::formats::{ForeignTensor, FormatError, TensorSet};
use crate::store::weights::Weights;

/// What stays unread is something that heedful does not compute, and only the program that the model was made for does.
pub(super) const REMEDY: &str = "Run this model with the program that it was made for, or choose one of the kinds in `heedful import --help`";

/// Parameters that were found, and the names of what was read.
pub(super) struct Gathered<'t> {
    tensors: &'t TensorSet,
    read: BTreeSet<String>,
    matrices: Vec<(String, [usize; 2])>,
    values: Vec<f32>,
}

impl<'t> Gathered<'t> {
    pub(super) fn new(tensors: &'t TensorSet) -> Gathered<'t> {
        Gathered { tensors, read: BTreeSet::new(), matrices: Vec::new(), values: Vec::new() }
    }

    /// Something that the model has and heedful does not do.
    pub(super) fn unsupported(&self, found: impl Into<String>) -> FormatError {
        FormatError::unsupported(self.tensors.file(), found, REMEDY)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.find(name).is_some()
    }

    /// A setting that is kept among the tensors; `None` if it is not there.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, FormatError> {
        let Some(tensor) = self.tensors.find(name) else { return Ok(None) };
        self.read.insert(name.to_owned());
        let number = tensor.scalar();
        let problem = || format!("it is {:?} instead of one number", tensor.shape());
        number.map(Some).ok_or_else(|| self.damaged(name, problem()))
    }

    /// Whether a setting is kept as a fraction, not as a whole number.
    pub(super) fn is_fraction(&self, name: &str) -> bool {
        self.tensors.find(name).is_some_and(|tensor| !tensor.element_type().is_integer())
    }

    /// Leaves out what does not change what the model computes.
    pub(super) fn leave_out(&mut self, is_needless: impl Fn(&str) -> bool) {
        self.read.extend(self.tensors.names().filter(|name| is_needless(name)).map(str::to_owned));
    }

    /// A tensor of this shape.
    pub(super) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<&'t ForeignTensor, FormatError> {
        let tensor = self.tensors.get(name)?;
        self.read.insert(name.to_owned());
        if tensor.is_quantized() {
            self.read.insert(format!("{name}_scale"));
        }
        // Some keep a vector as a matrix of one row.
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

    /// Whether two names have the same numbers.
    pub(super) fn are_the_same(&self, [a, b]: [&str; 2]) -> bool {
        match (self.tensors.find(a), self.tensors.find(b)) {
            (Some(a), Some(b)) => {
                a.shape() == b.shape()
                    && a.bytes() == b.bytes()
                    && (!a.is_quantized() || a.values() == b.values())
            }
            _ => false,
        }
    }

    /// Makes a parameter of numbers.
    pub(super) fn add(&mut self, ours: impl Into<String>, shape: [usize; 2], values: &[f32]) {
        assert_eq!(shape[0] * shape[1], values.len(), "a parameter of ours");
        self.matrices.push((ours.into(), shape));
        self.values.extend(values);
    }

    /// The parameters of a table of names.
    pub(super) fn take(&mut self, pairs: impl IntoIterator<Item = Pair>) -> Result<(), FormatError> {
        for pair in pairs {
            match pair {
                Pair::Vector { ours, theirs, width } => self.vector(&ours, &theirs, width)?,
                Pair::Linear { ours, theirs, layout, shape } => self.linear(&ours, layout, &theirs, shape)?,
            }
        }
        Ok(())
    }

    /// A table of embeddings or positions.
    pub(super) fn table(&mut self, ours: &str, theirs: &str, shape: [usize; 2]) -> Result<(), FormatError> {
        let values = self.tensor(theirs, &shape)?.values();
        self.add(ours, shape, &values);
        Ok(())
    }

    pub(super) fn vector(&mut self, ours: &str, theirs: &str, width: usize) -> Result<(), FormatError> {
        let values = self.tensor(theirs, &[width])?.values();
        self.add(ours, [1, width], &values);
        Ok(())
    }

    /// γ and β of a norm.
    pub(super) fn norm(&mut self, ours: &str, theirs: [&str; 2], width: usize) -> Result<(), FormatError> {
        self.vector(&format!("{ours}.gamma"), theirs[0], width)?;
        self.vector(&format!("{ours}.beta"), theirs[1], width)
    }

    /// Weight and bias of a layer of `inputs × outputs`; several layers of theirs, given as weight and bias, are one of ours, side by
    /// side. A bias that is missing is 0.
    pub(super) fn linear(
        &mut self,
        ours: &str,
        layout: Linear,
        theirs: &[[String; 2]],
        [inputs, outputs]: [usize; 2],
    ) -> Result<(), FormatError> {
        let each = outputs / theirs.len();
        // Sizes are the settings' until the file has shown that it has as many numbers: only then is there room for them.
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

    /// All parameters; what nobody has read is named.
    pub(super) fn finish(self) -> Result<Weights, FormatError> {
        let mut unread = self.tensors.names().filter(|name| !self.read.contains(*name));
        if let Some(first) = unread.next() {
            let others = match unread.count() {
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
