//! Models and vocabularies of other projects. Archives are fuzzed twice: unchanged, and repacked around a
//! mutated member, so that the code behind their checksums is reached.

use std::fs;
use std::path::Path;

use heedful::data::Tokenizer;
use heedful::data::tokenizer::SentencePiece;
use heedful::exchange::export::{self, ExportFormat};
use heedful::exchange::import;
use heedful::store::formats::argos::ArgosPackage;
use heedful::store::formats::ctranslate2::Ctranslate2Weights;
use heedful::store::formats::huggingface::HuggingFaceFolder;
use heedful::store::formats::marian::{self, MarianModel};
use heedful::store::formats::zip::Archive;
use heedful::store::formats::{FormatError, TensorSet};

use super::small_model::{LINES, translator};
use super::writers::{array, ctranslate2, marian_bin, safetensors, sentencepiece, word_pieces, zip};
use super::{JSON, Opened, Target, Verdict, target};

const YAML: &str = "dim-emb: 2\ndim-vocabs:\n  - 3\n  - 3\ninput-types: []\nname: \"a\\u2581\"\n";

pub(super) fn targets() -> Vec<Target> {
    let names = &["_scale", "TransformerSpec", "encoder/weight", "\u{0}", "\u{1}\u{0}"];
    let archive = &["PK\u{3}\u{4}", "PK\u{1}\u{2}", "PK\u{5}\u{6}", "../", "/", "\\"];
    let python = &["'descr': ", "'<f4'", "'|i1'", "True", "False", "(", ")", "9999999999", "{", "}"];
    let parts = &[
        "Unigram",
        "BPE",
        "WordPiece",
        "Replace",
        "Prepend",
        "Sequence",
        "null",
        "true",
        "-1e308",
        "[",
        "}",
    ];
    let kinds = &["marian", "pegasus", "bert", "gpt2", "opt", "heedful", "null", "-1", "1e99", "8", "1"];
    vec![
        target("ctranslate2", |_| weights(), names, 2000),
        target("marian-bin", |_| marian_model(), names, 2000),
        target("marian-npz", |_| npz(), python, 2000),
        target("marian-vocabulary", |_| yaml(), &["- ", ": ", "\"", "'", "\\u", "[", "#"], 2000),
        target("argos", |_| argos(), archive, 2000),
        target("huggingface", huggingface, &["F32", "BF16", "data_offsets", "[0,0]"], 300),
        target("huggingface-index", huggingface_index, JSON, 300),
        target("sentencepiece", |_| pieces(), &["\u{12}", "\u{1}", "▁", "<unk>"], 300),
        target("foreign-tokenizer", tokenizer, parts, 300),
        target("foreign-settings", settings, kinds, 200),
    ]
}

/// Mutated settings of a model with valid tensors.
fn settings(folder: &Path) -> Opened {
    let model = folder.join("model");
    translator(&model);
    let folders = [ExportFormat::HuggingFace, ExportFormat::Ctranslate2].map(|format| {
        let to = folder.join(format!("{format:?}"));
        export::prepare(&model, format).expect("a valid model").save(&to).expect("disk space");
        to
    });
    let seeds = folders.iter().map(|folder| fs::read(folder.join("config.json")).expect("a file")).collect();
    let read = move |bytes: &[u8]| {
        let [one, other] = folders.each_ref().map(|folder| {
            fs::write(folder.join("config.json"), bytes).expect("disk space");
            import::read(folder)
        });
        Verdict::of(one.or(other))
    };
    Opened { seeds, read: Box::new(read) }
}

/// Reads every element.
fn read_all(tensors: &TensorSet) {
    for name in tensors.names() {
        let tensor = tensors.get(name).expect("a name of its own");
        tensor.scalar();
        tensor.transposed_values();
        assert_eq!(tensor.values().len(), tensor.count());
    }
}

fn weights() -> Opened {
    let read = |bytes: &[u8]| {
        let read = Ctranslate2Weights::read("model.bin", bytes.to_vec().into());
        Verdict::of(read.map(|weights| read_all(&weights.tensors)))
    };
    Opened { seeds: (1..=6).map(ctranslate2).collect(), read: Box::new(read) }
}

fn read_marian(bytes: Vec<u8>) -> Verdict {
    Verdict::of(MarianModel::read("model.bin", bytes.into()).map(|model| read_all(&model.tensors)))
}

fn marian_model() -> Opened {
    Opened { seeds: vec![marian_bin(YAML)], read: Box::new(|bytes| read_marian(bytes.to_vec())) }
}

