//! The reference of the HTTP API, from a server's `/openapi.json`.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// A section for each route, then one for each type.
pub(super) fn page(description: &str) -> Result<String> {
    let description: Value =
        serde_json::from_str(description).context("the description of the API is not JSON")?;
    let mut page = String::from(
        "# HTTP API\n\nGenerated from `/openapi.json`, which every server has; [the guide](../server.md) has examples. Limits and \
         languages are those of a server with its defaults.\n",
    );
    for (path, methods) in object(&description["paths"]) {
        for (method, operation) in object(methods) {
            let _ = write!(page, "\n## {} {path}\n\n", method.to_uppercase());
            for text in [&operation["summary"], &operation["description"]] {
                if let Some(text) = text.as_str() {
                    let _ = write!(page, "{}\n\n", cell(text));
                }
            }
            parameters(operation, &mut page);
            for (kind, content) in object(&operation["requestBody"]["content"]) {
                let _ = write!(page, "Body, `{kind}`: {}\n\n", type_of(&content["schema"]));
            }
            responses(operation, &mut page);
        }
    }
    page += "\n# Types\n";
    for (name, schema) in object(&description["components"]["schemas"]) {
        let _ = write!(page, "\n## {name}\n\n");
        if let Some(text) = schema["description"].as_str() {
            let _ = write!(page, "{}\n\n", cell(text));
        }
        let required = |field: &str| {
            let names = schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(field)))
        };
        let fields = object(&schema["properties"]);
        if fields.is_empty() {
            let _ = writeln!(page, "{}", type_of(schema));
            continue;
        }
        page += "| field | type | |\n|---|---|---|\n";
        for (field, schema) in fields {
            let mark = if required(field) { " (required)" } else { "" };
            let text = cell(schema["description"].as_str().unwrap_or_default());
            let _ = writeln!(page, "| `{field}`{mark} | {} | {text} |", type_of(schema));
        }
    }
    Ok(page)
}

fn parameters(operation: &Value, page: &mut String) {
    let Some(parameters) = operation["parameters"].as_array().filter(|all| !all.is_empty()) else { return };
    *page += "| parameter | in | type | |\n|---|---|---|---|\n";
    for parameter in parameters {
        let text = |key: &str| parameter[key].as_str().unwrap_or_default();
        let kind = type_of(&parameter["schema"]);
        let _ = writeln!(
            *page,
            "| `{}` | {} | {kind} | {} |",
            text("name"),
            text("in"),
            cell(text("description"))
        );
    }
    *page += "\n";
}

fn responses(operation: &Value, page: &mut String) {
    *page += "| status | | body |\n|---|---|---|\n";
    for (status, response) in object(&operation["responses"]) {
        let bodies = object(&response["content"]);
        let bodies: Vec<String> = bodies
            .iter()
            .map(|(kind, content)| format!("`{kind}` {}", type_of(&content["schema"])))
            .collect();
        let text = cell(response["description"].as_str().unwrap_or_default());
        let _ = writeln!(*page, "| {status} | {text} | {} |", bodies.join("<br>"));
    }
}

/// A schema in words; named types become links.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[key].as_array() {
            return choices.iter().map(type_of).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return String::new(),
    };
    let kinds = kinds.join(" or ");
    match &schema["items"] {
        Value::Object(_) => format!("{kinds} of {}", type_of(&schema["items"])),
        _ => kinds,
    }
}

/// Text escaped for a table cell.
fn cell(text: &str) -> String {
    text.trim().replace('\n', " ").replace('|', "\\|").replace('<', "&lt;")
}

fn object(value: &Value) -> Vec<(&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_and_types_have_sections() -> Result<()> {
        let page = page(
            r##"{"paths": {"/a": {"get": {"summary": "Gives an a", "responses": {"200": {"description": "an a",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}}}},
                "components": {"schemas": {"A": {"required": ["b"], "properties": {"b": {"type": "array", "items": {"type": "string"}}}}}}}"##,
        )?;
        assert!(page.contains("## GET /a\n\nGives an a\n"), "{page}");
        assert!(page.contains("| 200 | an a | `application/json` [A](#a) |"), "{page}");
        assert!(
            page.contains(
                "## A\n\n| field | type | |\n|---|---|---|\n| `b` (required) | array of string |  |"
            ),
            "{page}"
        );
        Ok(())
    }
}
