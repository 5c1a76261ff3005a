//! Unmodified packages from PyPI: the client `libretranslatepy`; `schemathesis`, which sends valid and
//! invalid requests by `/openapi.json` and checks the responses; and `kubernetes-validate`, which validates
//! manifests. `cargo xtask test` creates an environment with all of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use heedful_server::{ModelSpec, Server, ServerOptions};

use crate::client::{finish, post};
use crate::models::{classifier, language, masked, options, serving, translator};

const SCRIPT: &str = "
import json, sys
from libretranslatepy import LibreTranslateAPI
api = LibreTranslateAPI(sys.argv[1])
print(json.dumps([api.translate('一辆汽车', 'zh', 'en'), api.detect('这是一套自动驾驶解决方案。'), api.languages()]))
";

#[test]
#[ignore = "needs Python with libretranslatepy; `cargo xtask test` runs it"]
fn a_client_of_libretranslate_works_unchanged() {
    let python = std::env::var_os("HEEDFUL_TEST_PYTHON")
        .expect("HEEDFUL_TEST_PYTHON names a Python with libretranslatepy; `cargo xtask test` sets it");
    let (server, _folder) = serving();
    let address = format!("http://{}/", server.address());
    let output = finish(Command::new(python).args(["-c", SCRIPT, &address]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ours =
        post(&server, "/translate", &serde_json::json!({"q": "一辆汽车", "source": "zh", "target": "en"}));
    assert_eq!(answers[0], ours.json()["translatedText"]);
    assert_eq!(answers[1][0]["language"], "zh");
    assert_eq!(answers[2][0]["targets"][0], "en");
}

#[test]
#[ignore = "needs Python with schemathesis; `cargo xtask test` runs it"]
fn schemathesis_finds_no_difference_from_the_description() {
    let python = std::env::var_os("HEEDFUL_TEST_PYTHON")
        .expect("HEEDFUL_TEST_PYTHON names a Python with schemathesis; `cargo xtask test` sets it");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("one"), 1);
    classifier(&at("labels"));
    language(&at("writer"));
    masked(&at("reader"));
    let run = at("runs/first");
    fs::create_dir_all(&run).expect("a folder");
    for (file, text) in [
        ("metrics.jsonl", "{\"step\":1}\n"),
        ("attention.jsonl", ""),
        ("report.html", "<p>curves</p>"),
        ("heads.html", "<p>heads</p>"),
    ] {
        fs::write(run.join(file), text).expect("room");
    }
    let models =
        [("zh-en", "one"), ("mood", "labels"), ("writer", "writer"), ("reader", "reader")].into_iter();
    let models = models.map(|(name, folder)| ModelSpec::named(name, at(folder))).collect();
    let options = ServerOptions { runs: Some(at("runs")), ..options(models) };
    let server = Server::start(options).expect("a server");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut python = Command::new(python);
    python
        .args(["-m", "schemathesis.cli", "run", &format!("http://{}/openapi.json", server.address())])
        .args([
            "--seed=1",
            "--max-examples=40",
            "--generation-database=none",
            "--request-timeout=120",
            "--no-color",
        ])
        .env("SCHEMATHESIS_HOOKS", "schemathesis_hooks")
        .env("PYTHONPATH", &tests)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // It may write files.
        .current_dir(folder.path());
    let run = finish(&mut python);
    let report = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{report}\n{}", String::from_utf8_lossy(&run.stderr));
    // Every route was tested without findings.
    assert!(report.contains("No issues found"), "{report}");
    let tested = report.split("Tested:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let tested = tested.and_then(|count| count.parse().ok());
    assert!(tested.is_some_and(|tested: usize| tested >= crate::openapi::ROUTES.len()), "{report}");
}

#[test]
#[ignore = "needs Python with kubernetes-validate; `cargo xtask test` runs it"]
fn the_kubernetes_manifests_are_valid() {
    let python = std::env::var_os("HEEDFUL_TEST_PYTHON")
        .expect("HEEDFUL_TEST_PYTHON names a Python with kubernetes-validate; `cargo xtask test` sets it");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes");
    let files: Vec<_> =
        fs::read_dir(folder).expect("manifests").map(|entry| entry.expect("an entry").path()).collect();
    let mut python = Command::new(python);
    python.args(["-m", "kubernetes_validate", "--strict"]).args(&files);
    let output = finish(&mut python);
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    assert!(output.status.success(), "{printed}");
    assert!(printed.matches(" passed for resource ").count() >= files.len(), "{printed}");
}
