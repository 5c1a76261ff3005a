//! Every route of a server with a model, from its OpenAPI description (`/openapi.json`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::numbers::{self, Texts};
use crate::process::Workplace;
use crate::table::Outcome;

/// Timeout of a response.
const LIMIT: Duration = Duration::from_secs(60);

/// Serves the folders `f32` and `model`, one after the other, and sends a request to every route: its
/// required fields, and one optional field selected by the kind's number.
pub(crate) fn outcome(place: &Workplace, kind: &Kind) -> Outcome {
    let answers = |arguments: &[&str]| -> Result<Answers, String> {
        let mut server = Server::start(place, arguments);
        let address = server.address().ok_or("serve: no address within a minute")?;
        requests(&address, kind.number())
    };
    let compared = || {
        let exact = answers(&["serve", "--model", "model=f32", "--compute", "f32", "--port", "0"])?;
        near(&exact, &answers(&["serve", "model", "--port", "0"])?, kind)
    };
    let about = |why| Outcome::Fault(format!("[{}] {why}", kind.description()));
    compared().map_or_else(about, Outcome::Passed)
}

/// Status and body of the response by request.
type Answers = Vec<(String, u16, String)>;

/// The largest distance between numbers of `/v1`; a fault if it is too large, or if a route succeeds for only
/// one of the models.
fn near(exact: &Answers, other: &Answers, kind: &Kind) -> Result<Option<f64>, String> {
    let mut farthest = None;
    for ((request, exact_status, a), (_, status, b)) in exact.iter().zip(other) {
        if status != exact_status {
            return Err(format!("{request}: status {status}, of f32 {exact_status}: {b}"));
        }
        // An event stream is not JSON; the same request without streaming is compared.
        let is_stream = request.contains("\"stream\":true");
        if !request.starts_with("post /v1/") || *status != 200 || is_stream || kind.has_hard_attention() {
            continue;
        }
        let is_ranking = ["/classify", "/fill"].iter().any(|route| request.contains(route));
        let texts = if is_ranking { Texts::Ranked } else { Texts::Found };
        match numbers::distance(&numbers::parsed(a), &numbers::parsed(b), texts) {
            Some(far) if far > numbers::bound(&kind.stored) => {
                return Err(format!("{request}: {far:.3} away from f32"));
            }
            None if texts != Texts::Found => return Err(format!("{request}: {b}, of f32: {a}")),
            Some(far) => farthest = Some(farthest.map_or(far, |farthest: f64| farthest.max(far))),
            None => {}
        }
    }
    Ok(farthest)
}

/// A process that ends with the test.
struct Server(Child);

impl Server {
    fn start(place: &Workplace, arguments: &[&str]) -> Server {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let mut command = place.command(&arguments);
        Server(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts"))
    }

    /// Where it listens, from its first lines.
    fn address(&mut self) -> Option<String> {
        let stderr = self.0.stderr.take()?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // The rest is read, so that the server never blocks on a full pipe.
                let _ = sender.send(line);
            }
        });
        loop {
            let line = receiver.recv_timeout(LIMIT).ok()?;
            if let Some((_, rest)) = line.split_once("http://") {
                return Some(rest.split(|c: char| c.is_whitespace() || c == '/').next()?.to_owned());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn requests(address: &str, number: usize) -> Result<Answers, String> {
    let (_, text) = send(address, "GET", "/openapi.json", None)?;
    let description: Value =
        serde_json::from_str(&text).map_err(|error| format!("/openapi.json: {error}"))?;
    let (mut posted, mut answers) = (0, Answers::new());
    let paths = description["paths"].as_object().ok_or("/openapi.json: no paths")?;
    for (path, methods) in paths.iter().filter(|(path, _)| !path.contains('{')) {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let content = &operation["requestBody"]["content"]["application/json"]["schema"];
            let schemas = Schemas(&description);
            let body = (!content.is_null()).then(|| schemas.body(content, number));
            // Files are sent in another form, and reload and keys need the administrator.
            if operation["requestBody"].is_object() && body.is_none() {
                continue;
            }
            let sent = body.as_ref().map_or_else(String::new, Value::to_string);
            let (status, answer) = send(address, &method.to_uppercase(), path, body.as_ref())?;
            posted += usize::from(method == "post" && status == 200);
            if status >= 500 && status != 501 {
                return Err(format!("{method} {path} {sent}: status {status}: {answer}"));
            }
            answers.push((format!("{method} {path} {sent}"), status, answer));
        }
    }
    if posted == 0 { Err("no route answers a request for this model".to_owned()) } else { Ok(answers) }
}

/// The schemas of a description.
struct Schemas<'a>(&'a Value);

impl Schemas<'_> {
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
            Some(pointer) => self.resolved(self.0.pointer(pointer).unwrap_or(&Value::Null)),
            None => {
                let alternatives =
                    schema["oneOf"].as_array().or(schema["anyOf"].as_array()).or(schema["allOf"].as_array());
                let is_null = |schema: &&Value| schema["type"] != "null";
                alternatives
                    .and_then(|all| all.iter().find(is_null))
                    .map_or(schema, |first| self.resolved(first))
            }
        }
    }

    /// The required fields of an object, and one optional field.
    fn body(&self, schema: &Value, number: usize) -> Value {
        let schema = self.resolved(schema);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
        let optional: Vec<&String> =
            fields.iter().copied().filter(|field| !required.contains(&field.as_str())).collect();
        let more = optional.get(number % (optional.len() + 1)).map(|field| field.as_str());
        let value = |field: &str| (field.to_owned(), self.value(&schema["properties"][field], field));
        Value::Object(required.into_iter().chain(more).map(value).collect())
    }

    fn value(&self, schema: &Value, field: &str) -> Value {
        let schema = self.resolved(schema);
        if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
            return first.clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or(Value::Null),
            kind => kind.clone(),
        };
        match kind.as_str().unwrap_or("string") {
            "array" => json!([self.value(&schema["items"], field)]),
            "object" => self.body(schema, 0),
            "integer" => json!(2),
            "number" => json!(0.5),
            "boolean" => json!(true),
            // A model without languages accepts any language code.
            _ => match field {
                "source" => json!("en"),
                "target" => json!("de"),
                "model" => json!("model"),
                _ => json!("the cat sees <mask>"),
            },
        }
    }
}

/// Sends one request on a new connection.
fn send(address: &str, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, String), String> {
    let failed = |error: std::io::Error| format!("{method} {path}: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
    let body = body.map_or_else(String::new, Value::to_string);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(failed)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| format!("{method} {path}: no status in {answer:?}"))?;
    Ok((status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())))
}
