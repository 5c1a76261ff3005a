//! Decoders with SSRU in place of self-attention, against an f64 reference.

use heedful::data::batch::Batch;
use heedful::data::tokenizer::{Tokenizers, VocabularyKind, VocabularyOptions, WordCounts};
use heedful::decode::{SearchOptions, search};
use heedful::explain::{Explanation, WeightForm};
use heedful::layers::{AttentionRole, Norm, Pass};
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{Generate, Model, Row};
use heedful::recipe::DecoderLayer;
use heedful::tasks::translate::Translator;
use heedful::tensor::{DType, Precision, Ragged};

use crate::{VOCABULARY, build, check_steps, copies, losses};

fn config(norm: Norm) -> TransformerConfig {
    TransformerConfig {
        decoder_layer: DecoderLayer::Ssru,
        decoder_layers: 2,
        norm,
        ..TransformerConfig::tiny(VOCABULARY)
    }
}

/// Rows of f64.
type Rows = Vec<Vec<f64>>;

struct Reference<'m> {
    model: &'m Transformer,
}

impl Reference<'_> {
    fn param(&self, name: &str) -> Rows {
        let param = self.model.params().get(name).unwrap_or_else(|| panic!("no {name}"));
        let rows = param.to_vec();
        rows.chunks(param.shape()[1]).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect()
    }

    fn linear(&self, name: &str, x: &Rows) -> Rows {
        let weight = self.param(&format!("{name}.weight"));
        let bias = self.param(&format!("{name}.bias")).remove(0);
        let row = |x: &Vec<f64>| -> Vec<f64> {
            let out =
                (0..bias.len()).map(|j| (0..x.len()).map(|k| x[k] * weight[k][j]).sum::<f64>() + bias[j]);
            out.collect()
        };
        x.iter().map(row).collect()
    }

    fn norm(&self, name: &str, x: &Rows) -> Rows {
        let [gamma, beta] = ["gamma", "beta"].map(|part| self.param(&format!("{name}.{part}")).remove(0));
        let epsilon = f64::from(self.model.config().norm_epsilon);
        let row = |x: &Vec<f64>| -> Vec<f64> {
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
            let unit = x.iter().map(|x| (x - mean) / (variance + epsilon).sqrt());
            unit.zip(gamma.iter().zip(&beta)).map(|(x, (g, b))| x * g + b).collect()
        };
        x.iter().map(row).collect()
    }

    /// One sublayer with its residual.
    fn around(&self, name: &str, x: &Rows, sublayer: impl Fn(&Rows) -> Rows) -> Rows {
        let sum = |y: Rows| -> Rows {
            x.iter().zip(y).map(|(x, y)| x.iter().zip(y).map(|(x, y)| x + y).collect()).collect()
        };
        let norm = format!("{name}_norm");
        match self.model.config().norm {
            Norm::Post => self.norm(&norm, &sum(sublayer(x))),
            Norm::Pre => sum(sublayer(&self.norm(&norm, x))),
        }
    }

    fn ssru(&self, name: &str, x: &Rows) -> Rows {
        let gates = self.linear(&format!("{name}.input"), x);
        let d = gates[0].len() / 2;
        let mut state = vec![0.0; d];
        let step = |gates: &Vec<f64>| -> Vec<f64> {
            for (j, state) in state.iter_mut().enumerate() {
                let forget = 1.0 / (1.0 + (-gates[d + j]).exp());
                *state = forget * *state + (1.0 - forget) * gates[j];
            }
            state.iter().map(|c| c.max(0.0)).collect()
        };
        gates.iter().map(step).collect()
    }

    fn cross_attention(&self, name: &str, x: &Rows, memory: &Rows) -> Rows {
        let (queries, heads) = (self.linear(&format!("{name}.query"), x), self.model.config().heads);
        let key_values = self.linear(&format!("{name}.key_value"), memory);
        let d = queries[0].len();
        let width = d / heads;
        let row = |query: &Vec<f64>| -> Vec<f64> {
            let head = |head: usize| -> Vec<f64> {
                let columns = head * width..(head + 1) * width;
                let score = |kv: &Vec<f64>| columns.clone().map(|j| query[j] * kv[j]).sum::<f64>();
                let weights: Vec<f64> =
                    key_values.iter().map(|kv| (score(kv) / (width as f64).sqrt()).exp()).collect();
                let total: f64 = weights.iter().sum();
                let value =
                    |j: usize| weights.iter().zip(&key_values).map(|(w, kv)| w * kv[d + j]).sum::<f64>();
                columns.clone().map(|j| value(j) / total).collect()
            };
            (0..heads).flat_map(head).collect()
        };
        self.linear(&format!("{name}.output"), &queries.iter().map(row).collect())
    }

    /// The decoder's states for a target that begins with `<bos>`.
    fn decode(&self, target: &[u32], memory: &Rows) -> Rows {
        let table = self.param("embedding.weight");
        let d = table[0].len();
        let position_value = |position: usize, column: usize| {
            let angle = position as f64 / 10_000_f64.powf((column / 2 * 2) as f64 / d as f64);
            if column.is_multiple_of(2) { angle.sin() } else { angle.cos() }
        };
        let embedded = target.iter().enumerate().map(|(position, &token)| -> Vec<f64> {
            let scaled = |column: usize| (d as f64).sqrt() * table[token as usize][column];
            (0..d).map(|column| scaled(column) + position_value(position, column)).collect()
        });
        let mut x: Rows = embedded.collect();
        for layer in 0..self.model.config().decoder_layers {
            let name = |sublayer: &str| format!("decoder.{layer}.{sublayer}");
            x = self.around(&name("ssru"), &x, |x| self.ssru(&name("ssru"), x));
            let cross = name("cross_attention");
            x = self.around(&cross, &x, |x| self.cross_attention(&cross, x, memory));
            let feed_forward = name("feed_forward");
            x = self.around(&feed_forward, &x, |x| {
                let mut hidden = self.linear(&format!("{feed_forward}.inner"), x);
                hidden.iter_mut().flatten().for_each(|x| *x = x.max(0.0));
                self.linear(&format!("{feed_forward}.outer"), &hidden)
            });
        }
        if self.model.config().norm == Norm::Pre { self.norm("decoder.norm", &x) } else { x }
    }
}

