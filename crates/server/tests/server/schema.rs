//! Validates JSON against a JSON schema: the subset that our description uses, and stricter: fields without a
//! description are errors.

use serde_json::{Map, Value};

pub(crate) struct Schemas<'d> {
    description: &'d Value,
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(description: &'d Value) -> Schemas<'d> {
        Schemas { description }
    }

    /// Checks that every reference has a target.
    pub(crate) fn check_references(&self) {
        let mut open = vec![self.description];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(fields) => {
                    self.resolved(value);
                    open.extend(fields.values());
                }
                Value::Array(values) => open.extend(values),
                _ => {}
            }
        }
    }

    /// The fields of an object, including those of its `allOf` parts.
    pub(crate) fn fields(&self, schema: &'d Value) -> Map<String, Value> {
        let schema = self.resolved(schema);
        let mut fields = schema["properties"].as_object().cloned().unwrap_or_default();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            fields.extend(self.fields(part));
        }
        fields
    }

    /// Validates a value; the error names the violation.
    pub(crate) fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = self.resolved(schema);
        let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        if let Some(choices) = choices {
            let odd: Vec<String> =
                choices.iter().filter_map(|choice| self.check(choice, value).err()).collect();
            return if odd.len() < choices.len() { Ok(()) } else { Err(odd.join(" / ")) };
        }
        if let Some(values) = schema["enum"].as_array()
            && !values.contains(value)
        {
            return Err(format!("{value} is none of {values:?}"));
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_kind = |known: &Value| known == kind || (kind == "integer" && known == "number");
        match &schema["type"] {
            Value::Null => {}
            Value::Array(kinds) if kinds.iter().any(is_kind) => {}
            known if is_kind(known) => {}
            known => return Err(format!("{value} is {kind}, not {known}")),
        }
        match value {
            Value::Array(values) => self.check_items(schema, values),
            Value::Object(values) => self.check_fields(schema, values),
            _ => Ok(()),
        }
    }

    fn check_items(&self, schema: &Value, values: &[Value]) -> Result<(), String> {
        let first = schema["prefixItems"].as_array();
        for (number, value) in values.iter().enumerate() {
            let item = first.and_then(|first| first.get(number)).unwrap_or(&schema["items"]);
            if item.is_object() {
                self.check(item, value).map_err(|odd| format!("[{number}] {odd}"))?;
            }
        }
        Ok(())
    }

    fn check_fields(&self, schema: &Value, values: &Map<String, Value>) -> Result<(), String> {
        let parts = schema["allOf"].as_array();
        let all = std::iter::once(schema).chain(parts.into_iter().flatten().map(|part| self.resolved(part)));
        let (mut known, mut more) = (Map::new(), None);
        let mut is_open = true;
        for part in all {
            for name in part["required"].as_array().into_iter().flatten() {
                let name = name.as_str().expect("a name");
                if !values.contains_key(name) {
                    return Err(format!("`{name}` is missing"));
                }
            }
            let fields = part["properties"].as_object().cloned().unwrap_or_default();
            is_open &= fields.is_empty();
            known.extend(fields);
            more = more.or(part.get("additionalProperties").filter(|more| more.is_object()));
        }
        for (name, value) in values {
            match known.get(name).or(more) {
                Some(field) => self.check(field, value).map_err(|odd| format!("{name}: {odd}"))?,
                None if is_open => {}
                None => return Err(format!("`{name}` is not described")),
            }
        }
        Ok(())
    }

    fn resolved<'s>(&self, schema: &'s Value) -> &'s Value
    where
        'd: 's,
    {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return schema };
        let place = reference.strip_prefix('#').expect("a reference within the description");
        let found = self.description.pointer(place).unwrap_or_else(|| panic!("{reference} leads nowhere"));
        self.resolved(found)
    }
}
