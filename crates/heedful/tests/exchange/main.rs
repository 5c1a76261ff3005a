//! Imported models of other projects match the originals. `generate.py` writes the models and their outputs.
//! `export` has the opposite direction.

mod export;
mod settings;

use std::path::{Path, PathBuf};

use heedful::OpenOptions;
use heedful::data::batch::{Batch, BatchLayout};
use heedful::decode::SearchOptions;
use heedful::exchange::import::{self, Imported, ORIGIN};
use heedful::layers::Pass;
use heedful::models::transformer::{StackMask, TextStack, Transformer, TransformerConfig};
use heedful::models::{EncoderDecoderConfig, Label, Model};
use heedful::tasks::classify::{Classifier, EncoderClassifier};
use heedful::tasks::language::{Generator, LanguageModel};
use heedful::tasks::masked::{Filler, MaskedModel};
use heedful::tasks::translate::Translator;
use heedful::tasks::{ModelConfig, Task};
use heedful::tensor::{DType, Params, Precision, Ragged};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchange/models").join(name)
}

fn imported(name: &str) -> (Imported, Value) {
    let path = folder(name);
    let imported = import::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let expected = std::fs::read(path.join("expected.json")).expect("a file next to the model");
    (imported, serde_json::from_slice(&expected).expect("JSON"))
}

fn ids(expected: &Value, key: &str) -> Vec<u32> {
    serde_json::from_value(expected[key].clone()).expect("token ids")
}

fn rows(expected: &Value, key: &str) -> Vec<Vec<f64>> {
    serde_json::from_value(expected[key].clone()).expect("rows of numbers")
}

fn close(found: &[f32], expected: &[Vec<f64>], name: &str) {
    let expected: Vec<f64> = expected.concat();
    assert_eq!(found.len(), expected.len(), "{name}");
    let far = found.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(far < 1e-4, "{name}: {far:e} off");
}

fn transformer(imported: &Imported) -> Transformer {
    let ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) = &imported.config else {
        panic!("not a translator: {:?}", imported.config)
    };
    let model = Transformer::new(config.clone(), 0).expect("it was checked");
    imported.weights().install(model.params()).expect("its own weights");
    model
}

/// Logits after each token of a target.
fn logits(model: &Transformer, source: Vec<u32>, target: Vec<u32>) -> Vec<f32> {
    let TransformerConfig { special, .. } = model.config();
    let batch = Batch::new(&[(source, target)], special.bos, special.eos).expect("a good batch");
    model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec()
}

#[test]
fn marian_mt_matches_the_logits_of_transformers() {
    for name in ["marian-swish", "marian-relu-bf16", "marian-gelu-untied"] {
        let (imported, expected) = imported(name);
        let model = transformer(&imported);
        let special = model.special_tokens();
        let text = expected["text"].as_str().expect("a text");
        let source = special.source(imported.tokenizers.source.encode(text));
        assert_eq!(source, ids(&expected, "source"), "{name}");
        close(&logits(&model, source, ids(&expected, "target")), &rows(&expected, "logits"), name);
    }
}

#[test]
fn ctranslate2_gives_the_same_log_probabilities() {
    // CTranslate2 also rounds the sinusoidal positions to float16; heedful computes them in f32.
    for (name, tolerance) in
        [("ctranslate2", 1e-4), ("ctranslate2-float16", 2e-3), ("ctranslate2-int8", 1e-4)]
    {
        let (imported, expected) = imported(name);
        let model = transformer(&imported);
        let text = expected["text"].as_str().expect("a text");
        let source = model.special_tokens().source(imported.tokenizers.source.encode(text));
        let mut target = ids(&expected, "target");
        let found = logits(&model, source, target.clone());
        target.push(model.special_tokens().eos);
        let vocabulary = model.config().target_vocabulary;
        let log_probability = |(row, &token): (&[f32], &u32)| {
            let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            f64::from(row[token as usize]) - sum.ln()
        };
        let found: Vec<f64> = found.chunks_exact(vocabulary).zip(&target).map(log_probability).collect();
        let expected: Vec<f64> =
            serde_json::from_value(expected["log_probabilities"].clone()).expect("numbers");
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < tolerance, "{name}: {found} and {expected}");
        }
    }
}

