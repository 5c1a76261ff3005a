//! The parameters of a model of ours, put one by one into the tensors of another project.

use std::collections::BTreeSet;

use heedful_tensor::ops::{Waves, waves};

use crate::exchange::names::{Linear, Pair};
use crate::layers::Positions;
use crate::store::formats::written::{Numbers, WrittenTensor};
use crate::store::weights::Weights;

/// Tensors that were made, and the parameters that they were made of.
pub(super) struct Spread<'w> {
    weights: &'w Weights,
    read: BTreeSet<String>,
    tensors: Vec<WrittenTensor>,
}

impl<'w> Spread<'w> {
    pub(super) fn new(weights: &'w Weights) -> Spread<'w> {
        Spread { weights, read: BTreeSet::new(), tensors: Vec::new() }
    }

    /// The numbers of a parameter, which the configuration says is there.
    pub(super) fn numbers(&mut self, ours: &str) -> &'w [f32] {
        self.read.insert(ours.to_owned());
        self.weights.get(ours).unwrap_or_else(|| panic!("export: the model has no parameter {ours}"))
    }

    /// Makes a tensor of numbers.
    pub(super) fn add(&mut self, theirs: impl Into<String>, shape: &[usize], values: Vec<f32>) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "export: a tensor of {shape:?}");
        let numbers = Numbers::F32(values);
        self.tensors.push(WrittenTensor { name: theirs.into(), shape: shape.to_vec(), numbers });
    }

    /// A setting that is kept among the tensors.
    pub(super) fn number(&mut self, theirs: String, number: Numbers) {
        self.tensors.push(WrittenTensor { name: theirs, shape: Vec::new(), numbers: number });
    }

    /// A table under a name of theirs.
    pub(super) fn table(&mut self, ours: &str, theirs: impl Into<String>, shape: [usize; 2]) {
        let values = self.numbers(ours).to_vec();
        self.add(theirs, &shape, values);
    }

    /// The tensors of a table of names.
    pub(super) fn put(&mut self, pairs: impl IntoIterator<Item = Pair>) {
        for pair in pairs {
            match pair {
                Pair::Vector { ours, theirs, width } => {
                    let values = self.numbers(&ours).to_vec();
                    self.add(theirs, &[width], values);
                }
                Pair::Linear { ours, theirs, layout, shape } => self.linear(&ours, &theirs, layout, shape),
            }
        }
    }

    /// Several layers of theirs are column blocks of one of ours.
    fn linear(&mut self, ours: &str, theirs: &[[String; 2]], layout: Linear, [inputs, outputs]: [usize; 2]) {
        let (weight, bias) = (self.numbers(&format!("{ours}.weight")), self.numbers(&format!("{ours}.bias")));
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

    /// `length` rows of the positions of a stack, whose parameter, if it has one, is `ours`.
    pub(super) fn positions(
        &mut self,
        ours: &str,
        positions: Positions,
        [length, width]: [usize; 2],
    ) -> Vec<f32> {
        let (kind, first) = match positions {
            Positions::Learned { .. } => return self.numbers(ours).to_vec(),
            Positions::None => return vec![0.0; length * width],
            Positions::Sinusoidal => (Waves::Pairs, 0),
            Positions::Halves(halves) => (halves.waves(), halves.first()),
        };
        let mut table = vec![0.0; length * width];
        for (position, row) in table.chunks_exact_mut(width).enumerate() {
            waves(kind, position + first, row);
        }
        table
    }

    /// The tensors so far, for a file of their own.
    pub(super) fn take(&mut self) -> Vec<WrittenTensor> {
        std::mem::take(&mut self.tensors)
    }

    /// All tensors.
    ///
    /// # Panics
    /// If a parameter was forgotten: what a format has no place for is refused beforehand.
    pub(super) fn finish(self) -> Vec<WrittenTensor> {
        let forgotten = self.weights.iter().find(|(name, ..)| !self.read.contains(*name));
        assert!(forgotten.is_none(), "export: nobody has read {:?}", forgotten.map(|(name, ..)| name));
        self.tensors
    }
}
