//! The `/v1` API: translations with all details, streams, labels, texts, runs.

use std::fs;

use heedful::explain::{Explanation, HeadWeights, WeightForm};
use heedful::tasks::translate::Translator;
use heedful_server::{ModelSpec, Server};
use serde_json::{Value, json};

use crate::client::{get, post};
use crate::models::{classifier, language, options, search, serving, translator};

#[test]
fn a_response_explains_every_sentence_as_the_library_does() {
    let (server, folder) = serving();
    let translator = Translator::open(folder.path().join("zh-en")).expect("a model");
    let body = json!({"text": "一辆汽车。 一套房子", "attention": "rows", "n_best": 2});
    let answer = post(&server, "/v1/translate", &body).json();
    let options = heedful::decode::SearchOptions { n_best: 2, ..search() };
    let mut texts = Vec::new();
    for (number, sentence) in ["一辆汽车。", "一套房子"].into_iter().enumerate() {
        let translation = translator.translate([sentence], &options).expect("a good text").remove(0);
        let expected = Explanation::new(&translator, sentence, &translation, WeightForm::Rows, &options);
        let found = &answer["results"][0]["sentences"][number];
        let explained: Explanation =
            serde_json::from_value(found["explanation"].clone()).expect("an explanation");
        assert_eq!(explained, expected.expect("a good sentence"));
        assert_eq!(explained.outputs.len(), 2);
        assert!(matches!(explained.outputs[0].attention[0].heads, HeadWeights::Rows(_)));
        texts.push(format!("{}{}", found["before"].as_str().expect("text"), explained.outputs[0].text));
    }
    assert_eq!(answer["results"][0]["text"], texts.concat());
    assert_eq!(answer["results"][0]["sentences"][1]["before"], " ");
    assert_eq!((&answer["model"], &answer["results"][0]["detected"]), (&json!("zh-en"), &Value::Null));
    assert!(answer["timings"]["total_ms"].is_number());

    let packed = post(&server, "/v1/translate", &json!({"text": "一辆", "attention": "packed"})).json();
    assert!(
        packed["results"][0]["sentences"][0]["explanation"]["outputs"][0]["attention"][0]["heads"][0]
            .is_string()
    );
}

#[test]
fn a_translation_starts_with_its_prefix() {
    let (server, _folder) = serving();
    let texts = json!(["一辆汽车。 一套房子", "一本书", " "]);
    let free = post(&server, "/v1/translate", &json!({"text": texts})).json();
    let body = json!({"text": texts, "prefix": ["the red", "", "a"]});
    let forced = post(&server, "/v1/translate", &body).json();
    let text = |answer: &Value, i: usize| answer["results"][i]["text"].as_str().expect("text").to_owned();
    assert!(text(&forced, 0).starts_with("the red"), "{forced}");
    assert_eq!(forced["results"][0]["sentences"][1], free["results"][0]["sentences"][1]);
    assert_eq!((text(&forced, 1), text(&forced, 2)), (text(&free, 1), text(&free, 2)));
    let few = post(&server, "/v1/translate", &json!({"text": texts, "prefix": "the"}));
    assert_eq!(few.status, 400);
    assert_eq!(
        few.json()["error"],
        "`prefix`: there are 1 for 3 texts: send one for each text, \"\" for none"
    );
}

#[test]
fn heads_are_switched_off_for_one_request_and_no_other() {
    let (server, folder) = serving();
    let translator = Translator::open(folder.path().join("zh-en")).expect("a model");
    let heads = translator.model().heads();
    let names: Vec<String> = heads.iter().map(ToString::to_string).collect();
    let whole = post(&server, "/v1/translate", &json!({"text": "一辆汽车", "attention": "rows"})).json();
    for removed in [&heads[..1], &heads[..], &heads[heads.len() - 1..]] {
        let options = heedful::decode::SearchOptions { without_heads: removed.to_vec(), ..search() };
        let translation = translator.translate(["一辆汽车"], &options).expect("a good text").remove(0);
        let expected = Explanation::new(&translator, "一辆汽车", &translation, WeightForm::Rows, &options);
        let named = &names
            [names.iter().position(|name| *name == removed[0].to_string()).expect("it is there")..]
            [..removed.len()];
        // Duplicates and order do not matter.
        let named: Vec<&String> = named.iter().rev().chain(named).collect();
        let body = json!({"text": "一辆汽车", "attention": "rows", "without_heads": named});
        let found = post(&server, "/v1/translate", &body).json();
        let explanation = found["results"][0]["sentences"][0]["explanation"].clone();
        let explained: Explanation = serde_json::from_value(explanation).expect("an explanation");
        assert_eq!(explained, expected.expect("a good sentence"));
        assert_ne!(
            found["results"][0]["sentences"][0]["explanation"]["outputs"][0]["score"],
            whole["results"][0]["sentences"][0]["explanation"]["outputs"][0]["score"]
        );
    }
    let again = post(&server, "/v1/translate", &json!({"text": "一辆汽车", "attention": "rows"})).json();
    assert_eq!(again["results"], whole["results"]);
    for (bad, why) in
        [("cross.9.9", "the model has no head decoder.9.cross.9"), ("head", "“head” names no head")]
    {
        let reply = post(&server, "/v1/translate", &json!({"text": "一", "without_heads": bad}));
        assert_eq!(reply.status, 400);
        let error = reply.json()["error"].as_str().expect("a sentence").to_owned();
        assert!(error.starts_with(&format!("`without_heads`: {why}")), "{error}");
    }
}

