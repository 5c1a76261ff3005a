//! Model folders, file by file, and checkpoints. Each is fuzzed twice: unchanged, and with correct checksums.

use std::fs;
use std::path::Path;

use heedful::data::labels::Labels;
use heedful::data::shortlist::Shortlist;
use heedful::data::tokenizer::{Tokenizer, VocabularyKind};
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::recipe::{DecoderLayer, Family, PositionKind, Preset, Recipe};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::ModelFolder;
use heedful::train::TrainerState;
use heedful::train::checkpoint::{self, Checkpoint, Checkpoints, Keep, Progress};

use super::small_model::{LINES, classifier, language, tokenizer, translator};
use super::{JSON, Opened, Target, Verdict, sealing, target};

const WEIGHTS: &str = "model.safetensors";
const CONFIG: &str = "config.json";

const HEADER: &[&str] =
    &["F32", "F64", "BF16", "U8", "[0,0]", "[]", "{", "}", "null", "[4294967296,4294967296]"];

pub(super) fn targets() -> Vec<Target> {
    vec![
        target("weights", |folder| weights(folder, <[u8]>::to_vec), HEADER, 300),
        target("weights-sealed", |folder| weights(folder, sealing::weights), HEADER, 300),
        target("config", config, JSON, 300),
        target("config-sealed", sealed_config, JSON, 200),
        target("tokenizer", vocabulary, JSON, 100),
        target("labels", labels, JSON, 1000),
        target("shortlist", |_| shortlist(), &["heedful shortlist 1\n"], 2000),
        target("checkpoint", |folder| checkpoints(folder, <[u8]>::to_vec), HEADER, 300),
        target("checkpoint-sealed", |folder| checkpoints(folder, sealing::checkpoint), HEADER, 300),
    ]
}

fn weights(folder: &Path, seal: fn(&[u8]) -> Vec<u8>) -> Opened {
    let model = folder.join("model");
    translator(&model);
    let file = model.join(WEIGHTS);
    let seeds = vec![fs::read(&file).expect("it was saved")];
    let read = move |bytes: &[u8]| {
        fs::write(&file, seal(bytes)).expect("disk space");
        Verdict::of(ModelFolder::open(&model).and_then(|folder| folder.load()))
    };
    Opened { seeds, read: Box::new(read) }
}

/// Configurations of all tasks and families.
fn configurations(folder: &Path) -> Vec<Vec<u8>> {
    let write: [fn(&Path); 3] = [translator, language, classifier];
    let mut seeds: Vec<Vec<u8>> = write
        .iter()
        .map(|write| {
            write(&folder.join("other"));
            fs::read(folder.join("other").join(CONFIG)).expect("it was saved")
        })
        .collect();
    for family in [Family::Recurrent, Family::Convolutional, Family::Transformer] {
        let mut recipe = Recipe::preset(Preset::Tiny);
        recipe.start_from_family(family);
        recipe.model.family = family;
        if family == Family::Transformer {
            let model = &mut recipe.model;
            (model.embedding_norm, model.decoder_layer) = (true, DecoderLayer::Ssru);
            model.positions = PositionKind::OpenNmt;
        }
        let config = recipe.model_config([300; 2], 2).expect("a preset");
        let mut value = serde_json::to_value(&config).expect("names and numbers");
        value["format"] = heedful::tasks::folder::FORMAT.into();
        seeds.push(value.to_string().into_bytes());
    }
    seeds
}

/// A run without saved weights, whose checksum would reject a changed configuration.
fn config(folder: &Path) -> Opened {
    let seeds = configurations(folder);
    let model = folder.join("run");
    translator(&model);
    fs::remove_file(model.join(WEIGHTS)).expect("it was saved");
    let file = model.join(CONFIG);
    let read = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        Verdict::of(ModelFolder::open(&model))
    };
    Opened { seeds, read: Box::new(read) }
}

