//! The WebAssembly module in Node answers as this crate does natively.
//!
//! `HEEDFUL_WEB` is the folder that `cargo xtask web` writes: the module, its scripts, and packages of demo models.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use heedful::explain::calculator::EXAMPLES;
use heedful::tensor::cpu::isa;
use heedful_grammar::Grammar;
use heedful_web::Session;
use serde_json::{Value, json};

/// Sentences of both models together.
const SENTENCES: usize = 300;
/// The seed of the phrases, another than the demo's.
const SEED: u64 = 40;
/// The largest difference of numbers. All are equal except scores: the power in the length penalty is of another math
/// library.
const TOLERANCE: f64 = 1e-14;

#[test]
#[ignore = "needs the folder of `cargo xtask web`, which runs it"]
fn the_module_answers_as_the_native_build() {
    let folder = folder();
    let mut node = Node::start(&folder);
    let models = ["zh-en", "en-zh"].map(|name| (name, folder.join(format!("{name}.zip"))));
    for (name, path) in &models {
        let (opened, _) = node.ask("PUT", &format!("/v1/models/{name}"), &json!({"file": path}));
        assert_eq!(opened["name"], *name, "{opened}");
    }
    let requests = requests();
    let mut times = Vec::new();
    let in_node: Vec<Value> = requests
        .iter()
        .map(|(path, body)| {
            let (answer, milliseconds) = node.ask("POST", path, body);
            times.push((milliseconds, body));
            answer
        })
        .collect();
    let mut differences = HashMap::new();
    isa::with_each(|isa| {
        let mut session = Session::default();
        for (name, path) in &models {
            let package = fs::read(path).expect("a package");
            assert_eq!(session.answer(&format!("PUT /v1/models/{name}"), package).status, 200);
        }
        let largest: &mut f64 = differences.entry(isa.to_string()).or_default();
        for ((path, body), in_node) in requests.iter().zip(&in_node) {
            let answer = session.answer(&format!("POST {path}"), body.to_string().into_bytes());
            let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
            *largest = largest.max(difference(&answer, in_node, &format!("{isa}: {body}")));
        }
    });
    times.retain(|(_, body)| body.get("attention").is_none());
    times.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let (median, slowest) = (&times[times.len() / 2].0, &times[times.len() - 1].0);
    println!("{SENTENCES} sentences: median {median:.1} ms, slowest {slowest:.1} ms");
    println!("largest difference of a number: {differences:?}");
    assert!(differences.values().all(|&difference| difference < TOLERANCE), "{differences:?}");
}

#[test]
#[ignore = "needs the folder of `cargo xtask web`, which runs it"]
fn a_panic_is_an_error_message_and_the_models_stay_open() {
    let folder = folder();
    let mut node = Node::start(&folder);
    let package = json!({"file": folder.join("zh-en.zip")});
    node.ask("PUT", "/v1/models/zh-en", &package);
    let request = json!({"text": "一辆新车"});
    let (before, _) = node.ask("POST", "/v1/translate", &request);
    // The module cannot allocate so many bytes.
    let (status, error, _) = node.answer("POST", "/v1/translate", &json!({"bytes": 4_000_000_000_u32}));
    let message = error["error"].as_str().unwrap_or_default();
    assert!(status == 500 && message.contains("capacity overflow"), "{status} {error}");
    let (after, _) = node.ask("POST", "/v1/translate", &request);
    assert_eq!(after["results"], before["results"]);
    for (target, body, expected, problem) in [
        ("/v1/models/x", json!("not a package"), 400, "not a zip archive"),
        ("/v1/translate", json!({"text": "新", "beams": 3}), 400, "unknown field `beams`"),
        ("/v1/translate", json!({"text": "新", "model": "x"}), 404, "no model `x`"),
        ("/v1/classify", json!({"text": "新"}), 404, "open one"),
        ("/v1/attend", json!({"x": 1}), 400, "x"),
        ("/v1/nothing", json!({}), 404, "/v1/nothing"),
    ] {
        let method = if target.starts_with("/v1/models") { "PUT" } else { "POST" };
        let (status, error, _) = node.answer(method, target, &body);
        let message = error["error"].as_str().unwrap_or_default();
        assert!(status == expected && message.contains(problem), "{target}: {status} {error}");
    }
}

/// Translations of phrases of the demo, some with everything that a response can have, and the other routes.
fn requests() -> Vec<(&'static str, Value)> {
    let grammar = Grammar::new();
    let mut requests: Vec<(&str, Value)> = Vec::new();
    for (i, phrase) in grammar.phrases(SEED).take(SENTENCES).enumerate() {
        let (model, text) = if i % 2 == 0 { ("zh-en", phrase.chinese) } else { ("en-zh", phrase.english) };
        requests.push(("/v1/translate", json!({"model": model, "text": text})));
        if i < 20 {
            let all = json!({"model": model, "text": [text, ""], "n_best": 3, "beam": 5, "alternatives": 4,
                             "attention": if i % 3 == 0 { "packed" } else { "rows" }, "raw_scores": true,
                             "without_heads": if i % 4 == 3 { vec!["decoder.0.cross.0"] } else { Vec::new() }});
            requests.push(("/v1/translate", all));
            requests.push(("/v1/tokenize", json!({"model": model, "text": text})));
        }
    }
    let several = json!({"source": "zh", "target": "en", "text": "一辆新车。一套解决方案。\n 两座山。"});
    requests.push(("/v1/translate", several));
    for (.., exercise) in EXAMPLES {
        requests.push(("/v1/attend", serde_json::from_str(exercise).expect("JSON")));
    }
    requests
}

/// The largest difference of two numbers, which must be small unless the JSON is equal in everything else.
fn difference(native: &Value, in_node: &Value, place: &str) -> f64 {
    match (native, in_node) {
        (Value::Object(native), Value::Object(in_node)) => {
            let keys = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(native), keys(in_node), "{place}");
            let both = native.iter().filter(|(key, _)| *key != "timings");
            both.map(|(key, value)| difference(value, &in_node[key], &format!("{place} {key}")))
                .fold(0.0, f64::max)
        }
        (Value::Array(native), Value::Array(in_node)) => {
            assert_eq!(native.len(), in_node.len(), "{place}");
            let both = native.iter().zip(in_node);
            both.map(|(native, in_node)| difference(native, in_node, place)).fold(0.0, f64::max)
        }
        (Value::Number(native), Value::Number(in_node)) => {
            let difference = native.as_f64().expect("a number") - in_node.as_f64().expect("a number");
            difference.abs()
        }
        _ => {
            assert_eq!(native, in_node, "{place}");
            0.0
        }
    }
}

fn folder() -> PathBuf {
    env::var_os("HEEDFUL_WEB").expect("`cargo xtask web` sets HEEDFUL_WEB").into()
}

/// Node with the module.
struct Node {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Node {
    fn start(folder: &Path) -> Node {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers.mjs");
        let mut node = Command::new("node");
        node.arg(script).arg(folder.join("engine.js")).arg(folder.join("heedful.wasm.gz"));
        let mut process = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node");
        let requests = process.stdin.take().expect("its input");
        let answers = BufReader::new(process.stdout.take().expect("its output"));
        Node { process, requests, answers }
    }

    /// The status, the body and the milliseconds of an answer.
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value, f64) {
        writeln!(self.requests, "{}", json!([method, path, body])).expect("node reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("node answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The body and the milliseconds of a successful answer.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> (Value, f64) {
        let (status, answer, milliseconds) = self.answer(method, path, body);
        assert_eq!(status, 200, "{path} {body}: {answer}");
        (answer, milliseconds)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
