//! The fields of a request: a JSON object or a form, read once and asked for by name, so that every complaint names the
//! field.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::options::Limits;

/// The fields of a request.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    fields: Map<String, Value>,
    /// From the header.
    bearer: Option<String>,
}

/// One text or several: the answer has the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
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
}

impl Fields {
    /// Reads the body, and the query for fields that the body does not have.
    pub(crate) async fn read(request: Request, limits: &Limits) -> Result<Fields, Problem> {
        let (parts, body) = request.into_parts();
        let large = || {
            let most = limits.body_bytes;
            Problem::large(format!("the request is larger than {most} bytes: send less text at a time"))
        };
        // What says of itself that it is too large is not read at all.
        if body.size_hint().lower() > limits.body_bytes as u64 {
            return Err(large());
        }
        let reading = axum::body::to_bytes(body, limits.body_bytes);
        let slow = |_| {
            let seconds = limits.client_time.as_secs();
            let sentence = format!("the request did not arrive within {seconds} s: send it faster");
            Problem::new(StatusCode::REQUEST_TIMEOUT, sentence)
        };
        let bytes = tokio::time::timeout(limits.client_time, reading).await.map_err(slow)?;
        let bytes = bytes.map_err(|_| large())?;
        let mut fields = parse(&parts.headers, &bytes)?;
        for (name, value) in form(parts.uri.query().unwrap_or_default().as_bytes()) {
            fields.entry(name).or_insert(value);
        }
        Ok(Fields { fields, bearer: bearer(&parts.headers) })
    }

    /// The API key: the field or the header.
    pub(crate) fn key(&self) -> Option<&str> {
        let field = self.fields.get("api_key").and_then(Value::as_str).filter(|key| !key.is_empty());
        field.or(self.bearer.as_deref())
    }

    /// An unknown field is a typing error: it would be ignored in silence otherwise.
    pub(crate) fn expect_only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.fields.keys().find(|name| !known.contains(&name.as_str()) && *name != "api_key") {
            Some(odd) => {
                Err(Problem::bad(format!("there is no field `{odd}`; there are: {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Problem::bad(format!("`{name}` must be a string"))),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Texts, Problem> {
        let wrong = || Problem::bad(format!("`{name}` must be a string or an array of strings"));
        match self.get(name) {
            None => Err(Problem::bad(format!("`{name}` is missing: it is the text"))),
            Some(Value::String(text)) => Ok(Texts::One(text.clone())),
            Some(Value::Array(texts)) => {
                let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
                Ok(Texts::Many(texts.iter().map(text).collect::<Result<_, _>>()?))
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A whole number up to `most`.
    pub(crate) fn count(&self, name: &str, most: usize) -> Result<Option<usize>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) => text.trim().parse::<u64>().ok(),
            value => value.as_u64(),
        };
        match number.and_then(|number| usize::try_from(number).ok()).filter(|number| *number <= most) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::bad(format!("`{name}` must be a whole number from 0 to {most}"))),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_f64(),
        };
        number.map(Some).ok_or_else(|| Problem::bad(format!("`{name}` must be a number")))
    }

    pub(crate) fn is_set(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(is_set)) => Ok(*is_set),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(Problem::bad(format!("`{name}` must be true or false"))),
        }
    }

    /// One of several words; the first unless told.
    pub(crate) fn choice<'c>(&self, name: &str, choices: &[&'c str]) -> Result<&'c str, Problem> {
        let Some(text) = self.text(name)? else { return Ok(choices[0]) };
        let found = choices.iter().find(|choice| **choice == text).copied();
        found.ok_or_else(|| Problem::bad(format!("`{name}` must be one of: {}", choices.join(", "))))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }
}

fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        // `curl -d` calls everything a form.
        "application/x-www-form-urlencoded" if !bytes.trim_ascii_start().starts_with(b"{") => Ok(form(bytes)),
        "multipart/form-data" => {
            let sentence = "send the fields as JSON or as application/x-www-form-urlencoded";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence))
        }
        // Whoever forgets the header means JSON.
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Ok(Map::new()),
        _ => match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Err(Problem::bad("the body must be a JSON object")),
            Err(error) => Err(Problem::bad(format!("the body is not JSON: {error}"))),
        },
    }
}

/// A form; a name that comes several times has several values.
fn form(bytes: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let value = Value::String(value.into_owned());
        match fields.get_mut(name.as_ref()) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    fields
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    header.strip_prefix("Bearer ").map(|key| key.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Fields {
        let fields = parse(&HeaderMap::new(), json.as_bytes()).expect("an object");
        Fields { fields, bearer: None }
    }

    #[test]
    fn complaints_name_the_field() {
        let odd =
            fields(r#"{"q": 5, "n": -1, "s": "x", "b": "maybe", "c": "blue", "list": ["a", 1], "z": null}"#);
        let sentence = |problem: Result<(), Problem>| problem.expect_err("a complaint").sentence;
        assert!(sentence(odd.text("q").map(drop)).contains("`q` must be a string"));
        assert!(sentence(odd.texts("q").map(drop)).contains("`q` must be a string or an array"));
        assert!(sentence(odd.texts("list").map(drop)).contains("`list`"));
        assert!(sentence(odd.texts("gone").map(drop)).contains("`gone` is missing"));
        assert!(sentence(odd.count("n", 9).map(drop)).contains("`n` must be a whole number from 0 to 9"));
        assert!(sentence(odd.number("s").map(drop)).contains("`s` must be a number"));
        assert!(sentence(odd.is_set("b").map(drop)).contains("`b` must be true or false"));
        assert!(sentence(odd.choice("c", &["red", "green"]).map(drop)).contains("red, green"));
        assert!(sentence(odd.expect_only(&["q"])).contains("there is no field"));
        assert_eq!(odd.text("z"), Ok(None));
    }

    #[test]
    fn forms_and_json_are_the_same() {
        let mut headers = HeaderMap::new();
        let kind = "application/x-www-form-urlencoded; charset=utf-8".parse().expect("a header");
        headers.insert(header::CONTENT_TYPE, kind);
        let bytes = "q=a+b&q=%E4%BD%A0&alternatives=2&stream=true".as_bytes();
        let form = Fields { fields: parse(&headers, bytes).expect("a form"), bearer: None };
        assert_eq!(form.texts("q"), Ok(Texts::Many(vec!["a b".to_owned(), "你".to_owned()])));
        assert_eq!((form.count("alternatives", 5), form.is_set("stream")), (Ok(Some(2)), Ok(true)));
        assert_eq!(parse(&headers, b" {\"q\": \"a\"}").expect("JSON")["q"], "a");
        assert!(parse(&HeaderMap::new(), b"[1]").is_err());
        assert!(parse(&HeaderMap::new(), b"{\"q\": ").expect_err("cut off").sentence.contains("line 1"));
        assert!(parse(&HeaderMap::new(), &[0xff, 0xfe]).is_err());
    }
}
