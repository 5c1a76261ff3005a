use std::fs;

use heedful_tensor::random::Stream;

use super::*;
use crate::layers::Positions;
use crate::layers::Tying;
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::{Transformer, TransformerConfig};

fn config() -> TransformerConfig {
    TransformerConfig { positions: Positions::Learned { max_length: 9 }, ..TransformerConfig::tiny(20) }
}

/// A temporary folder, the model folder in it, and the model. These tests do not read its vocabulary and
/// labels.
fn saved() -> (tempfile::TempDir, PathBuf, Transformer) {
    let parent = tempfile::tempdir().expect("a folder");
    let vocabulary = parent.path().join("vocabulary.json");
    fs::write(&vocabulary, "{}").expect("a writable disk");
    let path = parent.path().join("model");
    let model = Transformer::new(config(), 5).expect("a good configuration");
    let labels = Labels::from_bytes(&path, b"[\"bad\", \"good\"]").expect("two labels");
    let config = EncoderDecoderConfig::Transformer(config()).into();
    let folder = ModelFolder::create(&path, config, &TokenizerFiles::Joint(vocabulary), Some(&labels));
    folder.and_then(|folder| folder.save(&Weights::of(model.params()))).expect("a folder can be written");
    (parent, path, model)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn complaint(path: &Path) -> String {
    let outcome = ModelFolder::open(path).and_then(|folder| folder.load());
    outcome.err().expect("this folder is bad").to_string()
}

#[test]
fn a_saved_model_loads_bit_for_bit() {
    let (_parent, path, model) = saved();
    let folder = ModelFolder::open(&path).expect("a good folder");
    assert_eq!(folder.config, ModelConfig::from(EncoderDecoderConfig::Transformer(config())));
    assert_eq!(fs::read_to_string(path.join("tokenizer.json")).expect("it was copied"), "{}");
    let loaded = folder.load().expect("good weights");
    assert_eq!(Weights::of(loaded.params()), Weights::of(model.params()));
}

#[test]
fn every_configuration_round_trips_through_json() {
    let presets =
        [TransformerConfig::base, TransformerConfig::big, TransformerConfig::iwslt, TransformerConfig::small];
    for preset in presets {
        let changed = TransformerConfig {
            tying: Tying::TargetOutput,
            window: Some(4),
            key_width: Some(64),
            ..preset(50)
        };
        for config in [preset(100), changed] {
            let config = ModelConfig::from(EncoderDecoderConfig::Transformer(config));
            let languages = Languages { source: "zh".into(), target: "en".into() };
            for languages in [None, Some(languages)] {
                let json = config::to_json(&config, languages.as_ref());
                let parsed = config::parse(Path::new(CONFIG), json.as_bytes()).expect("as it was written");
                assert_eq!(parsed, (config.clone(), languages));
            }
        }
    }
}

#[test]
fn separate_vocabularies_are_found_and_ambiguous_ones_rejected() {
    let (_parent, path, _) = saved();
    fs::remove_file(path.join(MODEL)).expect("it is there");
    fs::rename(path.join(JOINT_FILE), path.join(SOURCE_FILE)).expect("it is there");
    assert!(complaint(&path).contains("target.tokenizer.json is missing"));
    fs::write(path.join(TARGET_FILE), "{}").expect("a writable disk");
    assert_eq!(ModelFolder::open(&path).expect("a good folder").text_files().names().count(), 3);
    fs::write(path.join(JOINT_FILE), "{}").expect("a writable disk");
    assert!(complaint(&path).contains("remove the one that the model was not trained with"));
}

#[test]
fn a_flipped_bit_anywhere_is_rejected_with_the_name_of_the_file() {
    let (_parent, path, _) = saved();
    let draws = Stream::new(7, 0, 0);
    for name in MODEL_FILES.into_iter().filter(|name| path.join(name).exists()) {
        let (file, whole) = (path.join(name), fs::read(path.join(name)).expect("it is there"));
        // Every fifth byte of the first 4 KB, and 200 random bytes.
        let draw = |index: u32| (draws.uniform(index) * whole.len() as f32) as usize;
        let places = (0..whole.len().min(4096)).step_by(5).chain((0..200).map(draw));
        for place in places.filter(|place| *place < whole.len()) {
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << (place % 8);
            fs::write(&file, flipped).expect("a writable disk");
            let message = complaint(&path);
            assert!(message.contains(name), "bit {} of byte {place} of {name}: {message}", place % 8);
            let remedy = message.contains("copy the") || message.contains("heedful seal");
            assert!(remedy, "bit {} of byte {place} of {name}: {message}", place % 8);
        }
        fs::write(&file, &whole).expect("a writable disk");
    }
    assert!(ModelFolder::open(&path).and_then(|folder| folder.load()).is_ok(), "it is whole again");
}

#[test]
fn mismatched_and_missing_files_are_rejected_with_their_names() {
    let (_parent, path, _) = saved();
    for name in [CONFIG, JOINT_FILE, LABELS_FILE] {
        let whole = fs::read(path.join(name)).expect("it is there");
        // The same length, and valid JSON.
        let other = text(&whole).replace("{}", "[]").replace("bad", "mad").replace("64", "32");
        assert_eq!(other.len(), whole.len());
        assert_ne!(other.as_bytes(), whole);
        fs::write(path.join(name), other).expect("a writable disk");
        let message = complaint(&path);
        assert!(message.contains(&format!("{name} is not the file that")), "{message}");
        assert!(message.contains("copy the whole folder of the model again"), "{message}");
        fs::remove_file(path.join(name)).expect("it is there");
        assert!(complaint(&path).contains(&format!("{name} is missing")));
        fs::write(path.join(name), whole).expect("a writable disk");
    }
    fs::write(path.join("notes.txt"), "mine").expect("a writable disk");
    fs::write(path.join(TARGET_FILE), "{}").expect("a writable disk");
    assert!(ModelFolder::open(&path).and_then(|folder| folder.load()).is_ok(), "other files are ignored");
}

#[test]
fn weights_replaced_after_opening_are_not_mixed_with_the_old_files() {
    let (_parent, path, model) = saved();
    let opened = ModelFolder::open(&path).expect("a good folder");
    let vocabulary = path.join(JOINT_FILE);
    fs::write(&vocabulary, "[]").expect("a writable disk");
    let config = EncoderDecoderConfig::Transformer(config()).into();
    let other = ModelFolder::create(&path, config, &TokenizerFiles::Joint(vocabulary), None);
    other.and_then(|other| other.save(&Weights::of(model.params()))).expect("a folder can be written");
    let message = opened.load().err().expect("half of each").to_string();
    assert!(message.contains("is not"), "{message}");
}

#[test]
fn weights_without_a_seal_are_rejected_with_the_remedy() {
    let (_parent, path, model) = saved();
    let weights = Weights::of(model.params());
    let contents = Contents {
        metadata: Metadata::new(),
        tensors: Vec::new(),
        sets: vec![("", &weights)],
        checksum: Checksum::Last,
    };
    let mut bytes = Vec::new();
    contents.write(&mut bytes).expect("room");
    fs::write(path.join(MODEL), bytes).expect("a writable disk");
    let message = complaint(&path);
    assert!(
        message.contains("model.safetensors does not say") && message.contains("run: heedful seal"),
        "{message}"
    );
}

#[test]
fn a_model_truncated_anywhere_is_rejected() {
    let (_parent, path, _) = saved();
    let file = path.join(MODEL);
    let whole = fs::read(&file).expect("it is there");
    for length in (0..whole.len()).step_by(whole.len() / 50 + 1) {
        fs::write(&file, &whole[..length]).expect("a writable disk");
        let message = complaint(&path);
        assert!(
            message.contains("model.safetensors") && message.contains("copy the file again"),
            "{message}"
        );
    }
}

#[test]
fn weights_of_another_model_are_rejected_and_not_sealed() {
    let (_parent, path, _) = saved();
    let text = fs::read_to_string(path.join(CONFIG)).expect("it is there");
    fs::write(path.join(CONFIG), text.replace("\"d_ff\": 128", "\"d_ff\": 64")).expect("a writable disk");
    let message = ModelFolder::seal(&path).expect_err("other shapes").to_string();
    assert!(message.contains("does not fit") && message.contains("64 × 128"), "{message}");
}

#[test]
fn nan_weights_are_rejected() {
    let (_parent, path, model) = saved();
    let param = model.params().get("embedding.weight").expect("a parameter");
    let mut values = param.to_vec();
    values[7] = f32::NAN;
    param.set(&values);
    let folder = ModelFolder::open(&path).expect("a good folder");
    folder.save(&Weights::of(model.params())).expect("a writable disk");
    assert!(complaint(&path).starts_with("`embedding.weight` in "));
}

#[test]
fn unsupported_versions_families_and_fields_are_named() {
    let (_parent, path, _) = saved();
    // A run without weights has no seal to check the file against.
    fs::remove_file(path.join(MODEL)).expect("it is there");
    let text = fs::read_to_string(path.join(CONFIG)).expect("it is there");
    for (from, to, expected) in [
        ("\"format\": 2", "\"format\": 3", "has format 3, this program reads format 2"),
        ("\"format\": 2,", "", "has format null"),
        ("\"transformer\"", "\"perceptron\"", "unknown variant `perceptron`"),
        ("\"d_ff\"", "\"d_fff\"", "unknown field `d_fff`"),
        ("\"heads\": 2", "\"heads\": 3", "3 heads do not divide d_model 64"),
        ("}", "", "not the configuration of a model: "),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        fs::write(path.join(CONFIG), text.replacen(from, to, 1)).expect("a writable disk");
        let message = complaint(&path);
        assert!(message.contains("config.json") && message.contains(expected), "{message}");
    }
}

#[test]
fn missing_files_are_named() {
    let (parent, path, _) = saved();
    assert!(complaint(&parent.path().join("nothing")).contains("is not a folder"));
    assert!(complaint(parent.path()).contains("config.json is missing"));
    fs::remove_file(path.join(MODEL)).expect("it is there");
    assert!(complaint(&path).contains("model.safetensors is missing"));
}

#[test]
fn narrow_weights_are_used_in_place_and_load_bit_for_bit() {
    let (parent, path, model) = saved();
    let folder = ModelFolder::open(&path).expect("a good folder");
    let sizes = [Precision::F32, Precision::Bf16, Precision::Int8].map(|precision| {
        let path = parent.path().join(precision.to_string());
        let narrow = folder.copy_to(&path).expect("a writable disk");
        match precision {
            Precision::F32 => narrow.save(&Weights::of(model.params())).expect("a writable disk"),
            _ => assert!(narrow.save_narrow(model.params(), precision).expect("a writable disk") > 4),
        }
        let opened = ModelFolder::open(&path).expect("a model");
        assert_eq!(opened.precision().expect("a header"), precision);
        let loaded = opened.load().expect("its weights");
        let integers = |model: &dyn Model| {
            let bytes = |param: heedful_tensor::Param| Some(param.to_int8()?.bytes().to_vec());
            model.params().iter().filter_map(bytes).collect::<Vec<_>>()
        };
        if precision == Precision::Int8 {
            assert_eq!(integers(&*loaded), integers(&model));
        }
        // Converted to f32, both ways of loading give the same values.
        let values_read = opened.weights().expect("its weights");
        for (name, _, values) in Weights::of(loaded.params()).iter() {
            assert_eq!(values_read.get(name), Some(values), "{precision}: {name}");
        }
        fs::metadata(path.join(MODEL)).expect("it is there").len()
    });
    assert!(sizes[1] < sizes[0] && sizes[2] < sizes[0], "{sizes:?}");
}
