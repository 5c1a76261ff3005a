//! Constraints beyond the Rust types: ranges of numbers, names of this server's models and languages, and
//! forms, which have no null.

use std::collections::BTreeSet;
use std::sync::Arc;

use heedful::tasks::Task;
use serde_json::{Map, Value, json};

use crate::app::AppState;
use crate::models::{Engine, LoadedModel};
use crate::routes::fill::MAX_PREDICTIONS;
use crate::routes::generate::{TEMPERATURE, TOP_P};

const FORMS: [&str; 2] = ["application/x-www-form-urlencoded", "multipart/form-data"];

/// Adds the constraints to a description.
pub(super) fn add(description: &mut Value, state: &AppState) {
    // The schemas of bodies, and the subset that may also be sent as forms.
    let (mut bodies, mut forms) = (BTreeSet::new(), BTreeSet::new());
    for operation in operations(description) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            bound_number(&name, &mut parameter["schema"], state);
        }
        if let Some(events) = operation.pointer_mut("/responses/200/content/text~1event-stream/schema") {
            *events = event(events.take());
        }
        let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
        let Some(contents) = contents else { continue };
        for (kind, content) in contents {
            let Some(name) = schema_name(&content["schema"]) else { continue };
            bodies.insert(name.clone());
            if FORMS.contains(&kind.as_str()) {
                content["schema"] = json!({"$ref": format!("#/components/schemas/{name}Form")});
                forms.insert(name);
            }
        }
    }
    let Some(schemas) = description["components"]["schemas"].as_object_mut() else { return };
    schemas
        .iter_mut()
        .filter(|(name, _)| !bodies.contains(*name))
        .for_each(|(_, schema)| replace_one_of(schema));
    let mut optional: BTreeSet<String> = BTreeSet::new();
    for name in bodies {
        let Some(body) = schemas.get_mut(&name) else { continue };
        bound_body(&name, body, state);
        if strings(&body["required"]).is_empty() {
            optional.insert(name.clone());
        }
        if forms.contains(&name) {
            let form = form_of(body);
            schemas.insert(format!("{name}Form"), form);
        }
    }
    // A body without required fields is optional.
    for operation in operations(description) {
        let Some(body) = operation.get_mut("requestBody") else { continue };
        let mut is_optional = false;
        for content in body["content"].as_object_mut().into_iter().flat_map(Map::values_mut) {
            let schema = &mut content["schema"];
            if schema_name(schema).is_some_and(|name| optional.contains(&name)) {
                allow_null(schema);
                is_optional = true;
            }
        }
        if is_optional {
            body["required"] = Value::Bool(false);
        }
    }
}

fn operations(description: &mut Value) -> impl Iterator<Item = &mut Value> {
    let paths = description["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    paths.flat_map(|path| path.as_object_mut().into_iter().flat_map(Map::values_mut))
}

/// Replaces `oneOf` by `anyOf`: an empty array matches both an array of texts and one value without texts.
fn replace_one_of(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(replace_one_of);
            if let Some(choices) = fields.remove("oneOf") {
                fields.insert("anyOf".to_owned(), choices);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(replace_one_of),
        _ => {}
    }
}

/// A server-sent event, whose data is JSON.
fn event(data: Value) -> Value {
    json!({
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "description": "The kind of the event."},
            "data": {
                "type": "string",
                "description": "JSON of one line.",
                "contentMediaType": "application/json",
                "contentSchema": data,
            },
        },
    })
}

/// The name of the schema that a body refers to, directly or as an optional body.
fn schema_name(schema: &Value) -> Option<String> {
    let name = |schema: &Value| {
        let reference = schema["$ref"].as_str()?;
        reference.rsplit('/').next().map(str::to_owned)
    };
    name(schema).or_else(|| schema["oneOf"].as_array()?.iter().find_map(name))
}

fn bound_body(name: &str, body: &mut Value, state: &AppState) {
    let required: Vec<String> = strings(&body["required"]);
    let Some(fields) = body.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (field, schema) in fields {
        bound_number(field, schema, state);
        if let Some(names) = names(name, field, state) {
            schema["enum"] = names.into();
        }
        if field == "without_heads" {
            name_heads(schema, state);
        }
        if !required.contains(field) {
            allow_null(schema);
        }
    }
}

