//! The files next to the weights: ids, `generation_config.json` and vocabularies are followed or rejected by
//! name; nothing is guessed.

use std::fs;
use std::path::Path;

use heedful::data::SpecialTokens;
use heedful::data::batch::{Batch, BatchLayout};
use heedful::exchange::export::{self, ExportFormat};
use heedful::exchange::import::{self, Imported};
use heedful::layers::Pass;
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::tasks::ModelConfig;
use heedful::tasks::language::LanguageModel;
use heedful::tensor::DType;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{close, folder, ids, rows};

/// A copy of a model.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn of(name: &str) -> Copy {
        let copy = Copy { folder: tempfile::tempdir().expect("a folder") };
        for entry in folder(name).read_dir().expect("a folder") {
            let entry = entry.expect("a file");
            fs::copy(entry.path(), copy.folder.path().join(entry.file_name())).expect("room on the disk");
        }
        copy
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn json(&self, file: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path().join(file)).expect("a file")).expect("JSON")
    }

    fn write(&self, file: &str, value: &Value) {
        fs::write(self.path().join(file), value.to_string()).expect("room on the disk");
    }

    /// Sets a key; `None` removes it.
    fn set(&self, file: &str, key: &str, value: Option<Value>) {
        let mut json = self.json(file);
        let object = json.as_object_mut().expect("an object");
        match value {
            Some(value) => drop(object.insert(key.to_owned(), value)),
            None => drop(object.remove(key)),
        }
        self.write(file, &json);
    }

    fn refused(&self, case: &str) -> String {
        match import::read(self.path()) {
            Ok(_) => panic!("{case} was imported"),
            Err(error) => error.to_string(),
        }
    }

    fn read(&self, case: &str) -> Imported {
        import::read(self.path()).unwrap_or_else(|error| panic!("{case}: {error}"))
    }
}