#[test]
fn an_ssru_decoder_matches_an_f64_reference() {
    for norm in [Norm::Post, Norm::Pre] {
        let model = build(&config(norm));
        for param in model.params().iter().filter(|param| param.name().ends_with("bias")) {
            param.set(&(0..param.range().len()).map(|i| (i as f32 * 0.9).sin() * 0.3).collect::<Vec<_>>());
        }
        let (source, targets) = ([5, 6, 7, 4, 9], [vec![1, 8, 8, 12, 3, 4], vec![1, 11]]);
        let mut pass = Pass::inference(DType::F32);
        let memory = model.encode(&source, &Ragged::from_lengths([3, 2]), &mut pass);
        let sequences = Ragged::from_lengths(targets.iter().map(Vec::len));
        let found = model.decode(&targets.concat(), &sequences, &memory, &mut pass).to_vec();
        let d = model.config().d_model;
        let states = memory.states.to_vec();
        let rows: Rows = states.chunks(d).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect();
        let reference = Reference { model: &model };
        let parts = targets.iter().zip([rows[..3].to_vec(), rows[3..].to_vec()]);
        let expected: Vec<f64> =
            parts.flat_map(|(target, memory)| reference.decode(target, &memory)).flatten().collect();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{norm:?}: {found} and {expected}");
        }
    }
}

