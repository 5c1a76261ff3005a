//! One text or several: the response has the same shape.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One text, or an array of texts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a string or an array of strings")]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

/// One value if the request had one text, an array of values if it had an array of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl Texts {
    pub(crate) fn all(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }

    pub(crate) fn characters(&self) -> usize {
        self.all().iter().map(|text| text.chars().count()).sum()
    }

    /// A value for each text, in the shape of the texts.
    pub(crate) fn shape<T>(&self, mut values: Vec<T>) -> OneOrMany<T> {
        match self {
            Texts::One(_) if values.len() == 1 => OneOrMany::One(values.remove(0)),
            _ => OneOrMany::Many(values),
        }
    }
}