fn special(imported: &Imported) -> SpecialTokens {
    match &imported.config {
        ModelConfig::Language(config) => config.special_tokens(),
        ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) => config.special.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_ids_of_special_tokens_are_followed_or_rejected_and_never_guessed() {
    let read = |model: &str, key: &str, value: Option<Value>| {
        let copy = Copy::of(model);
        copy.set("config.json", key, value.clone());
        (copy, format!("{model} with `{key}`: {value:?}"))
    };
    let bad = |model: &str, key: &str, value: Option<Value>, complaint: &str| {
        let (copy, case) = read(model, key, value);
        let error = copy.refused(&case);
        assert!(error.contains(key) && error.contains(complaint), "{case}: {error}");
    };
    for value in [json!(0), json!([0]), json!([0, 0])] {
        let (copy, case) = read("gpt2", "eos_token_id", Some(value));
        let special = special(&copy.read(&case));
        assert_eq!([special.eos, special.pad, special.bos], [0; 3], "{case}");
    }
    for key in ["eos_token_id", "bos_token_id"] {
        for (value, complaint) in [
            (json!([0, 5]), "one token"),
            (json!("0"), "\"0\" (not the id of a token)"),
            (json!(-1), "not the id"),
            (json!(0.5), "not the id"),
            (json!(true), "not the id"),
            (json!(270), "a vocabulary of 270 tokens"),
            (Value::Null, "(no token "),
            (json!([]), "(no token "),
        ] {
            bad("gpt2", key, Some(value), complaint);
        }
        bad("gpt2", key, None, "50256, the default of GPT2Config");
    }
    // MarianConfig's default end token is 0, which this vocabulary contains; its default start token, 58100,
    // is missing.
    let (copy, case) = read("marian-swish", "eos_token_id", None);
    assert_eq!(special(&copy.read(&case)).eos, 0);
    bad("marian-swish", "decoder_start_token_id", None, "58100, the default of MarianConfig");
    bad("marian-swish", "decoder_start_token_id", Some(Value::Null), "no token begins a target");
    bad("marian-swish", "eos_token_id", Some(json!([0, 3])), "one token");
    bad("marian-swish", "forced_eos_token_id", Some(json!(5)), "`forced_eos_token_id`: 5");
    // Other settings of the wrong type.
    bad("gpt2", "n_inner", Some(json!("12")), "n_inner");
    bad("gpt2", "layer_norm_epsilon", Some(json!("1e-5")), "not a number");
    bad("gpt2", "activation_function", Some(json!(3)), "not a text");
    bad("marian-swish", "scale_embedding", Some(json!("no")), "not true or false");
    bad("ctranslate2", "eos_token", Some(json!(0)), "`eos_token`: 0");
}

#[test]
fn generation_settings_are_followed_rejected_or_noted() {
    let file = "generation_config.json";
    let with = |model: &str, settings: Value| {
        let copy = Copy::of(model);
        copy.write(file, &settings);
        copy
    };
    // The settings of an OPUS-MT model.
    let usual = json!({"_from_model_config": true, "bad_words_ids": [[26]], "bos_token_id": 0, "decoder_start_token_id": 26,
        "eos_token_id": 0, "forced_eos_token_id": 0, "max_length": 512, "num_beams": 4, "pad_token_id": 26,
        "renormalize_logits": true, "transformers_version": "4.32.0"});
    let imported = with("marian-swish", usual).read("OPUS-MT");
    assert_eq!(special(&imported).suppressed, [26]);
    let note = imported.notes.join("\n");
    assert!(note.contains("`num_beams`: 4, `renormalize_logits`: true, `max_length`: 512"), "{note}");
    assert!(note.contains(file) && note.contains("heedful translate --help"), "{note}");

    // They take precedence over those of config.json.
    let chosen = json!({"eos_token_id": [5], "bos_token_id": 7, "suppress_tokens": [9, 3], "bad_words_ids": [[3], [8]]});
    let imported = with("gpt2", chosen).read("other ids");
    let found = special(&imported);
    assert_eq!((found.eos, found.bos, &found.suppressed[..]), (5, 7, &[3, 8, 9][..]));
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let start = with("marian-swish", json!({"decoder_start_token_id": 4})).read("another start");
    assert_eq!(special(&start).bos, 4);

    // Settings that are switched off change nothing.
    let off = json!({"forced_bos_token_id": null, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "num_beams": 1,
        "begin_suppress_tokens": [], "do_sample": false, "output_scores": true, "use_cache": true, "unheard_of": null});
    assert!(with("gpt2", off).read("switches").notes.is_empty());

    for (key, value) in [
        ("forced_bos_token_id", json!(0)),
        ("forced_bos_token_id", json!([1, 2])),
        ("begin_suppress_tokens", json!([3])),
        ("forced_decoder_ids", json!([[1, 5]])),
        ("repetition_penalty", json!(1.3)),
        ("encoder_no_repeat_ngram_size", json!(3)),
        ("exponential_decay_length_penalty", json!([5, 1.2])),
        ("stop_strings", json!("END")),
        ("sequence_bias", json!([[[5], 2.0]])),
        ("guidance_scale", json!(1.5)),
        ("bad_words_ids", json!([[3, 4]])),
        ("suppress_tokens", json!("3")),
        ("suppress_tokens", json!([3.5])),
        ("eos_token_id", json!([0, 3])),
        ("eos_token_id", json!("0")),
        ("eos_token_id", Value::Null),
        ("unheard_of", json!(true)),
    ] {
        for model in ["gpt2", "marian-swish"] {
            let case = format!("{model} with {key}: {value}");
            let error = with(model, json!({key: value.clone()})).refused(&case);
            assert!(error.contains(file) && error.contains(&format!("`{key}`")), "{case}: {error}");
            // Without the file, transformers uses the same keys of config.json.
            if key != "unheard_of" && key != "eos_token_id" {
                let copy = Copy::of(model);
                copy.set("config.json", key, Some(value.clone()));
                assert!(copy.refused(&case).contains(&format!("`{key}`")), "{case}");
            }
        }
    }
}

#[test]
fn a_model_with_padded_embedding_rows_matches_the_original_and_generates_only_tokens() {
    let gpt2 = Copy::of("gpt2");
    let mut tokenizer = gpt2.json("tokenizer.json");
    tokenizer["model"]["vocab"].as_object_mut().expect("tokens").retain(|_, id| id.as_u64() < Some(268));
    let merges = tokenizer["model"]["merges"].as_array_mut().expect("merges");
    merges.truncate(merges.len() - 2);
    gpt2.write("tokenizer.json", &tokenizer);
    let bert = Copy::of("bert");
    let mut tokenizer = bert.json("tokenizer.json");
    tokenizer["model"]["vocab"].as_object_mut().expect("tokens").retain(|_, id| id.as_u64() < Some(21));
    bert.write("tokenizer.json", &tokenizer);
    let marian = Copy::of("marian-swish");
    marian.set("vocab.json", "ma", None);

    let imported = gpt2.read("a padded GPT-2");
    assert_eq!(imported.tokenizers.target.size(), 270);
    assert_eq!(special(&imported).suppressed, [268, 269]);
    assert_eq!(imported.tokenizers.target.decode(&[268, 269]), "");
    let expected = gpt2.json("expected.json");
    let ModelConfig::Language(config) = &imported.config else { panic!("not a language model") };
    let model = LanguageModel::new(config.clone(), 0).expect("it was checked");
    imported.weights().install(model.params()).expect("its own weights");
    let text = imported.tokenizers.source.encode(expected["text"].as_str().expect("a text"));
    assert_eq!(text, ids(&expected, "ids"));
    let batch = Batch::of(BatchLayout::Lines, &[(Vec::new(), text)], [0, 0]).expect("a good batch");
    let found = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
    close(&found, &rows(&expected, "logits"), "all rows");

    assert_eq!(special(&marian.read("a padded Marian")).suppressed, [20]);
    let root = tempfile::tempdir().expect("a folder");
    for (copy, name) in [(&gpt2, "gpt2"), (&bert, "bert"), (&marian, "marian")] {
        let (model, to) = (root.path().join(name), root.path().join(format!("{name}-again")));
        let first = copy.read(name);
        first.save(&model).expect("room on the disk");
        let exported = export::prepare(&model, ExportFormat::HuggingFace);
        exported.unwrap_or_else(|error| panic!("{name}: {error}")).save(&to).expect("room on the disk");
        let again = import::read(&to).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.config, first.config, "{name}");
    }
    // In the opposite case, rows are missing.
    let short = Copy::of("gpt2");
    short.set("config.json", "vocab_size", Some(json!(269)));
    assert!(short.refused("a short GPT-2").contains("copy the model's own tokenizer.json"));
}