/// Sets the minimum and maximum of a number, by the name of its field.
fn bound_number(field: &str, schema: &mut Value, state: &AppState) {
    let kinds = strings(&schema["type"]);
    if kinds.iter().any(|kind| kind == "integer") {
        let beam = state.limits.beam;
        let (least, most) = match field {
            "beam" | "n_best" => (1, beam as u64),
            "alternatives" => (0, beam as u64 - 1),
            "tokens" => (1, state.limits.tokens as u64),
            "top" => (1, MAX_PREDICTIONS as u64),
            "top_k" | "no_repeat_ngram" => (1, u64::MAX),
            _ => (0, u64::MAX),
        };
        (schema["minimum"], schema["maximum"]) = (least.into(), most.into());
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("format");
        }
    } else if kinds.iter().any(|kind| kind == "number") {
        let range = match field {
            "temperature" => TEMPERATURE,
            "top_p" => TOP_P,
            _ => return,
        };
        (schema["minimum"], schema["maximum"]) = (range.0.into(), range.1.into());
    }
}

/// The values that a field may have on this server; `None` for any.
fn names(body: &str, field: &str, state: &AppState) -> Option<Vec<String>> {
    let task = match body {
        "ClassifyRequest" => Task::Classify,
        "GenerateRequest" => Task::Language,
        "FillRequest" => Task::Masked,
        "TranslateRequest" | "LibreTranslateRequest" | "TranslateFileRequest" => Task::Translate,
        _ => return None,
    };
    let specs: Vec<_> = state.models.with_task(task).map(|served| &served.spec).collect();
    let codes = |code: fn(&crate::models::ModelSpec) -> &str, more: &[&str]| {
        let all: BTreeSet<String> =
            specs.iter().map(|spec| code(spec)).chain(more.iter().copied()).map(str::to_owned).collect();
        // A model of an unknown language accepts any code.
        (!specs.is_empty() && !all.contains("und")).then(|| all.into_iter().collect())
    };
    match field {
        "model" => {
            let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
            (!names.is_empty()).then_some(names)
        }
        "source" => codes(|spec| &spec.source, &["auto"]),
        "target" => codes(|spec| &spec.target, &[]),
        _ => None,
    }
}

/// One head or several, limited to the heads of this server's translators.
fn name_heads(schema: &mut Value, state: &AppState) {
    let head = json!({"type": "string", "enum": heads(state)});
    let several = json!({"type": "array", "items": head});
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let description = [&*schema].into_iter().chain(choices).find_map(|part| part["description"].as_str());
    *schema = json!({"description": description.unwrap_or_default(), "oneOf": [head, several]});
}

/// The names of all heads of this server's translators.
fn heads(state: &AppState) -> BTreeSet<String> {
    let loaded = state.models.with_task(Task::Translate).map(|served| served.current());
    let of_model = |loaded: Arc<LoadedModel>| match &*loaded.engine {
        Engine::Translator(translator) => translator.model().heads(),
        _ => Vec::new(),
    };
    loaded.flat_map(of_model).map(|head| head.to_string()).collect()
}

/// Allows null, which means an absent field.
fn allow_null(schema: &mut Value) {
    let kinds = strings(&schema["type"]);
    if !kinds.is_empty() {
        let with_null: BTreeSet<String> = kinds.into_iter().chain(["null".to_owned()]).collect();
        schema["type"] = json!(with_null);
    } else if schema.get("$ref").is_some() {
        *schema = json!({"oneOf": [{"type": "null"}, schema.take()]});
    } else if let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut)
        && !choices.iter().any(|choice| choice["type"] == "null")
    {
        choices.push(json!({"type": "null"}));
    }
    if let Some(names) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        names.push(Value::Null);
    }
}

/// The schema of the body as a form, which has neither null nor empty arrays.
fn form_of(body: &Value) -> Value {
    let mut form = body.clone();
    let Some(fields) = form.get_mut("properties").and_then(Value::as_object_mut) else { return form };
    for schema in fields.values_mut() {
        if schema["$ref"].as_str().is_some_and(|reference| reference.ends_with("/Texts")) {
            *schema = json!({
                "description": "One text, or several under the same name.",
                "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            });
        }
        let kinds: Vec<String> = strings(&schema["type"]).into_iter().filter(|kind| kind != "null").collect();
        match kinds.as_slice() {
            [] => {}
            [kind] => schema["type"] = json!(kind),
            kinds => schema["type"] = json!(kinds),
        }
        for list in ["enum", "oneOf"] {
            if let Some(choices) = schema.get_mut(list).and_then(Value::as_array_mut) {
                choices.retain(|choice| !choice.is_null() && choice["type"] != "null");
            }
        }
    }
    form
}

/// A string or an array of strings.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}
