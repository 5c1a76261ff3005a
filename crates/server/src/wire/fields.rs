//! Deserializes named values into a type, with errors that name the field.
//!
//! serde derives the struct. This deserializer also accepts the strings of forms and queries for numbers and
//! booleans (`alternatives=2`, `stream=true`), treats `null` as an absent field, and formats errors as
//! sentences.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{SeqDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value, map};

use crate::error::ApiError;

/// Deserializes the fields of a request. Those named in `textual` are strings of a form or a query.
pub(crate) fn read<T: DeserializeOwned>(
    fields: Map<String, Value>,
    textual: &BTreeSet<String>,
) -> Result<T, ApiError> {
    T::deserialize(Fields(fields, textual)).map_err(|FieldError(message)| ApiError::bad_request(message))
}

/// Checks a number against a limit of the server.
pub(crate) fn at_most(name: &str, number: usize, most: usize) -> Result<usize, ApiError> {
    if number > most {
        return Err(ApiError::bad_request(format!("`{name}` must be a whole number from 0 to {most}")));
    }
    Ok(number)
}

/// An error about a field, as a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct FieldError(String);

impl FieldError {
    fn of(self, field: &str) -> FieldError {
        FieldError(format!("`{field}` {}", self.0))
    }
}

impl de::Error for FieldError {
    fn custom<M: fmt::Display>(message: M) -> FieldError {
        FieldError(message.to_string())
    }

    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> FieldError {
        FieldError(format!("must be {expected}"))
    }

    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> FieldError {
        FieldError(format!("must be {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> FieldError {
        FieldError(format!("must be one of: {}", expected.join(", ")))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> FieldError {
        let distance = |known: &&&str| strsim::osa_distance(field, known);
        let nearest =
            expected.iter().min_by_key(distance).filter(|known| distance(known) <= field.len().div_ceil(3));
        let hint = nearest.map_or("; there".to_owned(), |known| format!(", did you mean `{known}`? There"));
        FieldError(format!("there is no field `{field}`{hint} are: {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> FieldError {
        FieldError(format!("`{field}` is missing; /openapi.json describes the fields"))
    }
}

struct Fields<'s>(Map<String, Value>, &'s BTreeSet<String>);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = FieldError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        // A known field that is null is absent; an unknown one is an error of its own.
        let is_present =
            |(name, value): &(String, Value)| !value.is_null() || !known.contains(&name.as_str());
        let present: Map<String, Value> = self.0.into_iter().filter(is_present).collect();
        visitor.visit_map(FieldAccess { fields: present.into_iter(), value: None, textual: self.1 })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        self.deserialize_struct("", &[], visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct FieldAccess<'s> {
    fields: map::IntoIter,
    value: Option<(String, Value)>,
    textual: &'s BTreeSet<String>,
}

impl<'de> MapAccess<'de> for FieldAccess<'_> {
    type Error = FieldError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldError> {
        self.value = self.fields.next();
        let name = self.value.as_ref().map(|(name, _)| StrDeserializer::new(name));
        name.map(|name| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldError> {
        let (name, value) = self.value.take().unwrap_or_default();
        let encoding = if self.textual.contains(&name) { Encoding::Text } else { Encoding::Json };
        seed.deserialize(FieldValue(value, encoding)).map_err(|error| error.of(&name))
    }
}

/// The encoding of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// JSON, with its type.
    Json,
    /// A string, whatever the type of the field.
    Text,
}

struct FieldValue(Value, Encoding);

fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..u64::MAX as f64).contains(&number)).then_some(number as u64)
}

impl<'de> IntoDeserializer<'de, FieldError> for FieldValue {
    type Deserializer = FieldValue;