#[test]
fn a_stream_sends_partial_texts_and_ends_with_the_full_response() {
    let (server, _folder) = serving();
    let body = json!({"text": ["一辆汽车。一套房子。", "一本书"], "stream": true});
    let reply = post(&server, "/v1/translate", &body);
    assert!(reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream")));
    let events = reply.events();
    let (last, whole) = events.last().expect("events");
    assert_eq!(last, "done");
    let of_kind = |name: &str| events.iter().filter(|(kind, _)| kind == name).count();
    assert_eq!((of_kind("sentence"), of_kind("done")), (3, 1));
    assert!(of_kind("partial") > 0);
    let partial = &events.iter().find(|(kind, _)| kind == "partial").expect("a partial text").1;
    assert!(partial["result"].is_u64() && partial["sentence"].is_u64() && partial["text"].is_string());
    // Equal to the response without a stream, except for the timings.
    let at_once = post(&server, "/v1/translate", &json!({"text": ["一辆汽车。一套房子。", "一本书"]})).json();
    assert_eq!(whole["results"], at_once["results"]);
}

#[test]
fn several_models_are_served_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("one"), 1);
    translator(&at("two"), 2);
    classifier(&at("labels"));
    language(&at("writer"));
    let models = vec![
        ModelSpec::named("zh-en", at("one")),
        ModelSpec::named("en-zh", at("two")),
        ModelSpec::named("mood", at("labels")),
        ModelSpec::named("writer", at("writer")),
    ];
    let server = Server::start(options(models)).expect("a server");
    let list = get(&server, "/v1/models").json();
    let tasks: Vec<&str> =
        list.as_array().expect("a list").iter().filter_map(|model| model["task"].as_str()).collect();
    assert_eq!(tasks, ["translate", "translate", "classify", "generate"]);
    assert_eq!((&list[1]["source"], &list[1]["family"]), (&json!("en"), &json!("transformer")));
    assert!(list[0]["parameters"].as_u64().is_some_and(|count| count > 1000));

    let text = |body: Value| post(&server, "/v1/translate", &body).json()["results"][0]["text"].clone();
    let one = text(json!({"text": "一辆", "model": "zh-en"}));
    let two = text(json!({"text": "一辆", "model": "en-zh"}));
    assert_ne!(one, two);
    assert_eq!(text(json!({"text": "一辆", "source": "en", "target": "zh"})), two);
    assert_eq!(text(json!({"text": "一辆"})), one);

    let labels = post(&server, "/v1/classify", &json!({"text": ["good", " ", "bad bad"]})).json();
    assert_eq!((&labels["model"], &labels["results"][1]), (&json!("mood"), &Value::Null));
    let sum: f64 =
        ["bad", "good"].iter().filter_map(|l| labels["results"][0]["probabilities"][l].as_f64()).sum();
    assert!(
        (sum - 1.0).abs() < 1e-3 && labels["results"][2]["words"].as_array().is_some_and(|w| w.len() == 2)
    );

    let prompt = json!({"prompt": "a car", "tokens": 5, "seed": 3, "n_best": 2});
    let response = post(&server, "/v1/generate", &prompt).json();
    assert!(response["results"].as_array().is_some_and(|results| results.len() == 2), "{response}");
    assert!(
        response["results"][0]["text"].as_str().is_some_and(|text| text.starts_with("a car")),
        "{response}"
    );
    assert_eq!(post(&server, "/v1/generate", &prompt).json()["results"], response["results"]);
    let body = json!({"prompt": "a car", "tokens": 5, "beam": 1, "stream": true});
    let events = post(&server, "/v1/generate", &body).events();
    assert_eq!(events.last().expect("an end").0, "done");

    let wrong = post(&server, "/v1/translate", &json!({"text": "a", "model": "mood"}));
    assert!(wrong.status == 400 && wrong.error().contains("is a classifier"), "{}", wrong.body);
    let missing = post(&server, "/v1/classify", &json!({"text": "a", "model": "x"}));
    assert_eq!(missing.status, 404);
    for (body, part) in [
        (json!({"text": "a", "beams": 3}), "no field `beams`"),
        (json!({"text": "a", "beam": 2, "n_best": 5}), "a beam of at least 5"),
        (json!({"text": "a", "attention": "all"}), "none, rows, packed"),
        (json!({"text": "a", "model": "zh-en", "source": "fr"}), "from zh to en"),
    ] {
        let reply = post(&server, "/v1/translate", &body);
        assert!(reply.status == 400 && reply.error().contains(part), "{}", reply.body);
    }
}

