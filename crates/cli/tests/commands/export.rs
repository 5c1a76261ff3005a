//! `heedful export` as a process.

use std::fs;

use crate::support::{Workplace, names, text};

#[test]
fn an_exported_run_is_imported_bit_for_bit() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 4"));
    let before = place.good("translate run valid.zh --scores");
    for (format, kind, files) in [
        (
            "ctranslate2",
            "a translator of CTranslate2",
            &["config.json", "model.bin", "shared_vocabulary.json", "tokenizer.json", "translate.py"][..],
        ),
        (
            "huggingface",
            "a MarianMT model of Hugging Face",
            &[
                "README.md",
                "config.json",
                "generation_config.json",
                "model.safetensors",
                "tokenizer.json",
                "tokenizer_config.json",
            ],
        ),
    ] {
        let run = place.run(&format!("export run --to {format} -o {format}"));
        let stderr = text(&run.stderr);
        assert!(run.status.success() && stderr.contains(kind), "{stderr}");
        assert_eq!(names(&place.path(format)), files);
        place.good(&format!("import {format} -o again-{format}"));
        assert_eq!(place.good(&format!("translate again-{format} valid.zh --scores")), before, "{format}");
    }
}

#[test]
fn quantized_models_are_exported_with_a_hint_to_quantize_again() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 2"));
    place.good("quantize run --to int8 -o small");
    let run = place.run("export small --to ctranslate2 -o out");
    let stderr = text(&run.stderr);
    assert!(run.status.success() && stderr.contains("compute_type=\"int8\""), "{stderr}");
}

#[test]
fn a_failed_export_writes_nothing_and_overwrites_no_model() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 2"));
    place.good(&Workplace::training("learned", "--steps 2 --positions learned --max-positions 200"));
    place.good(&Workplace::training("recurrent", "--steps 2 --family recurrent"));
    for (words, complaint) in [
        ("export learned --to huggingface -o out", "learned positions (`positions`)"),
        ("export recurrent --to ctranslate2 -o out", "a translator of the recurrent family"),
        ("export nowhere --to ctranslate2 -o out", "nowhere"),
        ("export run --to onnx -o out", "onnx"),
        ("export run -o out", "--to"),
    ] {
        let error = place.bad(words);
        assert!(error.contains(complaint), "{words}: {error}");
        assert!(!place.path("out").exists(), "{words}");
    }
    let before = place.read("run/model.safetensors");
    for words in ["export run --to huggingface -o run", "export learned --to ctranslate2 -o run"] {
        let error = place.bad(words);
        assert!(error.contains("--force"), "{words}: {error}");
    }
    assert!(place.read("run/model.safetensors") == before);
    place.good("export learned --to ctranslate2 -o out");
    fs::remove_dir_all(place.path("out")).expect("a folder");
}
