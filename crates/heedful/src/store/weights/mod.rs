//! Named matrices outside a model: the contents of checkpoints and model folders.
//!
//! A model's parameters are stored in one flat vector with alignment gaps ([`Params`]). On disk a matrix is
//! identified by its name alone, so a file does not depend on the order in which a model registers its
//! parameters.

pub(crate) mod file;
mod header;
pub(crate) mod reduced;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use file::WeightsFileError;
pub use header::{Metadata, header};
use heedful_tensor::Params;

/// One matrix for every parameter of a model, by name: its values, or a moment of Adam.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    entries: Arc<[Entry]>,
    values: Vec<f32>,
}

/// Name, shape and offset of one matrix.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    name: String,
    shape: [usize; 2],
    start: usize,
}

/// Why weights do not match the parameters of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsMismatch {
    /// The model has a parameter that the weights lack.
    #[error("`{name}` is missing")]
    Missing {
        /// The parameter.
        name: String,
    },
    /// The weights have a matrix that the model lacks.
    #[error("`{name}` is not a parameter of this model")]
    Unknown {
        /// The matrix.
        name: String,
    },
    /// A matrix does not have the shape of the parameter.
    #[error("`{name}` is {} × {}, but the model's is {} × {}", found[0], found[1], wanted[0], wanted[1])]
    Shape {
        /// The parameter.
        name: String,
        /// Rows and width of the weights.
        found: [usize; 2],
        /// Rows and width in the model.
        wanted: [usize; 2],
    },
}

impl crate::error::Cause for WeightsMismatch {}

/// An upper bound of the size of a model's file: its values and its header, which names every parameter and
/// every other file of the folder.
pub(crate) fn max_file_size(params: &Params) -> u64 {
    let of_one = |param: heedful_tensor::Param| {
        let [rows, width] = param.shape();
        4 * rows * width + param.name().len() + HEADER_ENTRY
    };
    (HEADER + params.iter().map(of_one).sum::<usize>()) as u64
}

/// Upper bounds of a header without its parameters, and of a parameter's entry without its name (type, shape
/// and offsets).
const HEADER: usize = 1 << 14;
const HEADER_ENTRY: usize = 160;

impl Weights {
    /// A copy of a model's parameters.
    pub fn of(params: &Params) -> Weights {
        Weights::from_flat(params, params.to_vec())
    }

    /// Weights of `flat`, which has the layout of the parameters.
    pub(crate) fn from_flat(params: &Params, flat: Vec<f32>) -> Weights {
        let entry = |param: heedful_tensor::Param| Entry {
            name: param.name().to_owned(),
            shape: param.shape(),
            start: param.range().start,
        };
        Weights { entries: params.iter().map(entry).collect(), values: flat }
    }

    /// Weights of matrices that are concatenated in `values`.
    pub(crate) fn from_matrices(
        matrices: impl Iterator<Item = (String, [usize; 2])>,
        values: Vec<f32>,
    ) -> Weights {
        let mut start = 0;
        let entry = |(name, shape): (String, [usize; 2])| {
            let entry = Entry { name, shape, start };
            start += shape[0] * shape[1];
            entry
        };
        Weights { entries: matrices.map(entry).collect(), values }
    }

    /// The matrices of both.
    pub(crate) fn with(&self, more: &Weights) -> Weights {
        Weights::copied(self.iter().chain(more.iter()))
    }

    /// All matrices except one.
    pub(crate) fn without(&self, name: &str) -> Weights {
        Weights::copied(self.iter().filter(|(other, ..)| *other != name))
    }