#[test]
fn bert_matches_the_logits_and_states_of_transformers() {
    let (imported, expected) = imported("bert");
    let ModelConfig::Masked(config) = &imported.config else { panic!("not a masked model") };
    let model = MaskedModel::new(config.clone(), 0).expect("it was checked");
    imported.weights().install(model.params()).expect("its own weights");
    let text = imported.tokenizers.source.encode(expected["text"].as_str().expect("a text"));
    let read = ids(&expected, "ids");
    assert_eq!(config.stack.special.surrounded(&text), read);
    let logits = rows(&expected, "logits");
    let sequences = Ragged::from_lengths([text.len()]);
    let every: Vec<usize> = (0..text.len()).collect();
    let found = model.token_scores(&text, &sequences, &every, &mut Pass::inference(DType::F32)).to_vec();
    close(&found, &logits[1..logits.len() - 1], "logits");
}

#[test]
fn bert_without_a_head_matches_the_states_of_transformers_and_is_noted_as_untrained() {
    let (imported, expected) = imported("bert-without-head");
    let ModelConfig::Masked(config) = &imported.config else { panic!("not a masked model") };
    let params = Params::new(0);
    let stack = TextStack::new(&params, StackMask::Bidirectional, config.stack.clone()).expect("a stack");
    for param in params.iter() {
        assert!(imported.weights().get(param.name()).is_some(), "{}", param.name());
    }
    let whole = MaskedModel::new(config.clone(), 0).expect("it was checked");
    imported.weights().install(whole.params()).expect("its own weights");
    let mut flat = vec![0.0; params.flat_len()];
    for param in params.iter() {
        flat[param.range()].copy_from_slice(imported.weights().get(param.name()).expect("it is there"));
    }
    params.set(&flat);
    let read = ids(&expected, "ids");
    let sequences = Ragged::from_lengths([read.len()]);
    let states = stack.forward(&read, &sequences, &mut Pass::inference(DType::F32)).to_vec();
    close(&states, &rows(&expected, "states"), "states");
    assert!(imported.origin.contains("untrained"), "{}", imported.origin);
}

#[test]
fn a_bert_classifier_matches_the_logits_of_transformers_and_keeps_its_label_names() {
    let (imported, expected) = imported("bert-classifier");
    let ModelConfig::Classify(config) = &imported.config else { panic!("not a classifier") };
    let model = EncoderClassifier::new(config.clone(), 0).expect("it was checked");
    imported.weights().install(model.params()).expect("its own weights");
    let text = imported.tokenizers.source.encode(expected["text"].as_str().expect("a text"));
    assert_eq!(model.special_tokens().surrounded(&text), ids(&expected, "ids"));
    let sequences = Ragged::from_lengths([text.len()]);
    let found = model.label_scores(&text, &sequences, &mut Pass::inference(DType::F32)).to_vec();
    let labels = imported.labels.as_ref().expect("a classifier has labels");
    assert_eq!(labels.names(), ["business", "sport", "world"]);
    for (name, score) in labels.names().iter().zip(&found) {
        let expected = expected["logits"][name].as_f64().expect("a number");
        assert!((f64::from(*score) - expected).abs() < 1e-4, "{name}: {score} and {expected}");
    }
    // Its folder opens as a classifier.
    let root = tempfile::tempdir().expect("a folder");
    imported.save(root.path()).expect("room on the disk");
    let classifier = Classifier::open_with(root.path(), &OpenOptions::new().compute(Precision::F32));
    let classifier = classifier.expect("a classifier");
    let classified = classifier.classify(["the old cat eats on a mat"]).expect("a short text");
    assert_eq!(classifier.labels().name(classified[0].label()), "business");
}

#[test]
fn gpt2_matches_the_logits_of_transformers() {
    for name in ["gpt2", "gpt2-relu"] {
        let (imported, expected) = imported(name);
        let ModelConfig::Language(config) = &imported.config else { panic!("not a language model") };
        let model = LanguageModel::new(config.clone(), 0).expect("it was checked");
        imported.weights().install(model.params()).expect("its own weights");
        let text = imported.tokenizers.source.encode(expected["text"].as_str().expect("a text"));
        assert_eq!(text, ids(&expected, "ids"), "{name}");
        let special = config.special_tokens();
        let examples = [(Vec::new(), text)];
        let batch =
            Batch::of(BatchLayout::Lines, &examples, [special.bos, special.eos]).expect("a good batch");
        let found = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
        close(&found, &rows(&expected, "logits"), name);
    }
}

