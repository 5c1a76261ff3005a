//! Every kind of model that trains on a GPU, compared with the same model on the CPU.

use heedful::data::EOS;
use heedful::data::batch::{Batch, BatchLayout};
use heedful::layers::{AttentionScore, Norm, NormKind, Pass};
use heedful::models::convolution::{Balance, ConvolutionKind};
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::recipe::{
    AttentionKind, AttentionOrder, DecoderLayer, EncoderKind, Family, Pooling, Preset, Recipe, RecurrentNorm,
    Task,
};
use heedful::tasks::ModelConfig;
use heedful::tensor::ops::Cell;
use heedful::tensor::{DType, Device, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use crate::distance;

const VOCABULARY: usize = 300;
const LABELS: usize = 5;

const FROM_ZERO: &str = "Transformer that begins from zero, pre-norm";

/// A kind of model: its name, its task, and its changes to a recipe.
type Kind = (&'static str, Task, fn(&mut Recipe));

const KINDS: [Kind; 37] = [
    ("convolutional", Task::Translate, |recipe| recipe.start_from_family(Family::Convolutional)),
    ("convolutional with norms, ReLU and dilation", Task::Translate, |recipe| {
        recipe.start_from_family(Family::Convolutional);
        recipe.model.balance = Balance::Norm;
        recipe.model.convolution = ConvolutionKind::Relu;
        (recipe.model.dilation, recipe.model.encoder_layers, recipe.model.output_bias) = (2, 3, true);
    }),
    ("convolutional with a wide head", Task::Translate, |recipe| {
        recipe.start_from_family(Family::Convolutional);
        recipe.model.d_model = 272;
    }),
    ("Transformer with an output bias and a norm of embeddings", Task::Translate, |recipe| {
        (recipe.model.output_bias, recipe.model.embedding_norm) = (true, true);
    }),
    (FROM_ZERO, Task::Translate, |recipe| recipe.model.norm = Norm::Pre),
    ("Transformer with SSRU", Task::Translate, |recipe| recipe.model.decoder_layer = DecoderLayer::Ssru),
    ("Transformer with batch norms", Task::Translate, |recipe| recipe.model.norm_kind = NormKind::Batch),
    ("Transformer with wide norms and heads", Task::Translate, |recipe| {
        (recipe.model.d_model, recipe.model.heads, recipe.model.d_ff) = (1032, 2, 64);
    }),
    ("classifier by attention", Task::Classify, |_| {}),
    ("classifier by attention, general score", Task::Classify, |recipe| {
        recipe.model.pooling_score = AttentionScore::General;
    }),
    ("classifier by the first token, with a pooler and biases", Task::Classify, |recipe| {
        recipe.model.pooling = Pooling::First;
        (recipe.model.pooler, recipe.model.label_bias, recipe.model.surround_text) = (true, true, true);
    }),
    ("classifier by the last state", Task::Classify, |recipe| recipe.model.pooling = Pooling::Last),
    ("classifier by the mean", Task::Classify, |recipe| recipe.model.pooling = Pooling::Mean),
    ("classifier by the maximum", Task::Classify, |recipe| recipe.model.pooling = Pooling::Max),
    ("classifier with batch norms", Task::Classify, |recipe| recipe.model.norm_kind = NormKind::Batch),
    ("convolutional classifier", Task::Classify, |recipe| {
        recipe.start_from_family(Family::Convolutional);
        recipe.model.pooling = Pooling::Max;
    }),
    ("language model", Task::Language, |_| {}),
    ("language model with learned positions and a bias", Task::Language, |recipe| {
        (recipe.model.positions, recipe.model.output_bias) = (heedful::recipe::PositionKind::Learned, true);
    }),
    ("masked model", Task::Masked, |_| {}),
    ("masked model with surrounded texts, as BERT", Task::Masked, |recipe| {
        (recipe.model.surround_text, recipe.model.embedding_norm, recipe.model.output_bias) =
            (true, true, true);
    }),
    ("masked model with batch norms", Task::Masked, |recipe| recipe.model.norm_kind = NormKind::Batch),
    ("recurrent without attention", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::None);
    }),
    ("recurrent with two layers a side and norms", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Gru, AttentionKind::Soft);
        (recipe.model.encoder_layers, recipe.model.decoder_layers) = (2, 2);
        recipe.model.recurrent_norm = RecurrentNorm::Layer;
    }),
    ("LSTM, additive score", Task::Translate, |recipe| recurrent(recipe, Cell::Lstm, AttentionKind::Soft)),
    ("GRU, general score, odd widths", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Gru, AttentionKind::Soft);
        (recipe.model.score, recipe.model.d_model) = (AttentionScore::General, 42);
    }),
    ("simple cells, dot score", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Simple, AttentionKind::Soft);
        recipe.model.score = AttentionScore::Dot;
    }),
    ("LSTM, scaled dot score, wide", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
        (recipe.model.score, recipe.model.d_model) = (AttentionScore::ScaledDot, 512);
    }),
    ("LSTM, additive score, wide", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
        (recipe.model.d_model, recipe.model.d_encoder) = (512, Some(512));
    }),
    ("recurrent over convolutions", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
        recipe.model.encoder = EncoderKind::Convolutional;
    }),
    ("hard attention", Task::Translate, |recipe| recurrent(recipe, Cell::Gru, AttentionKind::Hard)),
    ("hard attention, straight through", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::StraightThrough);
    }),
    ("attention after the step", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
        recipe.model.attend = AttentionOrder::After;
    }),
    ("hard attention after the step", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Gru, AttentionKind::Hard);
        recipe.model.attend = AttentionOrder::After;
    }),
    ("attention with input feeding", Task::Translate, |recipe| {
        recurrent(recipe, Cell::Gru, AttentionKind::Soft);
        recipe.model.attend = AttentionOrder::Feeding;
    }),
    ("recurrent classifier by attention", Task::Classify, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
    }),
    ("recurrent classifier by the last state", Task::Classify, |recipe| {
        recurrent(recipe, Cell::Gru, AttentionKind::Soft);
        recipe.model.pooling = Pooling::Last;
    }),
    ("recurrent language model", Task::Language, |recipe| {
        recurrent(recipe, Cell::Lstm, AttentionKind::Soft);
    }),
];