    fn copied<'w>(parts: impl Iterator<Item = (&'w str, [usize; 2], &'w [f32])>) -> Weights {
        let (mut matrices, mut values) = (Vec::new(), Vec::new());
        for (name, shape, matrix) in parts {
            matrices.push((name.to_owned(), shape));
            values.extend(matrix);
        }
        Weights::from_matrices(matrices.into_iter(), values)
    }

    /// Name, `[rows, width]` and values of every matrix.
    pub fn iter(&self) -> impl Iterator<Item = (&str, [usize; 2], &[f32])> {
        self.entries.iter().map(|entry| (entry.name.as_str(), entry.shape, self.values_of(entry)))
    }

    /// The values of one matrix.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| self.values_of(entry))
    }

    /// The first matrix with an infinite or NaN value.
    pub(crate) fn first_not_finite(&self) -> Option<&str> {
        let bad = |entry: &&Entry| self.values_of(entry).iter().any(|value| !value.is_finite());
        self.entries.iter().find(bad).map(|entry| entry.name.as_str())
    }

    /// Sets the parameters of a model to these weights; on an error the model is unchanged.
    pub fn install(&self, params: &Params) -> Result<(), WeightsMismatch> {
        let flat = self.flat(params)?;
        params.set(&flat);
        Ok(())
    }

    /// The values in the layout of the parameters.
    pub(crate) fn flat(&self, params: &Params) -> Result<Vec<f32>, WeightsMismatch> {
        check(self.entries.iter().map(|entry| (entry.name.as_str(), entry.shape)), params)?;
        let mut flat = vec![0.0; params.flat_len()];
        for param in params.iter() {
            flat[param.range()].copy_from_slice(self.get(param.name()).expect("it was checked"));
        }
        Ok(flat)
    }

    fn values_of(&self, entry: &Entry) -> &[f32] {
        &self.values[entry.start..entry.start + entry.shape[0] * entry.shape[1]]
    }
}

/// Checks that matrices match the parameters of a model, before memory is allocated for the parameters: a
/// wrong configuration may describe a model that does not fit into memory.
fn check<'a>(
    found: impl Iterator<Item = (&'a str, [usize; 2])>,
    params: &Params,
) -> Result<(), WeightsMismatch> {
    let mut found: BTreeMap<&str, [usize; 2]> = found.collect();
    for (name, wanted) in params.shapes() {
        match found.remove(&*name) {
            None => return Err(WeightsMismatch::Missing { name: name.to_string() }),
            Some(found) if found != wanted => {
                return Err(WeightsMismatch::Shape { name: name.to_string(), found, wanted });
            }
            Some(_) => {}
        }
    }
    match found.into_keys().next() {
        Some(name) => Err(WeightsMismatch::Unknown { name: name.to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Init;

    use super::file::{Checksum, Contents};
    use super::*;

    fn params(first: usize) -> Params {
        let params = Params::new(3);
        params.add("a", 1, first, Init::Normal(1.0));
        params.add("b", 2, 5, Init::Normal(1.0));
        params
    }

    #[test]
    fn a_file_is_not_larger_than_its_maximum_size() {
        let params = Params::new(0);
        for layer in 0..40 {
            params.add(&format!("encoder.{layer}.feed_forward.inner"), 3, 5, Init::Normal(1.0));
        }
        let weights = Weights::of(&params);
        let metadata = Metadata::from([("seal".to_owned(), "x".repeat(1000))]);
        let sets = vec![("", &weights)];
        let contents = Contents { metadata, tensors: Vec::new(), sets, checksum: Checksum::First };
        let mut file = Vec::new();
        contents.write(&mut file).expect("memory");
        assert!(
            file.len() as u64 <= max_file_size(&params),
            "{} bytes, at most {}",
            file.len(),
            max_file_size(&params)
        );
    }

    #[test]
    fn weights_are_matched_by_name() {
        let (from, to) = (params(3), Params::new(0));
        to.add("b", 2, 5, Init::Constant(0.0));
        to.add("a", 1, 3, Init::Constant(0.0));
        Weights::of(&from).install(&to).expect("the same matrices");
        for name in ["a", "b"] {
            let values = |params: &Params| params.get(name).expect("it was added").to_vec();
            assert_eq!(values(&from), values(&to));
        }
    }

    #[test]
    fn weights_of_another_model_are_rejected_and_change_nothing() {
        let weights = Weights::of(&params(3));
        let other = params(4);
        let before = other.to_vec();
        assert_eq!(
            weights.install(&other).expect_err("another shape").to_string(),
            "`a` is 1 × 3, but the model's is 1 × 4"
        );
        assert_eq!(other.to_vec(), before);
        // The check does not allocate the terabytes of this model.
        let huge = Params::new(0);
        huge.add("a", 1 << 20, 1 << 22, Init::Normal(1.0));
        assert!(matches!(weights.install(&huge), Err(WeightsMismatch::Shape { .. })));
        let less = Params::new(0);
        less.add("a", 1, 3, Init::Constant(0.0));
        assert_eq!(weights.install(&less), Err(WeightsMismatch::Unknown { name: "b".to_owned() }));
        let more = params(3);
        let fewer = Weights::of(&less);
        assert_eq!(fewer.install(&more), Err(WeightsMismatch::Missing { name: "b".to_owned() }));
    }
}