/// A mutated array in a valid archive.
fn npz() -> Opened {
    let settings = array("|i1", YAML.len(), YAML.as_bytes());
    let seeds = vec![array("<f4", 2, &[0; 8]), array("<f2", 4, &[1; 8])];
    let read =
        move |bytes: &[u8]| read_marian(zip(&[("Wemb.npy", bytes), ("special:model.yml.npy", &settings)]));
    Opened { seeds, read: Box::new(read) }
}

fn yaml() -> Opened {
    let seeds = vec![b"</s>: 0\n\"\\u2581a\": 1\n'it''s': 2\n".to_vec()];
    Opened { seeds, read: Box::new(|bytes| Verdict::of(marian::vocabulary("vocab.yml", bytes))) }
}

fn package(model: &[u8]) -> Vec<u8> {
    zip(&[
        ("zh_en/metadata.json", br#"{"from_code": "zh"}"#),
        ("zh_en/sentencepiece.model", b"pieces"),
        ("zh_en/model/model.bin", model),
        ("zh_en/model/shared_vocabulary.json", br#"["<unk>"]"#),
    ])
}

fn read_package(bytes: Vec<u8>) -> Result<(), FormatError> {
    let package = ArgosPackage::of_archive(Archive::new("zh_en.argosmodel", bytes.into())?)?;
    read_all(&package.model.weights.tensors);
    Ok(())
}

fn argos() -> Opened {
    let read = |bytes: &[u8]| {
        // Once as the whole archive, once as a member of a valid one.
        let member = read_package(package(bytes));
        Verdict::of(read_package(bytes.to_vec()).or(member))
    };
    Opened { seeds: vec![package(&ctranslate2(6)), ctranslate2(6)], read: Box::new(read) }
}

fn huggingface(folder: &Path) -> Opened {
    let folder = folder.to_owned();
    fs::write(folder.join("config.json"), "{}").expect("disk space");
    let read = move |bytes: &[u8]| {
        fs::write(folder.join("model.safetensors"), bytes).expect("disk space");
        Verdict::of(HuggingFaceFolder::open(&folder).map(|model| read_all(&model.tensors)))
    };
    Opened { seeds: vec![safetensors()], read: Box::new(read) }
}

fn huggingface_index(folder: &Path) -> Opened {
    let folder = folder.to_owned();
    fs::write(folder.join("config.json"), "{}").expect("disk space");
    fs::write(folder.join("a.safetensors"), safetensors()).expect("disk space");
    let read = move |bytes: &[u8]| {
        fs::write(folder.join("model.safetensors.index.json"), bytes).expect("disk space");
        Verdict::of(HuggingFaceFolder::open(&folder).map(|model| read_all(&model.tensors)))
    };
    Opened { seeds: vec![br#"{"weight_map": {"x": "a.safetensors"}}"#.to_vec()], read: Box::new(read) }
}

/// Uses all functions of a tokenizer.
fn use_tokenizer(tokenizer: &Tokenizer) {
    for line in LINES {
        let ids = tokenizer.encode(line);
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.size().max(1)));
        tokenizer.decode(&ids);
        tokenizer.display_words(&ids);
        tokenizer.encode_continuation(line);
    }
    tokenizer.decode(&[0, 5, 300, u32::MAX]);
    (0..8).for_each(|id| drop(tokenizer.piece(id)));
}

fn pieces() -> Opened {
    let read = |bytes: &[u8]| {
        let tokenizer = SentencePiece::read("some.model", bytes).and_then(|model| model.tokenizer());
        Verdict::of(tokenizer.map(|tokenizer| use_tokenizer(&tokenizer)))
    };
    Opened { seeds: vec![sentencepiece(1), sentencepiece(2)], read: Box::new(read) }
}

fn tokenizer(folder: &Path) -> Opened {
    let file = folder.join("tokenizer.json");
    let of_pieces = |kind| {
        let model = SentencePiece::read("some.model", &sentencepiece(kind)).expect("a valid model");
        model
            .tokenizer_for(&["</s>", "<unk>", "▁", "a", "other"], &[])
            .expect("a valid model")
            .to_json()
            .into_bytes()
    };
    let seeds = vec![of_pieces(1), of_pieces(2), word_pieces().into_bytes()];
    let read = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        Verdict::of(Tokenizer::load(&file).map(|tokenizer| use_tokenizer(&tokenizer)))
    };
    Opened { seeds, read: Box::new(read) }
}
