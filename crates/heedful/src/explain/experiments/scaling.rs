//! Why scores are divided by √d_k.
//!
//! ```text
//! q, k ~ N(0, 1)^{d_k}   ⇒   Var(q · k) = d_k,   Var(q · k / √d_k) = 1
//! ```
//!
//! Random queries and keys go through the operations of the models: dot product, scaling, softmax and its
//! gradient. As d_k grows, unscaled dot products grow with √d_k, the softmax puts nearly all its weight on
//! one key, and for most queries the gradient vanishes.

use heedful_tensor::ops;
use heedful_tensor::random::Stream;
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Rows, Tensor};
use serde_json::json;

use super::Experiment;
use crate::plot::{Highlight, LineChart, Scale, Series, Table};

/// The sizes of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct ScalingSettings {
    /// The largest d_k; the experiment covers all powers of two up to it.
    pub widest: usize,
    /// The number of keys per query.
    pub keys: usize,
    /// The number of queries to average over.
    pub queries: usize,
    /// The random seed.
    pub seed: u64,
}

impl Default for ScalingSettings {
    fn default() -> ScalingSettings {
        ScalingSettings { widest: 1024, keys: 32, queries: 1024, seed: 1 }
    }
}

/// Measurements for one d_k and one scale factor.
#[derive(Clone, Copy, Debug)]
struct Measured {
    variance: f64,
    /// The mean over queries of the largest weight.
    largest: f64,
    /// The mean entropy of the weights divided by log(keys): 1 is uniform, 0 is one key.
    entropy: f64,
    /// The median over queries of ‖∂L/∂e‖ / ‖∂L/∂p‖, for random ∂L/∂p. A few queries with two nearly equal
    /// scores would dominate a mean.
    gradient: f64,
}

struct Row {
    d_k: usize,
    plain: Measured,
    scaled: Measured,
}

/// Runs the experiment.
///
/// # Panics
/// If a size is 0.
pub fn scaling(settings: &ScalingSettings) -> Experiment {
    let widths = (0..).map(|exponent| 1 << exponent).take_while(|&d_k| d_k <= settings.widest);
    let rows: Vec<Row> = widths.map(|d_k| measure(d_k, settings)).collect();
    let last = rows.last().expect("a width of at least 1");
    let first = &rows[0];
    let curve = |title: &str, scale, of: fn(&Measured) -> f64| LineChart {
        title: title.to_owned(),
        x_label: "d_k".to_owned(),
        x_scale: Scale::Log,
        scale,
        series: [("q · k", false), ("q · k / √d_k", true)]
            .map(|(name, is_scaled)| Series {
                name: name.to_owned(),
                points: rows
                    .iter()
                    .map(|row| (row.d_k as f64, of(if is_scaled { &row.scaled } else { &row.plain })))
                    .collect(),
                highlight: Highlight::None,
            })
            .to_vec(),
    };
    Experiment {
        title: "Why are scores divided by √d_k?".to_owned(),
        setting: format!(
            "{} queries and {} keys with parts from N(0, 1), seed {}, in f32",
            settings.queries, settings.keys, settings.seed
        ),
        findings: vec![
            format!(
                "The variance of q · k grows with d_k: {:.2} at d_k {}, {:.0} at d_k {}. Divided by √d_k it stays near 1: {:.2}.",
                first.plain.variance, first.d_k, last.plain.variance, last.d_k, last.scaled.variance
            ),
            format!(
                "So the softmax saturates: at d_k {} its largest weight is {:.3} on average, with scaling {:.3}; of {} equal weights it would be {:.3}.",
                last.d_k,
                last.plain.largest,
                last.scaled.largest,
                settings.keys,
                1.0 / settings.keys as f64
            ),
            if last.plain.gradient >= last.scaled.gradient {
                format!("With d_k as small as {} its gradient does not vanish yet.", last.d_k)
            } else {
                format!(
                    "And its gradient vanishes: at d_k {} half of the queries get less than {:.1e} of the gradient that comes to the weights, with scaling {:.1e}.",
                    last.d_k, last.plain.gradient, last.scaled.gradient
                )
            },
        ],
        tables: vec![table(&rows)],
        curves: vec![
            curve("variance of the scores", Scale::Log, |measured| measured.variance),
            curve("largest weight", Scale::Linear, |measured| measured.largest),
            curve("gradient through the softmax", Scale::Log, |measured| measured.gradient),
        ],
        pictures: Vec::new(),
        json: json!({
            "queries": settings.queries,
            "keys": settings.keys,
            "seed": settings.seed,
            "rows": rows.iter().map(|row| json!({
                "d_k": row.d_k, "plain": row.plain.json(), "scaled": row.scaled.json()
            })).collect::<Vec<_>>(),
        }),
    }
}

/// The number of queries that share a set of keys.
const QUERIES_PER_KEY_SET: usize = 16;