fn recurrent(recipe: &mut Recipe, cell: Cell, attention: AttentionKind) {
    recipe.start_from_family(Family::Recurrent);
    (recipe.model.cell, recipe.model.attention) = (cell, attention);
}

fn model((name, task, change): Kind) -> Box<dyn Model> {
    let mut recipe = Recipe::preset(Preset::Tiny);
    recipe.data.task = task;
    (recipe.training.dropout, recipe.training.attention_dropout) = (0.1, 0.1);
    change(&mut recipe);
    let mut config = recipe.model_config([VOCABULARY; 2], LABELS).expect("a good configuration");
    if let (FROM_ZERO, ModelConfig::Translate(EncoderDecoderConfig::Transformer(config))) =
        (name, &mut config)
    {
        (config.special.start_from_zero, config.special.source_eos) = (true, Some(EOS));
    }
    config.build(7).expect("a good configuration")
}

fn batch(task: Task, seed: u32) -> Batch {
    let text = |i: u32, salt: u32| -> Vec<u32> {
        let length = 1 + (i * 37 + salt * 11 + seed * 5) % 40;
        (0..length).map(|t| 4 + (t * 131 + i * 17 + salt * 29 + seed * 7) % 290).collect()
    };
    let target = |i: u32| if task == Task::Classify { vec![i % LABELS as u32] } else { text(i, 2) };
    let layout = match task {
        Task::Classify => BatchLayout::Labels,
        Task::Language => BatchLayout::Lines,
        Task::Masked => BatchLayout::Texts,
        _ => BatchLayout::Pairs,
    };
    let examples: Vec<_> = (0..29).map(|i| (text(i, 1), target(i))).collect();
    Batch::of(layout, &examples, [1, 2]).expect("a good batch")
}

fn gradients(kind: Kind, device: Device, compute: DType) -> (f32, Vec<f32>) {
    gradients_of(kind, &batch(kind.1, 1), device, compute)
}

fn gradients_of(kind: Kind, batch: &Batch, device: Device, compute: DType) -> (f32, Vec<f32>) {
    let model = model(kind);
    model.params().move_to(device).expect("it fits");
    let found = model.loss(batch, &mut Pass::training(compute, 3, 1));
    let loss = found.loss.item();
    tape::backward(&found.loss);
    (loss, model.params().gradients())
}

