//! Lists the tensors of a model of another project: name, shape, type, and the sum of the absolute values.
//!
//! ```sh
//! cargo run --release -p heedful --example foreign_model -- PATH
//! ```

use std::env;
use std::error::Error;
use std::path::Path;

use heedful::store::formats::argos::ArgosPackage;
use heedful::store::formats::ctranslate2::{Ctranslate2Folder, Ctranslate2Weights};
use heedful::store::formats::files::Files;
use heedful::store::formats::huggingface::HuggingFaceFolder;
use heedful::store::formats::marian::MarianModel;
use heedful::store::formats::{ForeignFormat, TensorSet, recognise};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args_os().nth(1).ok_or("give the path of a file or folder")?;
    let path = Path::new(&path);
    match recognise(path)? {
        ForeignFormat::Argos => {
            let package = ArgosPackage::open(path)?;
            println!("an Argos package: {}", serde_json::to_string(&package.metadata)?);
            show_ctranslate2(&package.model.weights, package.model.target_vocabulary.len());
        }
        ForeignFormat::Ctranslate2 => {
            let folder = Ctranslate2Folder::open(&Files::Folder(path.to_owned()))?;
            println!("a CTranslate2 model: {}", serde_json::to_string(&folder.config)?);
            show_ctranslate2(&folder.weights, folder.target_vocabulary.len());
        }
        ForeignFormat::Marian(file) => {
            let model = MarianModel::open(&file)?;
            println!("a Marian model");
            model.settings.entries().for_each(|(key, value)| println!("{key}: {value:?}"));
            show(&model.tensors);
        }
        ForeignFormat::HuggingFace => {
            let folder = HuggingFaceFolder::open(path)?;
            println!("a Hugging Face model: {}", serde_json::to_string(&folder.config)?);
            show(&folder.tensors);
        }
    }
    Ok(())
}

fn show_ctranslate2(weights: &Ctranslate2Weights, tokens: usize) {
    println!(
        "{}, version {}, revision {}, {tokens} tokens",
        weights.specification, weights.version, weights.revision
    );
    show(&weights.tensors);
}

fn show(tensors: &TensorSet) {
    for name in tensors.names() {
        let Some(tensor) = tensors.find(name) else { continue };
        let sum: f64 = tensor.values().iter().map(|value| f64::from(value.abs())).sum();
        let quantized = if tensor.is_quantized() { ", quantized" } else { "" };
        println!("{name} {:?} {:?}{quantized} {sum:.4}", tensor.shape(), tensor.element_type());
    }
}
