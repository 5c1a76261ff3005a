//! Named matrices outside of a model: what checkpoints and model folders hold.
//!
//! A model's parameters lie in one flat vector with gaps of alignment between them ([`Params`]). On disk a matrix is
//! known by its name alone, so a file does not depend on the order in which a model announces its parameters.

pub(crate) mod file;
mod header;

use std::sync::Arc;

pub use file::Damage;
pub use header::{Notes, header};
use heedful_tensor::Params;

/// Numbers for every parameter of a model, by name: its values, or one of Adam's moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    places: Arc<[Place]>,
    values: Vec<f32>,
}

/// Where one matrix lies.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    name: String,
    shape: [usize; 2],
    start: usize,
}

/// Weights that are not of this model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The model has a parameter that the weights lack.
    #[error("`{name}` is missing")]
    Missing {
        /// The parameter.
        name: String,
    },
    /// The weights have a matrix that the model lacks.
    #[error("`{name}` is no parameter of this model")]
    Unknown {
        /// The matrix.
        name: String,
    },
    /// Another size.
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

impl Weights {
    /// A copy of a model's parameters.
    pub fn of(params: &Params) -> Weights {
        Weights::laid_out_as(params, params.to_vec())
    }

    /// The numbers of `flat`, which is laid out as the parameters are.
    pub fn laid_out_as(params: &Params, flat: Vec<f32>) -> Weights {
        let place = |param: heedful_tensor::Param| Place {
            name: param.name().to_owned(),
            shape: param.shape(),
            start: param.range().start,
        };
        Weights { places: params.iter().map(place).collect(), values: flat }
    }

    /// Matrices that lie one after the other.
    pub(crate) fn from_matrices(
        matrices: impl Iterator<Item = (String, [usize; 2])>,
        values: Vec<f32>,
    ) -> Weights {
        let mut start = 0;
        let place = |(name, shape): (String, [usize; 2])| {
            let place = Place { name, shape, start };
            start += shape[0] * shape[1];
            place
        };
        Weights { places: matrices.map(place).collect(), values }
    }

    /// Name, `[rows, width]` and numbers of every matrix.
    pub fn iter(&self) -> impl Iterator<Item = (&str, [usize; 2], &[f32])> {
        self.places.iter().map(|place| (place.name.as_str(), place.shape, self.numbers(place)))
    }

    /// The numbers of one matrix.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.places.iter().find(|place| place.name == name).map(|place| self.numbers(place))
    }

    /// A matrix that holds a number that is none.
    pub fn first_not_finite(&self) -> Option<&str> {
        let bad = |place: &&Place| self.numbers(place).iter().any(|value| !value.is_finite());
        self.places.iter().find(bad).map(|place| place.name.as_str())
    }

    /// Makes these the parameters of a model; on an error nothing has changed.
    pub fn install(&self, params: &Params) -> Result<(), Mismatch> {
        let flat = self.flat(params)?;
        params.set(&flat);
        Ok(())
    }

    /// The numbers laid out as the parameters are.
    pub(crate) fn flat(&self, params: &Params) -> Result<Vec<f32>, Mismatch> {
        let mut flat = vec![0.0; params.flat_len()];
        for param in params.iter() {
            let (name, wanted) = (param.name(), param.shape());
            let place = self.places.iter().find(|place| place.name == name);
            let Some(place) = place else { return Err(Mismatch::Missing { name: name.to_owned() }) };
            if place.shape != wanted {
                return Err(Mismatch::Shape { name: name.to_owned(), found: place.shape, wanted });
            }
            flat[param.range()].copy_from_slice(self.numbers(place));
        }
        let unknown = |place: &&Place| params.get(&place.name).is_none();
        match self.places.iter().find(unknown) {
            Some(place) => Err(Mismatch::Unknown { name: place.name.clone() }),
            None => Ok(flat),
        }
    }

    fn numbers(&self, place: &Place) -> &[f32] {
        &self.values[place.start..place.start + place.shape[0] * place.shape[1]]
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Init;

    use super::*;

    fn params(first: usize) -> Params {
        let params = Params::new(3);
        params.add("a", 1, first, Init::Normal(1.0));
        params.add("b", 2, 5, Init::Normal(1.0));
        params
    }

    #[test]
    fn weights_go_from_one_model_to_another_by_name() {
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
    fn weights_of_another_model_are_refused_and_change_nothing() {
        let weights = Weights::of(&params(3));
        let other = params(4);
        let before = other.to_vec();
        assert_eq!(
            weights.install(&other).expect_err("another shape").to_string(),
            "`a` is 1 × 3, but the model's is 1 × 4"
        );
        assert_eq!(other.to_vec(), before);
        let less = Params::new(0);
        less.add("a", 1, 3, Init::Constant(0.0));
        assert_eq!(weights.install(&less), Err(Mismatch::Unknown { name: "b".to_owned() }));
        let more = params(3);
        let fewer = Weights::of(&less);
        assert_eq!(fewer.install(&more), Err(Mismatch::Missing { name: "b".to_owned() }));
    }
}