/// Runs on the CPU, so that it is tested without a GPU.
#[test]
fn padding_a_batch_changes_nothing() {
    for kind in KINDS.into_iter().filter(|kind| !model(*kind).params().has_statistics()) {
        let batch = batch(kind.1, 1);
        let padded = batch.padded();
        assert!(padded != batch, "{}", kind.0);
        let [(loss, expected), (found_loss, found)] =
            [batch, padded].map(|batch| gradients_of(kind, &batch, Device::Cpu, DType::F32));
        let off = distance(&found, &expected);
        assert!((loss - found_loss).abs() < 1e-6 * loss && off < 1e-6, "{}: {off:e}", kind.0);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gradients_of_every_kind_of_model_match_the_cpu() {
    let mut failed = Vec::new();
    for kind in KINDS {
        let (loss, expected) = gradients(kind, Device::Cpu, DType::F32);
        let (found_loss, found) = gradients(kind, Device::Cuda, DType::F32);
        let off = distance(&found, &expected);
        // A value that is rounded across the kink of a ReLU changes much in one batch, hence the mean over
        // several.
        let bf16_distance = |device: Device| -> f64 {
            let of_batch = |seed: u32| {
                let batch = batch(kind.1, seed);
                let [narrow, wide] = [(device, DType::Bf16), (Device::Cpu, DType::F32)]
                    .map(|(device, compute)| gradients_of(kind, &batch, device, compute).1);
                distance(&narrow, &wide)
            };
            (1..=4).map(of_batch).sum::<f64>() / 4.0
        };
        let [cpus, gpus] = [Device::Cpu, Device::Cuda].map(bf16_distance);
        let line = format!(
            "{}: loss {found_loss}, CPU {loss}, gradients {off:e} apart; bf16 from f32: {cpus:e} on the CPU, {gpus:e} on \
             the GPU",
            kind.0
        );
        eprintln!("{line}");
        let is_good = (loss - found_loss).abs() < 1e-5 * loss && off < 2e-4 && gpus < 1.5 * cpus;
        let is_same =
            gradients(kind, Device::Cuda, DType::Bf16) == gradients(kind, Device::Cuda, DType::Bf16);
        if !is_good || !is_same {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn trainer(kind: Kind, device: Device, compute: DType) -> StepTrainer<Box<dyn Model>> {
    let model = model(kind);
    model.params().move_to(device).expect("it fits");
    let options = TrainerOptions {
        average_decay: Some(0.9),
        ..TrainerOptions::new(compute, 5, Schedule::Constant { rate: 1e-4 })
    };
    StepTrainer::new(model, options)
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn steps_of_every_kind_of_model_match_the_cpu_and_are_deterministic() {
    let mut failed = Vec::new();
    for kind in KINDS {
        let losses = |device: Device| -> Vec<f32> {
            let mut trainer = trainer(kind, device, DType::F32);
            (0..4).map(|step| trainer.step(&batch(kind.1, step)).expect("a good step").loss).collect()
        };
        // Batches are padded on the GPU; random numbers are the same there as on the CPU.
        let (expected, found) = (losses(Device::Cpu), losses(Device::Cuda));
        let is_near = expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-4 * a.abs());
        // Three sizes in turn: first launched, then captured, then replayed. The second trainer reuses the
        // first one's CUDA graphs.
        let run = || {
            let mut trainer = trainer(kind, Device::Cuda, DType::Bf16);
            let mut losses = Vec::new();
            for step in 0..9 {
                losses.extend(trainer.submit(&[batch(kind.1, step % 3)]).expect("a good step"));
            }
            losses.extend(trainer.drain().expect("good steps"));
            (losses, trainer.state())
        };
        let is_same = run() == run();
        eprintln!("{}: {expected:?} and {found:?}, deterministic: {is_same}", kind.0);
        if !is_near || !is_same {
            failed.push(kind.0);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn running_statistics_match_the_cpu_and_ignore_rejected_updates() {
    let kind = KINDS.into_iter().find(|kind| kind.0 == "Transformer with batch norms").expect("a kind");
    let statistics = |trainer: &StepTrainer<Box<dyn Model>>| -> Vec<f32> {
        let params = trainer.model().params().iter();
        let running =
            params.filter(|param| [".mean", ".variance"].iter().any(|end| param.name().ends_with(end)));
        running.flat_map(|param| param.to_vec()).collect()
    };
    let after = |device: Device| {
        let mut trainer = trainer(kind, device, DType::F32);
        for step in 0..5 {
            trainer.submit(&[batch(kind.1, step)]).expect("a good step");
        }
        trainer.drain().expect("good steps");
        statistics(&trainer)
    };
    let apart = distance(&after(Device::Cuda), &after(Device::Cpu));
    assert!(apart < 1e-4, "{apart:e}");
    let mut trainer = trainer(kind, Device::Cuda, DType::F32);
    trainer.step(&batch(kind.1, 0)).expect("a good step");
    let before = statistics(&trainer);
    let weight = trainer.model().params().iter().nth(3).expect("a weight");
    let mut values = weight.to_vec();
    values[7] = f32::NAN;
    weight.set(&values);
    trainer.step(&batch(kind.1, 1)).expect_err("NaN");
    assert_eq!(statistics(&trainer), before);
}