    fn into_deserializer(self) -> FieldValue {
        self
    }
}

impl<'de> Deserializer<'de> for FieldValue {
    type Error = FieldError;

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let number = match &self.0 {
            Value::String(text) if self.1 == Encoding::Text => text.trim().parse().ok(),
            // In JSON, 5 and 5.0 are the same number.
            value => value.as_u64().or_else(|| value.as_f64().and_then(whole)),
        };
        visitor.visit_u64(number.ok_or_else(|| FieldError("must be a whole number, 0 or more".to_owned()))?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        let number = match &self.0 {
            Value::String(text) if self.1 == Encoding::Text => text.trim().parse().ok(),
            value => value.as_f64(),
        };
        visitor.visit_f64(number.ok_or_else(|| FieldError("must be a number".to_owned()))?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match &self.0 {
            Value::Bool(is_set) => visitor.visit_bool(*is_set),
            Value::String(text) if self.1 == Encoding::Text && text == "true" => visitor.visit_bool(true),
            Value::String(text) if self.1 == Encoding::Text && text == "false" => visitor.visit_bool(false),
            _ => Err(FieldError("must be true or false".to_owned())),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            _ => Err(FieldError("must be a string".to_owned())),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::String(text) => StringDeserializer::new(text).deserialize_enum(name, variants, visitor),
            _ => Err(FieldError("must be a string".to_owned())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_some(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Array(values) => visitor
                .visit_seq(SeqDeserializer::new(values.into_iter().map(|value| FieldValue(value, self.1)))),
            // All other types are handled by the methods above.
            _ => visitor.visit_unit(),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char str bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map struct identifier
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::wire::Texts;

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "deserialized for their errors")]
    struct Strict {
        text: Texts,
        name: Option<String>,
        #[serde(default)]
        count: usize,
        share: Option<f64>,
        #[serde(default)]
        stream: bool,
        colour: Option<Colour>,
    }

    fn strict(fields: Value) -> Result<Strict, String> {
        let Value::Object(fields) = fields else { panic!("an object") };
        read(fields, &BTreeSet::new()).map_err(|error| error.message)
    }

    /// The same fields from a form.
    fn textual(fields: Value) -> Result<Strict, String> {
        let Value::Object(fields) = fields else { panic!("an object") };
        let names = fields.keys().cloned().collect();
        read(fields, &names).map_err(|error| error.message)
    }

    #[test]
    fn errors_name_the_field() {
        for (fields, part) in [
            (json!({"text": 5}), "`text` must be a string or an array of strings"),
            (json!({"text": ["a", 1]}), "`text` must be a string or an array of strings"),
            (json!({"text": {"a": 1}}), "`text` must be a string or an array of strings"),
            (json!({"name": "a"}), "`text` is missing"),
            (json!({"text": null}), "`text` is missing"),
            (json!({"text": "a", "name": 5}), "`name` must be a string"),
            (json!({"text": "a", "count": -1}), "`count` must be a whole number, 0 or more"),
            (json!({"text": "a", "count": "7"}), "`count` must be a whole number"),
            (json!({"text": "a", "stream": "true"}), "`stream` must be true or false"),
            (json!({"text": "a", "count": 1.5}), "`count` must be a whole number"),
            (json!({"text": "a", "share": "x"}), "`share` must be a number"),
            (json!({"text": "a", "stream": "maybe"}), "`stream` must be true or false"),
            (json!({"text": "a", "colour": "blue"}), "`colour` must be one of: red, green"),
            (json!({"text": "a", "colour": 1}), "`colour` must be a string"),
            (
                json!({"text": "a", "nmae": 5}),
                "there is no field `nmae`, did you mean `name`? There are: text, name",
            ),
            (json!({"text": "a", "elsewhere": null}), "there is no field `elsewhere`; there are: text"),
        ] {
            let message = strict(fields.clone()).expect_err("an error");
            assert!(message.contains(part), "{fields}: {message}");
        }
        assert!(
            at_most("n", 10, 9)
                .expect_err("an error")
                .message
                .contains("`n` must be a whole number from 0 to 9")
        );
    }

    #[test]
    fn null_is_absent_and_strings_of_forms_are_numbers() {
        let found = strict(json!({"text": "a", "name": null, "count": null, "share": 0.5}));
        let found = found.expect("good fields");
        assert!(found.name.is_none() && found.count == 0 && found.share == Some(0.5) && !found.stream);
        let found = textual(json!({"text": "a", "count": "7", "share": " 0.5 ", "stream": "true"}));
        let found = found.expect("good fields");
        assert!(found.count == 7 && found.share == Some(0.5) && found.stream);
        assert!(textual(json!({"text": "a", "count": "x"})).is_err());
        assert_eq!(strict(json!({"text": "a", "count": 7.0})).expect("a whole number").count, 7);
        assert!(strict(json!({"text": "a", "count": 1e30})).is_err());
    }
}
