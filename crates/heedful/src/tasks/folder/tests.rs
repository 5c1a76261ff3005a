use super::*;
use crate::layers::Positions;
use crate::layers::Tying;
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::{Transformer, TransformerConfig};

fn config() -> TransformerConfig {
    TransformerConfig { positions: Positions::Learned { max_length: 9 }, ..TransformerConfig::tiny(20) }
}

/// A folder with a model, and the folder that it lies in.
fn saved() -> (tempfile::TempDir, PathBuf, Transformer) {
    let parent = tempfile::tempdir().expect("a folder");
    let vocabulary = parent.path().join("vocabulary.json");
    fs::write(&vocabulary, "{}").expect("a writable disk");
    let path = parent.path().join("model");
    let model = Transformer::new(config(), 5).expect("a good configuration");
    let folder = ModelFolder::create(
        &path,
        EncoderDecoderConfig::Transformer(config()).into(),
        &TokenizerFiles::Joint(vocabulary),
    );
    folder.and_then(|folder| folder.save(&Weights::of(model.params()))).expect("a folder can be written");
    (parent, path, model)
}

fn complaint(path: &Path) -> String {
    let outcome = ModelFolder::open(path).and_then(|folder| folder.load());
    outcome.err().expect("this folder is bad").to_string()
}

#[test]
fn a_model_comes_back_bit_for_bit() {
    let (_parent, path, model) = saved();
    let folder = ModelFolder::open(&path).expect("a good folder");
    assert_eq!(folder.config, ModelConfig::from(EncoderDecoderConfig::Transformer(config())));
    assert_eq!(folder.tokenizers, TokenizerFiles::Joint(path.join("tokenizer.json")));
    assert_eq!(fs::read_to_string(path.join("tokenizer.json")).expect("it was copied"), "{}");
    let loaded = folder.load().expect("good weights");
    assert_eq!(Weights::of(loaded.params()), Weights::of(model.params()));
}

#[test]
fn every_configuration_survives_the_way_through_json() {
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
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(CONFIG);
            fs::write(&path, config::to_json(&config)).expect("a writable disk");
            assert_eq!(config::read(&path).expect("as it was written"), config);
        }
    }
}

#[test]
fn separate_vocabularies_are_found_and_doubtful_ones_refused() {
    let (_parent, path, _) = saved();
    fs::rename(path.join(JOINT_FILE), path.join(SOURCE_FILE)).expect("it is there");
    assert!(complaint(&path).contains("target.tokenizer.json is missing"));
    fs::write(path.join(TARGET_FILE), "{}").expect("a writable disk");
    let folder = ModelFolder::open(&path).expect("a good folder");
    assert!(matches!(folder.tokenizers, TokenizerFiles::Separate { .. }));
    fs::write(path.join(JOINT_FILE), "{}").expect("a writable disk");
    assert!(complaint(&path).contains("remove the one that the model was not trained with"));
}

#[test]
fn a_cut_off_model_is_refused_wherever_it_was_cut() {
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
fn weights_of_another_model_are_refused() {
    let (_parent, path, _) = saved();
    let text = fs::read_to_string(path.join(CONFIG)).expect("it is there");
    fs::write(path.join(CONFIG), text.replace("\"d_ff\": 128", "\"d_ff\": 64")).expect("a writable disk");
    let message = complaint(&path);
    assert!(message.contains("does not fit") && message.contains("64 × 128"), "{message}");
}

#[test]
fn what_is_no_number_is_refused() {
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
fn other_versions_and_families_and_fields_are_named() {
    let (_parent, path, _) = saved();
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
fn missing_parts_are_named() {
    let (parent, path, _) = saved();
    assert!(complaint(&parent.path().join("nothing")).contains("is not a folder"));
    assert!(complaint(parent.path()).contains("config.json is missing"));
    fs::remove_file(path.join(MODEL)).expect("it is there");
    assert!(complaint(&path).contains("model.safetensors is missing"));
}