fn measure(d_k: usize, settings: &ScalingSettings) -> Row {
    let ScalingSettings { keys, queries, seed, .. } = *settings;
    let draw = |operation, rows: usize, width: usize| {
        let stream = Stream::new(seed, d_k as u64, operation);
        Array::from_f32(rows, width, &(0..rows * width).map(|i| stream.normal(i as u32)).collect::<Vec<_>>())
    };
    // Only a few queries share a set of keys: with one set for all, its norms would dominate the result at
    // small d_k.
    let of_group = |group: usize| {
        let [of_queries, of_keys] = [1, 2].map(|side| 2 * group as u64 + side);
        let rows = QUERIES_PER_KEY_SET.min(queries - group * QUERIES_PER_KEY_SET);
        let [q, k] = [draw(of_queries, rows, d_k), draw(of_keys, d_k, keys)].map(Tensor::new);
        ops::matmul(&q, &k, Rows::Many).to_vec()
    };
    let scores: Vec<f32> = (0..queries.div_ceil(QUERIES_PER_KEY_SET)).flat_map(of_group).collect();
    let scores = Tensor::new(Array::from_f32(queries, keys, &scores));
    let upstream = draw(0, queries, keys);
    let of = |factor: f32| Measured::of(&ops::scale(&scores, factor), &upstream);
    Row { d_k, plain: of(1.0), scaled: of((d_k as f32).sqrt().recip()) }
}

impl Measured {
    fn of(scores: &Tensor, upstream: &Array) -> Measured {
        let [queries, keys] = scores.shape();
        let values = scores.to_vec();
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / values.len() as f64;
        let variance =
            values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / values.len() as f64;
        let variable = Tensor::variable(scores.array().to(scores.dtype()));
        let weights = ops::softmax(&variable);
        let gradients = backward_from(&weights, upstream.to(upstream.dtype()));
        let gradient = gradients.of(&variable).expect("the softmax has a gradient").f32().to_vec();
        let share =
            |row: usize| norm(&gradient[row * keys..][..keys]) / norm(&upstream.f32()[row * keys..][..keys]);
        let weights = weights.to_vec();
        let rows = || weights.chunks(keys);
        let mean_of = |of: &dyn Fn(&[f32]) -> f64| rows().map(of).sum::<f64>() / queries as f64;
        Measured {
            variance,
            largest: mean_of(&|row| row.iter().fold(0.0_f32, |largest, &weight| largest.max(weight)).into()),
            entropy: mean_of(&entropy) / (keys as f64).ln().max(f64::MIN_POSITIVE),
            gradient: median((0..queries).map(share).collect()),
        }
    }

    fn json(&self) -> serde_json::Value {
        json!({ "variance": self.variance, "largest_weight": self.largest, "entropy": self.entropy, "gradient": self.gradient })
    }
}

/// −Σ p ln p.
fn entropy(weights: &[f32]) -> f64 {
    let term = |&weight: &f32| if weight > 0.0 { -f64::from(weight) * f64::from(weight).ln() } else { 0.0 };
    weights.iter().map(term).sum()
}

/// The median; the upper one of an even number of values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "d_k",
        "variance",
        "scaled",
        "largest weight",
        "scaled ",
        "entropy",
        "scaled  ",
        "gradient",
        "scaled   ",
    ];
    let row = |row: &Row| {
        let Row { d_k, plain, scaled } = row;
        let pairs = [
            (plain.variance, scaled.variance),
            (plain.largest, scaled.largest),
            (plain.entropy, scaled.entropy),
        ];
        let numbers =
            pairs.into_iter().flat_map(|(plain, scaled)| [format!("{plain:.4}"), format!("{scaled:.4}")]);
        let gradients = [plain, scaled].map(|measured| format!("{:.1e}", measured.gradient));
        [d_k.to_string()].into_iter().chain(numbers).chain(gradients).collect()
    };
    Table {
        title: "q · k and q · k / √d_k; entropy relative to that of uniform weights".to_owned(),
        columns: columns.map(|name| name.trim_end().to_owned()).to_vec(),
        rows: rows.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unscaled_scores_have_variance_d_k_and_scaled_scores_variance_1() {
        let settings = ScalingSettings { widest: 256, queries: 512, ..ScalingSettings::default() };
        let measured = scaling(&settings).json;
        for row in measured["rows"].as_array().expect("rows") {
            let (d_k, number) = (row["d_k"].as_f64().expect("a number"), |side: &str, name: &str| {
                row[side][name].as_f64().expect("a number")
            });
            assert!((number("plain", "variance") / d_k - 1.0).abs() < 0.35, "{row}");
            assert!((number("scaled", "variance") - 1.0).abs() < 0.35, "{row}");
        }
        let last = &measured["rows"][8];
        assert!(last["plain"]["largest_weight"].as_f64() > Some(0.8), "{last}");
        assert!(last["scaled"]["largest_weight"].as_f64() < Some(0.4), "{last}");
        let gradient = |side: &str| last[side]["gradient"].as_f64().expect("a number");
        assert!(10.0 * gradient("plain") < gradient("scaled"), "{last}");
    }

    #[test]
    fn the_gradient_matches_the_formula() {
        let scores = Tensor::from_f32(1, 3, &[0.5, -1.0, 2.0]);
        let upstream = Array::from_f32(1, 3, &[1.0, 2.0, -1.0]);
        let measured = Measured::of(&scores, &upstream);
        let exponentials = [0.5_f64, -1.0, 2.0].map(f64::exp);
        let p = exponentials.map(|x| x / exponentials.iter().sum::<f64>());
        let g = [1.0, 2.0, -1.0];
        let mean: f64 = p.iter().zip(g).map(|(p, g)| p * g).sum();
        let expected =
            p.iter().zip(g).map(|(p, g)| (p * (g - mean)).powi(2)).sum::<f64>().sqrt() / 6.0_f64.sqrt();
        assert!((measured.gradient - expected).abs() < 1e-6, "{} {expected}", measured.gradient);
        assert!((measured.largest - p[2]).abs() < 1e-6);
    }
}