/// A configuration whose checksum is in the weights, whether they fit it or not.
fn sealed_config(folder: &Path) -> Opened {
    let mut seeds = configurations(folder);
    let model = folder.join("model");
    translator(&model);
    // The weights fit only the first one.
    seeds.truncate(1);
    let whole = fs::read(model.join(WEIGHTS)).expect("it was saved");
    let read = move |bytes: &[u8]| {
        fs::write(model.join(CONFIG), bytes).expect("disk space");
        fs::write(model.join(WEIGHTS), sealing::weights_with(&whole, CONFIG, bytes)).expect("disk space");
        Verdict::of(ModelFolder::open(&model).and_then(|folder| folder.load()))
    };
    Opened { seeds, read: Box::new(read) }
}

fn vocabulary(folder: &Path) -> Opened {
    let kinds =
        [VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Word, VocabularyKind::Character];
    let seeds = kinds.map(|kind| tokenizer(kind).to_json().into_bytes()).to_vec();
    let file = folder.join("tokenizer.json");
    let read = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        let loaded = Tokenizer::load(&file);
        if let Ok(tokenizer) = &loaded {
            for line in LINES {
                let ids = tokenizer.encode(line);
                tokenizer.decode(&ids);
                tokenizer.display_words(&ids);
            }
            tokenizer.decode(&[0, 5, 300, u32::MAX]);
        }
        Verdict::of(loaded)
    };
    Opened { seeds, read: Box::new(read) }
}

fn labels(folder: &Path) -> Opened {
    let folder = folder.to_owned();
    let read = move |bytes: &[u8]| {
        fs::write(folder.join("labels.json"), bytes).expect("disk space");
        Verdict::of(Labels::load(&folder))
    };
    Opened { seeds: vec!["[\"bad\", \"good\", \"体育\"]\n".into()], read: Box::new(read) }
}

fn shortlist() -> Opened {
    let seed = Shortlist::new(9, vec![2, 5], vec![Vec::new(), vec![3, 8], vec![2]]).to_bytes();
    let read = |bytes: &[u8]| {
        let loaded = Shortlist::from_bytes(Path::new("shortlist.bin"), bytes, [3, 9]);
        if let Ok(shortlist) = &loaded {
            shortlist.tokens(&[0, 1, 2, 300, u32::MAX], [2]);
        }
        Verdict::of(loaded)
    };
    Opened { seeds: vec![seed], read: Box::new(read) }
}

fn checkpoints(folder: &Path, seal: fn(&[u8]) -> Vec<u8>) -> Opened {
    let checkpoints = Checkpoints::open(&folder.join("checkpoints")).expect("a folder");
    let config = TransformerConfig {
        d_model: 4,
        d_ff: 4,
        heads: 2,
        encoder_layers: 1,
        decoder_layers: 1,
        ..TransformerConfig::tiny(12)
    };
    let model: Box<dyn Model> =
        ModelConfig::from(EncoderDecoderConfig::Transformer(config)).build(3).expect("a model");
    let weights = Weights::of(model.params());
    let trainer = TrainerState {
        step: 7,
        parameters: weights.clone(),
        mean: weights.clone(),
        square: weights.clone(),
        average: Some(weights),
        norms: vec![0.5, 1.5],
    };
    let progress = Progress { recipe: "0123".to_owned(), seconds: 2.5, ..Progress::default() };
    checkpoints
        .save(&Checkpoint { trainer, progress }, Keep { last: 1, best: 1, full: 2 })
        .expect("disk space");
    let file = checkpoints.path(7);
    let seeds = vec![fs::read(&file).expect("it was saved")];
    let read = move |bytes: &[u8]| {
        fs::write(&file, seal(bytes)).expect("disk space");
        // Reads only the header, without the checksum.
        let _ = checkpoints.best_up_to(1);
        let read = checkpoint::read(&file);
        if let Ok(checkpoint) = &read {
            let _ = checkpoint.trainer.parameters.install(model.params());
        }
        Verdict::of(read)
    };
    Opened { seeds, read: Box::new(read) }
}