#[test]
fn an_unknown_type_of_model_is_named_before_missing_files() {
    let root = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(root.path().join(name), bytes).expect("room");
    write("pytorch_model.bin", b"");
    for (config, complaint) in [
        (r#"{"model_type": "t5"}"#, "a model of type `t5`"),
        ("{}", "no `model_type`"),
        (r#"{"model_type": 5}"#, "not a text"),
    ] {
        write("config.json", config.as_bytes());
        let error = import::read(root.path()).err().expect("no such model").to_string();
        assert!(error.contains(complaint) && !error.contains("python3"), "{error}");
    }
    // The CTranslate2 model has no SentencePiece model either.
    let copy = Copy::of("ctranslate2");
    fs::remove_file(copy.path().join("sentencepiece.model")).expect("a file");
    assert!(copy.refused("no pieces").contains("no SentencePiece model"));
    let path = copy.path().join("model.bin");
    let mut bytes = fs::read(&path).expect("a file");
    let at = bytes.windows(15).position(|word| word == b"TransformerSpec").expect("a specification");
    bytes[at..at + 15].copy_from_slice(b"WhisperishSpec_");
    fs::write(&path, bytes).expect("room on the disk");
    let error = copy.refused("a different specification");
    assert!(error.contains("a WhisperishSpec_") && error.contains("heedful import --help"), "{error}");
}

#[test]
fn a_model_with_source_pieces_only_is_exported_with_a_decoder_for_all_target_tokens() {
    // Targets have different tokens than the SentencePiece model, as in an Argos package.
    let copy = Copy::of("ctranslate2");
    let tokens = copy.json("shared_vocabulary.json");
    let other = |(id, token): (usize, &Value)| match token.as_str().expect("a token") {
        special @ ("</s>" | "<unk>") => special.to_owned(),
        _ => format!("▁w{id}"),
    };
    let targets: Vec<String> = tokens.as_array().expect("tokens").iter().enumerate().map(other).collect();
    copy.write("source_vocabulary.json", &tokens);
    copy.write("target_vocabulary.json", &json!(targets));
    fs::remove_file(copy.path().join("shared_vocabulary.json")).expect("a file");
    let first = copy.read("an Argos-like model");
    let root = tempfile::tempdir().expect("a folder");
    let (model, to) = (root.path().join("model"), root.path().join("exported"));
    first.save(&model).expect("room on the disk");
    export::prepare(&model, ExportFormat::Ctranslate2).expect("it fits").save(&to).expect("room on the disk");
    // The decoding of translate.py.
    let script = fs::read_to_string(to.join("translate.py")).expect("a script");
    assert!(
        script.contains("Tokenizer.from_file(first_existing(\"target.tokenizer.json\", \"tokenizer.json\"))")
    );
    let theirs = tokenizers::Tokenizer::from_file(to.join("target.tokenizer.json")).expect("their format");
    let target = &first.tokenizers.target;
    for ids in [vec![4, 3, 12], vec![1, 4, 0], (2..targets.len() as u32).collect()] {
        let text = theirs.decode(&ids, true).expect("a text");
        assert_eq!(text, target.decode(&ids));
        assert!(!text.is_empty() && !text.contains('▁'), "{text}");
    }
    assert_eq!(import::read(&to).expect("an export").config, first.config);
}

#[test]
fn an_imported_language_model_has_blocks_as_long_as_its_positions() {
    let ModelConfig::Language(config) = Copy::of("gpt2").read("GPT-2").config else {
        panic!("not a language model")
    };
    assert_eq!(config.block, Some(16));
}