/// Checks that tokens and their alternatives are consistent within the response.
fn check_alternatives(tokens: &Value, count: usize) {
    for token in tokens.as_array().expect("tokens") {
        let alternatives = token["alternatives"].as_array().unwrap_or_else(|| panic!("{token}"));
        let probabilities: Vec<f64> =
            alternatives.iter().filter_map(|other| other["log_probability"].as_f64()).collect();
        assert_eq!(probabilities.len(), count, "{token}");
        assert!(probabilities.is_sorted_by(|a, b| a >= b), "best first: {token}");
        assert!(probabilities.iter().map(|log| log.exp()).sum::<f64>() < 1.0 + 1e-6, "{token}");
        let own = alternatives.iter().find(|other| other["piece"] == token["piece"]);
        if let Some(own) = own {
            assert_eq!(own["log_probability"], token["log_probability"], "{token}");
        }
    }
}

#[test]
fn every_token_has_alternatives_and_a_translation_can_continue_from_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("one"), 1);
    language(&at("writer"));
    let named = |name: &str, folder: &str| ModelSpec::named(name, at(folder));
    let server =
        Server::start(options(vec![named("zh-en", "one"), named("writer", "writer")])).expect("a server");
    let plain = post(&server, "/v1/translate", &json!({"text": "一辆汽车"})).json();
    let asked = post(&server, "/v1/translate", &json!({"text": "一辆汽车", "alternatives": 3})).json();
    let output = |reply: &Value| reply["results"][0]["sentences"][0]["explanation"]["outputs"][0].clone();
    check_alternatives(&output(&asked)["tokens"], 3);
    assert_eq!(output(&asked)["text"], output(&plain)["text"]);
    assert_eq!(output(&asked)["score"], output(&plain)["score"], "nothing else changes");
    assert!(output(&plain)["tokens"][0].get("alternatives").is_none());

    let request = json!({"prompt": "a car", "tokens": 4, "temperature": 0, "alternatives": 2});
    let response = post(&server, "/v1/generate", &request).json();
    let result = &response["results"][0];
    check_alternatives(&result["pieces"], 2);
    let count = |tokens: &Value| tokens.as_array().map(Vec::len);
    assert_eq!(count(&result["pieces"]).map(|count| count as u64), result["tokens"].as_u64());
    // Greedy search takes the most probable token each time.
    for token in result["pieces"].as_array().expect("tokens") {
        assert_eq!(token["piece"], token["alternatives"][0]["piece"]);
    }
}

#[test]
fn only_runs_are_shown_while_they_train() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = folder.path().join("runs/first");
    fs::create_dir_all(&run).expect("a folder");
    fs::create_dir_all(folder.path().join("runs/no run")).expect("a folder");
    fs::write(folder.path().join("secret.txt"), "secret").expect("room");
    fs::write(
        run.join("metrics.jsonl"),
        "{\"step\":1,\"loss\":2.5}\n{\"step\":5,\"loss\":2.0}\n{\"step\":9,\"lo",
    )
    .expect("room");
    let runs = Some(folder.path().join("runs"));
    let server =
        Server::start(heedful_server::ServerOptions { runs, ..options(Vec::new()) }).expect("a server");
    assert_eq!(get(&server, "/v1/runs").json(), json!(["first"]));
    let records = |path: &str| get(&server, path).json();
    assert_eq!(records("/v1/runs/first/metrics").as_array().map(Vec::len), Some(2));
    assert_eq!(records("/v1/runs/first/metrics?after=1"), json!([{"step": 5, "loss": 2.0}]));
    assert_eq!(get(&server, "/v1/runs/first/report").status, 404);
    fs::write(run.join("report.html"), "<p>curves</p>").expect("room");
    let report = get(&server, "/v1/runs/first/report");
    assert_eq!((report.status, report.body.as_str()), (200, "<p>curves</p>"));
    assert!(report.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    assert_eq!(
        records("/v1/runs/first/plan"),
        json!({"steps": null, "seconds": null, "heads": false, "ending": null})
    );
    assert!(get(&server, "/v1/runs/first/heads").error().contains("heedful explain heads"));
    fs::write(run.join("heads.html"), "<p>heads</p>").expect("room");
    fs::write(run.join("recipe.toml"), "[training]\nsteps = 70\ntime = \"90s\"\n").expect("room");
    let ended = "{\"step\":9,\"seconds\":80.5,\"ending\":\"the time limit is reached\"}\n";
    fs::write(run.join("metrics.jsonl"), format!("{{\"step\":9,\"seconds\":80.5,\"loss\":2.5}}\n{ended}"))
        .expect("room");
    let plan = json!({"steps": 70, "seconds": 90, "heads": true, "ending": "the time limit is reached"});
    assert_eq!(records("/v1/runs/first/plan"), plan);
    assert_eq!(get(&server, "/v1/runs/first/heads").body, "<p>heads</p>");
    for path in ["/v1/runs/../metrics", "/v1/runs/..%2f..%2f/metrics", "/v1/runs/no%20run/metrics"] {
        assert_eq!(get(&server, path).status, 404, "{path}");
    }
}