#[test]
fn an_imported_folder_opens_like_any_other_and_names_its_origin() {
    let root = tempfile::tempdir().expect("a folder");
    for (name, task) in [
        ("marian-swish", Task::Translate),
        ("ctranslate2-int8", Task::Translate),
        ("bert", Task::Masked),
        ("gpt2", Task::Language),
    ] {
        let to = root.path().join(name);
        import::read(folder(name)).expect("a good model").save(&to).expect("room on the disk");
        let origin = std::fs::read_to_string(to.join(ORIGIN)).expect("a file");
        assert!(origin.contains(&format!("Imported from `{name}`")), "{origin}");
        match task {
            Task::Translate => {
                let translator = Translator::open(&to).expect("a translator");
                assert!(
                    !translator
                        .translate(
                            ["the small cat"],
                            &SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() }
                        )
                        .expect("a translation")
                        .is_empty()
                );
            }
            Task::Masked => drop(Filler::open(&to).expect("a masked model")),
            _ => drop(Generator::open(&to).expect("a language model")),
        }
    }
}

/// A copy of a model, with one file changed.
fn changed(name: &str, file: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> heedful::Result<Imported> {
    let root = tempfile::tempdir().expect("a folder");
    for entry in folder(name).read_dir().expect("a folder") {
        let entry = entry.expect("a file");
        std::fs::copy(entry.path(), root.path().join(entry.file_name())).expect("room on the disk");
    }
    let path = root.path().join(file);
    let bytes = std::fs::read(&path).expect("a file of the model");
    std::fs::write(&path, change(bytes)).expect("room on the disk");
    import::read(root.path())
}

#[test]
fn errors_name_what_heedful_does_not_support() {
    let replaced = |from: &'static str, to: &'static str| {
        move |bytes: Vec<u8>| String::from_utf8(bytes).expect("JSON").replacen(from, to, 1).into_bytes()
    };
    for (name, file, from, to, complaint) in [
        ("marian-swish", "config.json", "\"swish\"", "\"mish\"", "the activation function `mish`"),
        (
            "marian-swish",
            "config.json",
            "\"encoder_ffn_dim\": 12",
            "\"encoder_ffn_dim\": 13",
            "ffn_dim 13 in the encoder",
        ),
        (
            "marian-swish",
            "config.json",
            "\"encoder_layers\": 2",
            "\"encoder_layers\": 1",
            "variable `model.encoder.layers.1",
        ),
        ("marian-swish", "config.json", "\"marian\"", "\"t5\"", "a model of type `t5`"),
        ("marian-swish", "config.json", "\"d_model\": 8", "\"d_model\": 10", "instead of"),
        ("bert-classifier", "config.json", "\"2\": \"world\"", "\"3\": \"world\"", "each of 3 labels"),
        ("bert-classifier", "config.json", "\"2\": \"world\"", "\"2\": \"sport\"", "duplicate name"),
        (
            "bert-classifier",
            "config.json",
            "\"hidden_act\"",
            "\"problem_type\": \"regression\", \"hidden_act\"",
            "`problem_type`: `regression`",
        ),
        ("gpt2", "config.json", "\"n_layer\": 2", "\"n_layer\": 3", "h.2."),
        ("bert", "config.json", "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"mish\"", "`mish`"),
        ("bert", "config.json", "\"intermediate_size\": 12", "\"intermediate_size\": 9000000", "instead of"),
        ("gpt2", "config.json", "\"n_embd\": 8", "\"n_embd\": 900000000000", "more than 10000000"),
        (
            "ctranslate2",
            "config.json",
            "\"eos_token\": \"</s>\"",
            "\"eos_token\": \"<end>\"",
            "token `<end>`",
        ),
    ] {
        match changed(name, file, replaced(from, to)) {
            Ok(_) => panic!("{name} with {to} was imported"),
            Err(error) => assert!(error.to_string().contains(complaint), "{name}: {error}"),
        }
    }
    let cut = changed("ctranslate2", "model.bin", |bytes| bytes[..bytes.len() / 2].to_vec());
    assert!(cut.err().expect("half a file").to_string().contains("model.bin is damaged at"));
}
