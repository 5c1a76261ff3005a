//! A client that others wrote, unchanged: `libretranslatepy` from PyPI. `cargo xtask test` makes an environment with it.

use std::process::Command;

use crate::client::post;
use crate::models::serving;

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
    let output = Command::new(python).args(["-c", SCRIPT, &address]).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ours =
        post(&server, "/translate", &serde_json::json!({"q": "一辆汽车", "source": "zh", "target": "en"}));
    assert_eq!(answers[0], ours.json()["translatedText"]);
    assert_eq!(answers[1][0]["language"], "zh");
    assert_eq!(answers[2][0]["targets"][0], "en");
}
