//! Converts the parameters of a heedful model to the tensors of another project.

use std::collections::BTreeSet;

use heedful_tensor::ops::{SinusoidLayout, sinusoid_row};

use crate::exchange::names::{Linear, ParamMapping};
use crate::layers::Positions;
use crate::store::formats::output_tensor::{OutputTensor, TensorValues};
use crate::store::weights::Weights;

/// The tensors so far, and the names of the parameters that were exported.
pub(super) struct ParamExporter<'w> {
    weights: &'w Weights,
    exported: BTreeSet<String>,
    tensors: Vec<OutputTensor>,
}

impl<'w> ParamExporter<'w> {
    pub(super) fn new(weights: &'w Weights) -> ParamExporter<'w> {
        ParamExporter { weights, exported: BTreeSet::new(), tensors: Vec::new() }
    }

    /// The values of a parameter, which the configuration requires to exist.
    pub(super) fn values(&mut self, ours: &str) -> &'w [f32] {
        self.exported.insert(ours.to_owned());
        self.weights.get(ours).unwrap_or_else(|| panic!("export: the model has no parameter {ours}"))
    }

    /// Adds a tensor with these values.
    pub(super) fn add(&mut self, theirs: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "export: a tensor of {shape:?}");
        let values = TensorValues::F32(values);
        self.tensors.push(OutputTensor { name: theirs.into(), shape: shape.to_vec(), values });
    }

    /// Adds a setting that is stored as a tensor.
    pub(super) fn scalar(&mut self, theirs: String, value: TensorValues) {
        self.tensors.push(OutputTensor { name: theirs, shape: Vec::new(), values: value });
    }

    /// Adds a matrix under the other project's name.
    pub(super) fn matrix(&mut self, ours: &str, theirs: impl Into<String>, shape: [usize; 2]) {
        let values = self.values(ours).to_vec();
        self.add(theirs, &shape, values);
    }

    /// Adds the tensors of these mappings.
    pub(super) fn map(&mut self, pairs: impl IntoIterator<Item = ParamMapping>) {
        for pair in pairs {
            match pair {
                ParamMapping::Vector { ours, theirs, width } => {
                    let values = self.values(&ours).to_vec();
                    self.add(theirs, &[width], values);
                }
                ParamMapping::Linear { ours, theirs, layout, shape } => {
                    self.linear(&ours, &theirs, layout, shape);
                }
            }
        }
    }

    /// Splits a layer of heedful into column blocks, one for each of the other project's layers.
    fn linear(&mut self, ours: &str, theirs: &[[String; 2]], layout: Linear, [inputs, outputs]: [usize; 2]) {
        let (weight, bias) = (self.values(&format!("{ours}.weight")), self.values(&format!("{ours}.bias")));
        let each = outputs / theirs.len();
        for (part, [weight_name, bias_name]) in theirs.iter().enumerate() {
            let columns = part * each..(part + 1) * each;
            match layout {
                Linear::OutputsFirst => {
                    let column = |column: usize| (0..inputs).map(move |row| weight[row * outputs + column]);
                    self.add(weight_name, &[each, inputs], columns.clone().flat_map(column).collect());
                }
                Linear::InputsFirst => {
                    let rows = weight.chunks_exact(outputs).flat_map(|row| &row[columns.clone()]);
                    self.add(weight_name, &[inputs, each], rows.copied().collect());
                }
            }
            self.add(bias_name, &[each], bias[columns].to_vec());
        }
    }

    /// `length` rows of a stack's positions; `ours` is the parameter of learned ones.
    pub(super) fn positions(
        &mut self,
        ours: &str,
        positions: Positions,
        [length, width]: [usize; 2],
    ) -> Vec<f32> {
        let (kind, first) = match positions {
            Positions::Learned { .. } => return self.values(ours).to_vec(),
            Positions::None => return vec![0.0; length * width],
            Positions::Sinusoidal => (SinusoidLayout::Interleaved, 0),
            Positions::Halves(halves) => (halves.waves(), halves.first()),
        };
        let mut table = vec![0.0; length * width];
        for (position, row) in table.chunks_exact_mut(width).enumerate() {
            sinusoid_row(kind, position + first, row);
        }
        table
    }

    /// Takes the tensors so far, for a separate file.
    pub(super) fn take(&mut self) -> Vec<OutputTensor> {
        std::mem::take(&mut self.tensors)
    }

    /// All tensors.
    ///
    /// # Panics
    /// If a parameter was not exported: models with unsupported features are rejected beforehand.
    pub(super) fn finish(self) -> Vec<OutputTensor> {
        let missing = self.weights.iter().find(|(name, ..)| !self.exported.contains(*name));
        assert!(missing.is_none(), "export: {:?} was not exported", missing.map(|(name, ..)| name));
        self.tensors
    }
}