#[test]
fn ssru_states_follow_their_hypotheses() {
    for norm in [Norm::Post, Norm::Pre] {
        let model = build(&config(norm));
        check_steps(&model);
        // Rows are dropped, duplicated and reordered, and a sentence starts later: each row has the scores of
        // its own past.
        let mut decoding = model.start(Precision::F32);
        decoding.read(&[5, 6, 7, 9], &Ragged::from_lengths([3, 1]));
        let row = |sentence, parent, token| Row { sentence, parent, token };
        decoding.step(&[row(0, None, 1)]);
        decoding.step(&[row(0, Some(0), 8), row(0, Some(0), 4)]);
        let rows = [row(0, Some(1), 3), row(0, Some(0), 3), row(0, Some(1), 9), row(1, None, 1)];
        let found = decoding.step(&rows);
        let alone = |source: &[u32], past: &[u32]| {
            let all = crate::stepped(&model, source, past, Precision::F32);
            all.last().expect("a step").clone()
        };
        let pasts: [(&[u32], &[u32]); 4] =
            [(&[5, 6, 7], &[1, 4, 3]), (&[5, 6, 7], &[1, 8, 3]), (&[5, 6, 7], &[1, 4, 9]), (&[9], &[1])];
        for (row, (source, past)) in pasts.into_iter().enumerate() {
            assert_eq!(found.row(row).as_ref(), alone(source, past), "row {row}");
        }
        let options =
            SearchOptions { beam: 4, n_best: 4, compute: Some(Precision::F32), ..SearchOptions::default() };
        let sources = vec![vec![5, 6, 7], vec![9]];
        let together = search(&model, &sources, &options).expect("good sources");
        for (source, found) in sources.iter().zip(together) {
            let alone = search(&model, std::slice::from_ref(source), &options).expect("a good source");
            assert_eq!(alone[0], found);
        }
    }
}

#[test]
fn models_with_ssru_learn() {
    let batch = |step| Batch::new(&copies(step), 1, 2).expect("a good batch");
    for norm in [Norm::Post, Norm::Pre] {
        let model = build(&config(norm));
        let found = model.loss(&batch(0), &mut Pass::training(DType::Bf16, 1, 1));
        heedful::tensor::tape::backward(&found.loss);
        for param in model.params().iter() {
            assert!(param.gradient().iter().any(|&g| g != 0.0), "{}", param.name());
        }
        model.params().clear_gradients();
        let (first, last) = losses(model, 100, batch);
        assert!(last < 0.7 * first, "{norm:?}: the loss went from {first} to {last}");
    }
}

#[test]
fn an_ssru_decoder_has_no_self_attention_to_explain_or_remove() {
    let options =
        VocabularyOptions { kind: VocabularyKind::Character, size: 300, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    counts.add("a dog runs in the rain.");
    let tokenizers = Tokenizers::joint(counts.train().expect("enough text"));
    let config = TransformerConfig {
        decoder_layer: DecoderLayer::Ssru,
        ..TransformerConfig::tiny(tokenizers.source.size())
    };
    let model = build(&config);
    assert!(model.heads().iter().all(|head| head.role != AttentionRole::DecoderSelf));
    let own = ["dec.0.0".parse().expect("a head's name")];
    let complaint = model.check_heads(&own).expect_err("there is none").to_string();
    assert!(!complaint.contains(".self.{0}, decoder") && complaint.contains("}.cross.{"), "{complaint}");
    let translator = Translator::new(Box::new(model), tokenizers);
    let found = translator
        .translate(["a dog."], &SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() })
        .expect("a translation");
    let explained = Explanation::new(
        &translator,
        "a dog.",
        &found[0],
        WeightForm::Rows,
        &SearchOptions { compute: Some(Precision::F32), ..SearchOptions::default() },
    );
    let layers = &explained.expect("an explanation").outputs[0].attention;
    let expected = config.encoder_layers + config.decoder_layers;
    assert_eq!(layers.len(), expected);
    assert!(layers.iter().all(|layer| !layer.name.to_string().contains("decoder.0.self")));
}

#[test]
fn the_configuration_stores_ssru_but_not_the_default_attention() {
    let text = serde_json::to_string(&config(Norm::Post)).expect("JSON");
    assert!(text.contains(r#""decoder_layer":"ssru""#), "{text}");
    assert_eq!(serde_json::from_str::<TransformerConfig>(&text).expect("as written"), config(Norm::Post));
    let plain = serde_json::to_string(&TransformerConfig::tiny(VOCABULARY)).expect("JSON");
    assert!(!plain.contains("decoder_layer\""), "{plain}");
}
