//! `heedful models` as a process.

use crate::support::Workplace;

#[test]
fn models_are_listed_and_each_has_commands_that_fetch_and_check_it() {
    let place = Workplace::empty();
    let list = place.good("models");
    for part in ["bergamot-en-pt", "en → pt", "Apache-2.0", "84 MB", "hf download", "heedful models NAME"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let json: serde_json::Value = serde_json::from_str(&place.good("models --json")).expect("JSON");
    let models = json["model"].as_array().expect("a list");
    assert!(models.len() >= 3);
    for model in models {
        let name = model["name"].as_str().expect("a name");
        assert!(list.contains(name));
        let script = place.good(&format!("models {name}"));
        let (file, sum) = (model["file"].as_str().expect("a file"), model["sha256"].as_str().expect("a sum"));
        assert!(script.contains(&format!("echo \"{sum}  {file}\" | sha256sum --check")), "{script}");
        assert!(script.ends_with(&format!("-o {name}\n")) && script.contains("\nset -e\n"), "{script}");
    }
}

#[test]
fn a_name_that_is_not_listed_is_an_error_that_helps() {
    let place = Workplace::empty();
    let error = place.bad("models bergamot-en-pu");
    assert!(error.contains("did you mean `bergamot-en-pt`?"), "{error}");
    let error = place.bad("models everything");
    assert!(error.contains("bergamot-en-pt, bergamot-pt-en"), "{error}");
    let error = place.bad("models opus-mt");
    assert!(error.contains("a kind of models") && error.contains("hf download"), "{error}");
}
