//! `heedful import` as a process, and other commands with an imported model.

use std::fs;

use crate::support::{Bounded, Workplace, names, text};

/// A small model of another project: see the tests of the library.
fn original(name: &str) -> String {
    format!("{}/../heedful/tests/exchange/models/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn an_imported_translator_works_with_every_command() {
    let place = Workplace::empty();
    place.write("text", b"the small cat runs\na dog\n\nthe house is old\n");
    let run = place.run(&format!("import {} -o model", original("ctranslate2-int8")));
    let stderr = text(&run.stderr);
    assert!(run.status.success() && stderr.contains("Transformer of 2 + 2 layers, d 8"), "{stderr}");
    assert!(stderr.contains("try: heedful translate model"), "{stderr}");
    let translated = place.good("translate model text --max-length 8");
    assert_eq!(translated.lines().count(), 4, "{translated}");
    place.write("translated", translated.as_bytes());
    assert_eq!(place.good("score model --src text --tgt translated").lines().count(), 4);
    place.good("quantize model --to int8 -o small");
    assert!(place.read("small/ORIGIN.md") == place.read("model/ORIGIN.md"));
    assert_eq!(place.good("translate small text --max-length 8 --compute int8").lines().count(), 4);
    place.good("explain model house -o picture.svg");
    assert!(text(&place.read("picture.svg")).contains("&lt;/s&gt;"));
    let known = names(&place.path("model"));
    let files = ["ORIGIN.md", "config.json", "model.safetensors", "sentencepiece.model", "tokenizer.json"];
    assert_eq!(known, files);
}

#[test]
fn imported_language_models_and_masked_models_work_too() {
    let place = Workplace::empty();
    place.good(&format!("import {} -o writer", original("gpt2")));
    place.good("generate writer --prompt the --tokens 5");
    place.good(&format!("import {} -o filler", original("bert")));
    let filled = place.command("fill filler").arg("the <mask> cat").finish();
    assert!(filled.status.success(), "{}", text(&filled.stderr));
}

#[test]
fn options_that_are_not_imported_are_reported() {
    let place = Workplace::empty();
    fs::create_dir(place.path("original")).expect("a folder");
    for file in names(original("marian-swish").as_ref()) {
        place.write(
            &format!("original/{file}"),
            &fs::read(format!("{}/{file}", original("marian-swish"))).expect("a file"),
        );
    }
    let imported = |settings: &str, to: &str| {
        place.write("original/generation_config.json", settings.as_bytes());
        let run = place.run(&format!("import original -o {to}"));
        assert!(run.status.success(), "{}", text(&run.stderr));
        text(&run.stderr)
    };
    let stderr = imported(r#"{"num_beams": 6, "bad_words_ids": [[26]]}"#, "model");
    assert!(
        stderr.contains("generation_config.json sets `num_beams`: 6, which heedful does not import"),
        "{stderr}"
    );
    assert!(text(&place.read("model/config.json")).contains("suppressed"));
    let stderr = imported(r#"{"transformers_version": "4.40.0", "num_beams": 1}"#, "other");
    assert!(!stderr.contains("does not import"), "{stderr}");
}

#[test]
fn a_failed_import_writes_nothing_and_overwrites_no_model() {
    let place = Workplace::empty();
    fs::create_dir(place.path("damaged")).expect("a folder");
    place.write("damaged/model.bin", b"");
    for (path, complaint) in
        [("nothing", "nothing"), ("damaged", "damaged"), (".", "kind that heedful imports")]
    {
        let error = place.bad(&format!("import {path} -o model"));
        assert!(error.contains(complaint), "{error}");
        assert!(!place.path("model").exists(), "{path}");
    }
    place.good(&format!("import {} -o model", original("gpt2")));
    let before = place.read("model/model.safetensors");
    let error = place.bad(&format!("import {} -o model", original("bert")));
    assert!(error.contains("--force"), "{error}");
    assert!(place.read("model/model.safetensors") == before);
    place.good(&format!("import {} -o model --force", original("bert")));
    fs::create_dir(place.path("notes")).expect("a folder");
    place.write("notes/letter.txt", b"mine");
    for line in
        [format!("import {} -o notes", original("bert")), "export model --to ctranslate2 -o notes".to_owned()]
    {
        let error = place.bad(&line);
        assert!(error.contains("notes is not empty (letter.txt)") && error.contains("--force"), "{error}");
        assert_eq!(names(&place.path("notes")), ["letter.txt"]);
    }
    place.good(&format!("import {} -o notes --force", original("bert")));
    assert!(place.read("notes/letter.txt") == b"mine");
    fs::create_dir(place.path("empty")).expect("a folder");
    place.good("export model --to ctranslate2 -o empty");
    let origin = fs::read_to_string(place.path("model/ORIGIN.md")).expect("a file");
    assert!(origin.contains("A BERT model"), "{origin}");
}
