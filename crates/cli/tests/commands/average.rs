//! `heedful average` as a process.

use std::fs;
use std::path::Path;
use std::process::Output;

use heedful::data::batch::Batch;
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::recipe::BestBy;
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tensor::DType;
use heedful::train::checkpoint::{Checkpoint, Checkpoints, Keep, Progress};
use heedful::train::{Schedule, StepTrainer, TrainerOptions, ValidationScore};

use crate::support::{Bounded, program};

/// A run of four steps with a checkpoint at each step; the second is the best. Returns the weights of all.
fn trained(run: &Path) -> Vec<Weights> {
    let config = TransformerConfig::tiny(20);
    let vocabulary = run.with_file_name("vocabulary.json");
    fs::write(&vocabulary, "{}").expect("enough space");
    let family = ModelConfig::from(EncoderDecoderConfig::Transformer(config.clone()));
    ModelFolder::create(run, family, &TokenizerFiles::Joint(vocabulary), None).expect("enough space");
    let checkpoints = Checkpoints::open(&run.join("checkpoints")).expect("nobody else is here");
    let model = Transformer::new(config, 1).expect("a good configuration");
    let options = TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 0.01 });
    let mut trainer = StepTrainer::new(model, options);
    let batch = Batch::new(&[(vec![5, 6, 7], vec![7, 6, 5])], 1, 2).expect("a good batch");
    let step = |bleu: &f64| {
        trainer.step(&batch).expect("a good step");
        let score = Some(ValidationScore { metric: BestBy::Bleu, value: *bleu });
        let progress = Progress { score, ..Progress::default() };
        let checkpoint = Checkpoint { trainer: trainer.state(), progress };
        checkpoints.save(&checkpoint, Keep { last: 9, best: 9, full: 2 }).expect("enough space");
        checkpoint.trainer.parameters
    };
    [3.0, 9.0, 5.0, 8.0].iter().map(step).collect()
}

fn heedful(arguments: &[&str], run: &Path, out: &Path) -> Output {
    let mut command = program();
    command.arg("average").arg(run).args(arguments).arg("--out").arg(out);
    command.finish()
}

#[test]
fn the_mean_of_checkpoints_becomes_a_model() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, out) = (folder.path().join("run"), folder.path().join("model"));
    let weights = trained(&run);
    for (arguments, chosen) in [(["--last", "2"], [2, 3]), (["--best", "2"], [1, 3])] {
        let output = heedful(&[&arguments[..], &["--force"]].concat(), &run, &out);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty(), "messages belong to standard error");
        let model = ModelFolder::open(&out).and_then(|model| model.load()).expect("a good model");
        for param in model.params().iter() {
            let [a, b] =
                chosen.map(|step: usize| weights[step].get(param.name()).expect("the same parameters"));
            let mean: Vec<f32> =
                a.iter().zip(b).map(|(a, b)| ((f64::from(*a) + f64::from(*b)) / 2.0) as f32).collect();
            assert_eq!(param.to_vec(), *mean, "{arguments:?} {}", param.name());
        }
    }
}

#[test]
fn the_recipe_of_the_run_goes_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, out) = (folder.path().join("run"), folder.path().join("model"));
    trained(&run);
    fs::write(run.join("recipe.toml"), "[data]\nmax_tokens = 77\n").expect("enough space");
    let output = heedful(&["--last", "2"], &run, &out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recipe = |folder: &Path| fs::read(folder.join("recipe.toml")).expect("a recipe");
    assert_eq!(recipe(&out), recipe(&run));
}

#[test]
fn averaging_errors_give_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (run, out) = (folder.path().join("run"), folder.path().join("model"));
    let complaint = |arguments: &[&str]| {
        let output = heedful(arguments, &run, &out);
        assert!(!output.status.success() && !out.exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(complaint(&["--last", "2"]).contains("is not a folder"));
    trained(&run);
    assert!(complaint(&["--last", "5"]).contains("has 4 checkpoints, not 5: request fewer"));
    assert!(complaint(&[]).contains("--last"));
    assert!(complaint(&["--last", "0"]).contains("0 is not in"));
    assert!(complaint(&["--last", "2", "--best", "2"]).contains("cannot be used with"));
    let newest = run.join("checkpoints").join("step-00000004.safetensors");
    let bytes = fs::read(&newest).expect("it was saved");
    fs::write(&newest, &bytes[..bytes.len() / 2]).expect("enough space");
    let message = complaint(&["--last", "2"]);
    assert!(message.contains("step-00000004.safetensors is damaged"), "{message}");
}
