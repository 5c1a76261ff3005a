//! Small requests beside one of 10,000 tokens: `--neighbours` measures nothing else.
//!
//! For every kind of model: p50 and p99 of small requests alone, and while one client sends a text of 10,000 tokens over
//! and over to the same model. The second p99 should be at most five times the first.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use heedful::data::labels::Labels;
use heedful::data::tokenizer::{Tokenizer, VocabularyOptions, WordCounts};
use heedful::decode::{MaxLength, SearchOptions};
use heedful::layers::AttentionScore;
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderConfig, EncoderDecoderConfig, Model};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::classify::{ClassifierConfig, Pooling};
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::language::{LanguageConfig, TextShape};
use heedful::tensor::Precision;
use heedful_grammar::Grammar;
use heedful_server::{Limits, ModelSpec, Server, ServerOptions};
use serde_json::{Value, json};

use super::load::{Amount, Load, Measured};

const LONG: usize = 10_000;
const SENTENCES: usize = 2000;
/// Clients that send small requests.
const CLIENTS: [usize; 2] = [1, 8];

/// A kind of request: its route, and its body for a text.
struct Kind {
    name: &'static str,
    path: &'static str,
    body: fn(&str) -> Value,
}

const KINDS: [Kind; 3] = [
    Kind { name: "classify", path: "/v1/classify", body: |text| json!({ "text": text }) },
    Kind { name: "generate", path: "/v1/generate", body: |text| json!({ "prompt": text, "tokens": 8 }) },
    Kind {
        name: "translate",
        path: "/translate",
        body: |text| json!({ "q": text, "source": "zh", "target": "en" }),
    },
];

pub(super) fn measure(seconds: f64, rounds: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let texts: Vec<String> =
        Grammar::new().split(1, SENTENCES, 40).train.into_iter().map(|phrase| phrase.chinese).collect();
    let tokenizer = vocabulary(&texts)?;
    let size =
        TransformerConfig { d_model: 128, d_ff: 256, heads: 4, ..TransformerConfig::tiny(tokenizer.size()) };
    let models = models(&size);
    for (name, config) in &models {
        write(&folder.path().join(name), config, &tokenizer)?;
    }
    let server = Server::start(ServerOptions {
        address: "127.0.0.1:0".parse().context("an address")?,
        models: models.iter().map(|(name, _)| ModelSpec::named(name, folder.path().join(name))).collect(),
        search: SearchOptions {
            compute: Some(Precision::Bf16),
            max_length: MaxLength::Absolute(16),
            ..SearchOptions::default()
        },
        limits: Limits {
            timeout: Duration::from_secs(3600),
            text_tokens: Some(2 * LONG),
            ..Limits::default()
        },
        ..ServerOptions::default()
    })?;
    let long = long_text(&texts, &tokenizer);
    for Kind { name, path, body } in &KINDS {
        let bodies: Vec<Value> = texts.iter().map(|text| body(text)).collect();
        let small = Load::new(server.address(), path, &bodies);
        let long = Load::new(server.address(), path, &[body(&long)]);
        let undisturbed = long.run(1, Amount::Requests(1))?.percentile(0.5);
        for clients in CLIENTS {
            let [mut alone, mut beside, mut disturbed] = [(); 3].map(|()| Measured::default());
            // In turn, since the machine may have slow phases.
            for _ in 0..rounds {
                alone.add(small.run(clients, Amount::Seconds(seconds))?);
                std::thread::scope(|scope| -> Result<()> {
                    // As long as the small ones: it is being computed whenever they are counted.
                    let long = scope.spawn(|| long.run(1, Amount::Seconds(seconds)));
                    beside.add(small.run(clients, Amount::Seconds(seconds))?);
                    disturbed.add(long.join().expect("no panic")?);
                    Ok(())
                })?;
            }
            println!(
                "neighbours {name} c {clients}: alone {}; beside a text of {LONG} tokens {}: p99 × {:.1}; that text took {:.1} s alone, {:.1} s beside them",
                described(&alone),
                described(&beside),
                beside.percentile(0.99) / alone.percentile(0.99),
                undisturbed / 1000.0,
                disturbed.longest() / 1000.0,
            );
        }
    }
    server.stop();
    Ok(())
}

fn described(measured: &Measured) -> String {
    let (p50, p99) = (measured.percentile(0.5), measured.percentile(0.99));
    let errors = measured.refused + measured.errors;
    format!("p50 {p50:.1} ms, p99 {p99:.1} ms ({} requests, {errors} errors)", measured.answered())
}

fn vocabulary(texts: &[String]) -> Result<Tokenizer> {
    let mut counts = WordCounts::new(&VocabularyOptions::default());
    texts.iter().for_each(|text| counts.add(text));
    Ok(counts.train()?)
}

/// One of each kind, without training: they take as long as others.
fn models(size: &TransformerConfig) -> [(&'static str, ModelConfig); 3] {
    let classifier = ClassifierConfig {
        labels: 2,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(size.encoder()),
    };
    let language = LanguageConfig {
        block: None,
        stack: size.decoder().into(),
        text: TextShape::Lines,
        label_smoothing: 0.0,
        output_bias: false,
    };
    [
        ("classifier", ModelConfig::Classify(classifier)),
        ("language", ModelConfig::Language(language)),
        ("zh-en", EncoderDecoderConfig::Transformer(size.clone()).into()),
    ]
}

fn write(folder: &Path, config: &ModelConfig, tokenizer: &Tokenizer) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let vocabulary = folder.join("tokenizer.json");
    tokenizer.save(&vocabulary)?;
    std::fs::write(folder.join("labels.json"), "[\"bad\", \"good\"]")?;
    let model = config.build(1)?;
    let labels = matches!(config, ModelConfig::Classify(_)).then(|| Labels::load(folder)).transpose()?;
    let tokenizers = TokenizerFiles::Joint(vocabulary);
    let written = ModelFolder::create(folder, config.clone(), &tokenizers, labels.as_ref())?;
    Ok(written.save(&Weights::of(model.params()))?)
}

/// 10,000 tokens, of which nothing makes several sentences.
fn long_text(texts: &[String], tokenizer: &Tokenizer) -> String {
    let mut text = String::new();
    let mut tokens = 0;
    for sentence in texts.iter().cycle() {
        let words: String = sentence.chars().filter(|c| c.is_alphanumeric()).collect();
        tokens += tokenizer.encode(&words).len();
        text += &words;
        if tokens >= LONG {
            break;
        }
    }
    text
}
