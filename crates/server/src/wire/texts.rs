//! One text or several: the response has the same form.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// One text, or an array of texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
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

    /// A value for each text, in the form of the texts.
    pub(crate) fn shape<T>(&self, mut values: Vec<T>) -> OneOrMany<T> {
        match self {
            Texts::One(_) if values.len() == 1 => OneOrMany::One(values.remove(0)),
            _ => OneOrMany::Many(values),
        }
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of strings")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Texts, E> {
        Ok(Texts::One(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        let odd = |_| de::Error::invalid_type(de::Unexpected::Seq, &TextsVisitor);
        while let Some(text) = values.next_element().map_err(odd)? {
            texts.push(text);
        }
        Ok(Texts::Many(texts))
    }
}
