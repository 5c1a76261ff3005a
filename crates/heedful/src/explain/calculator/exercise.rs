//! An exercise: the matrices and settings of a file, validated.

use serde_json::Value;

use super::fields::{ExerciseError, Fields, MAX_ROWS, array, short, wrong};
use super::matrix::Matrix;
use crate::layers::AttentionScore;

/// An exercise whose shapes are consistent.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// One label for each query.
    pub(super) tokens: Vec<String>,
    /// One label for each key.
    pub(super) key_tokens: Vec<String>,
    pub(super) input: Input,
    pub(super) score: Score,
    pub(super) mask: Vec<MaskRule>,
    pub(super) heads: usize,
    pub(super) output: Option<Projection>,
}

/// The source of queries, keys and values.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Given { q: Matrix, k: Matrix, v: Matrix },
    Projected { x: Matrix, memory: Option<Matrix>, w: [Projection; 3] },
}

/// `x W + b`.
#[derive(Clone, Debug)]
pub(super) struct Projection {
    pub(super) weight: Matrix,
    pub(super) bias: Option<Vec<f64>>,
}

/// A score function with its parameters.
#[derive(Clone, Debug)]
pub(super) enum Score {
    Dot,
    ScaledDot,
    General { matrix: Matrix },
    Additive { query: Matrix, key: Matrix, bias: Option<Vec<f64>>, vector: Vec<f64> },
}

/// Which keys a query may attend to. Sequences are aligned at their ends: the last query is at the position
/// of the last key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaskRule {
    /// No keys at later positions.
    Causal,
    /// Only keys within this distance.
    Window(usize),
    /// `allowed[query][key]`.
    Table(Vec<Vec<bool>>),
}

/// Values that replace those of the file.
#[derive(Clone, Debug, Default)]
pub struct ExerciseOverrides {
    /// Replaces `score`.
    pub score: Option<AttentionScore>,
    /// Replaces `mask`; `Some(None)` removes it.
    pub mask: Option<Option<MaskRule>>,
    /// Replaces `window`.
    pub window: Option<usize>,
}

const KEYS: [&str; 24] = [
    "tokens",
    "memory_tokens",
    "x",
    "memory",
    "w_q",
    "w_k",
    "w_v",
    "b_q",
    "b_k",
    "b_v",
    "q",
    "k",
    "v",
    "score",
    "score_matrix",
    "score_query",
    "score_key",
    "score_bias",
    "score_vector",
    "mask",
    "window",
    "heads",
    "w_o",
    "b_o",
];
/// The keys of score parameters.
const SCORE_KEYS: [&str; 5] = ["score_matrix", "score_query", "score_key", "score_bias", "score_vector"];
const MAX_HEADS: u64 = 16;

impl Exercise {
    /// Reads an exercise. Keys without effect are errors.
    pub fn parse(text: &str) -> Result<Exercise, ExerciseError> {
        Exercise::parse_with(text, &ExerciseOverrides::default())
    }

    /// Like [`Exercise::parse`], with overrides. If the score is overridden, parameters of the file's score
    /// are ignored.
    pub fn parse_with(text: &str, overrides: &ExerciseOverrides) -> Result<Exercise, ExerciseError> {
        let mut fields = Fields::parse(text, &KEYS)?;
        let input = input(&mut fields)?;
        let [queries, query_width, n_keys, key_width, value_width] = input.sizes();
        let name = if matches!(input, Input::Given { .. }) { "q" } else { "x" };
        let tokens = fields.labels("tokens", name, queries)?;
        let key_tokens = match input.is_cross() {
            true => fields.labels("memory_tokens", "the memory", n_keys)?,
            false => tokens.clone(),
        };
        let name = score_name(&mut fields, overrides.score)?;
        let heads = heads(&mut fields, name, [query_width, value_width])?;
        let score = score(&mut fields, name, [query_width, key_width])?;
        let mask = masks(&mut fields, overrides, [queries, n_keys])?;
        let output = projection(&mut fields, ["w_o", "b_o"], value_width, "the result")?;
        if overrides.score.is_some() {
            SCORE_KEYS.iter().for_each(|key| drop(fields.take(key)));
        }
        if let Some(key) = fields.any_unused() {
            return wrong(format!("{key} has no effect here: {}", why_unused(key)));
        }
        let indices = |count: usize| (1..=count).map(|number| number.to_string()).collect();
        Ok(Exercise {
            tokens: tokens.unwrap_or_else(|| indices(queries)),
            key_tokens: key_tokens.unwrap_or_else(|| indices(n_keys)),
            input,
            score,
            mask,
            heads,
            output,
        })
    }
}

impl Input {
    /// The number of queries, their width, the number of keys, their width, and the width of the values.
    fn sizes(&self) -> [usize; 5] {
        match self {
            Input::Given { q, k, v } => [q.height(), q.width(), k.height(), k.width(), v.width()],
            Input::Projected { x, memory, w } => {
                let keys = memory.as_ref().unwrap_or(x).height();
                let [q, k, v] = [0, 1, 2].map(|i| w[i].weight.width());
                [x.height(), q, keys, k, v]
            }
        }
    }

    /// Whether keys come from a different sequence than queries.
    pub(super) fn is_cross(&self) -> bool {
        !matches!(self, Input::Projected { memory: None, .. })
    }
}

fn input(fields: &mut Fields) -> Result<Input, ExerciseError> {
    if !fields.has("x") {
        let [q, k, v] = ["q", "k", "v"].map(|key| fields.sequence(key));
        let (Some(q), Some(k), Some(v)) = (q?, k?, v?) else {
            return wrong(
                "give x with w_q, w_k and w_v, or q, k and v: `heedful attend --example` prints a file to begin with",
            );
        };
        if k.height() != v.height() {
            return wrong(format!(
                "k has {} rows and v has {}: every key needs a value",
                k.height(),
                v.height()
            ));
        }
        return Ok(Input::Given { q, k, v });
    }
    let (x, memory) = (fields.sequence("x")?, fields.sequence("memory")?);
    let x = x.expect("it is there");
    let from = memory.as_ref().map_or(("x", x.width()), |memory| ("memory", memory.width()));
    let mut of = |[weight, bias]: [&str; 2], (source, width): (&str, usize)| {
        projection(fields, [weight, bias], width, source)?
            .map_or_else(|| wrong(format!("{weight} is missing: x needs w_q, w_k and w_v")), Ok)
    };
    let w = [of(["w_q", "b_q"], ("x", x.width()))?, of(["w_k", "b_k"], from)?, of(["w_v", "b_v"], from)?];
    Ok(Input::Projected { x, memory, w })
}

/// A weight matrix with `width` rows, and its bias.
fn projection(
    fields: &mut Fields,
    [weight_key, bias_key]: [&str; 2],
    width: usize,
    source: &str,
) -> Result<Option<Projection>, ExerciseError> {
    let Some(weight) = fields.weight(weight_key)? else { return Ok(None) };
    if weight.height() != width {
        return wrong(format!(
            "{weight_key} has {} rows and {source} has {width} columns: {source} × {weight_key} the two must be equal",
            weight.height()
        ));
    }
    let bias = vector(fields, bias_key, weight_key, weight.width())?;
    Ok(Some(Projection { weight, bias }))
}

/// A vector with one element for each column of a weight.
fn vector(fields: &mut Fields, key: &str, of: &str, width: usize) -> Result<Option<Vec<f64>>, ExerciseError> {
    let vector = fields.vector(key)?;
    match &vector {
        Some(numbers) if numbers.len() != width => wrong(format!(
            "{key} has {} numbers and {of} has {width} columns: give one for each",
            numbers.len()
        )),
        _ => Ok(vector),
    }
}

/// The overriding score, or that of the file.
fn score_name(
    fields: &mut Fields,
    overriding: Option<AttentionScore>,
) -> Result<AttentionScore, ExerciseError> {
    let of_file = match fields.take("score") {
        None => AttentionScore::default(),
        Some(value) => value.as_str().and_then(AttentionScore::from_name).map_or_else(
            || {
                let names: Vec<&str> = AttentionScore::ALL.iter().map(|score| score.name()).collect();
                wrong(format!("score is {}: it must be one of {}", short(&value), names.join(", ")))
            },
            Ok,
        )?,
    };
    Ok(overriding.unwrap_or(of_file))
}

fn score(
    fields: &mut Fields,
    score: AttentionScore,
    [query, key]: [usize; 2],
) -> Result<Score, ExerciseError> {
    if score.requires_equal_widths() && query != key {
        return wrong(format!(
            "queries have {query} columns and keys have {key}: {} needs equal widths, general and additive do not",
            score.name()
        ));
    }
    let mut needed = |key: &str, rows: usize, what: &str| match fields.weight(key)? {
        None => wrong(format!("the score {} needs {key}", score.name())),
        Some(matrix) if matrix.height() != rows => wrong(format!(
            "{key} has {} rows and {what} have {rows} columns: the two must be equal",
            matrix.height()
        )),
        Some(matrix) => Ok(matrix),
    };
    match score {
        AttentionScore::Dot => Ok(Score::Dot),
        AttentionScore::ScaledDot => Ok(Score::ScaledDot),
        AttentionScore::General => {
            let matrix = needed("score_matrix", query, "queries")?;
            if matrix.width() != key {
                return wrong(format!(
                    "score_matrix has {} columns and keys have {key}: the two must be equal",
                    matrix.width()
                ));
            }
            Ok(Score::General { matrix })
        }
        AttentionScore::Additive => {
            let (query, key) = (needed("score_query", query, "queries")?, needed("score_key", key, "keys")?);
            if query.width() != key.width() {
                return wrong(format!(
                    "score_query has {} columns and score_key has {}: they are added, so the two must be equal",
                    query.width(),
                    key.width()
                ));
            }
            let bias = vector(fields, "score_bias", "score_query", query.width())?;
            let Some(vector) = vector(fields, "score_vector", "score_query", query.width())? else {
                return wrong("the score additive needs score_vector");
            };
            Ok(Score::Additive { query, key, bias, vector })
        }
    }
}

fn masks(
    fields: &mut Fields,
    overrides: &ExerciseOverrides,
    [queries, n_keys]: [usize; 2],
) -> Result<Vec<MaskRule>, ExerciseError> {
    let of_file = match fields.take("mask") {
        None => None,
        Some(Value::String(name)) if name == "none" => None,
        Some(Value::String(name)) if name == "causal" => Some(MaskRule::Causal),
        Some(value @ Value::Array(_)) => Some(MaskRule::Table(table(&value, [queries, n_keys])?)),
        Some(value) => {
            return wrong(format!(
                "mask is {}: give \"none\", \"causal\", or rows of true and false",
                short(&value)
            ));
        }
    };
    let window = fields.count("window", 0, MAX_ROWS as u64)?;
    let rules =
        [overrides.mask.clone().unwrap_or(of_file), overrides.window.or(window).map(MaskRule::Window)];
    let rules: Vec<MaskRule> = rules.into_iter().flatten().collect();
    let has_key = |query: usize| {
        (0..n_keys).any(|key| rules.iter().all(|rule| rule.allows([query, key], [queries, n_keys])))
    };
    match (0..queries).find(|&query| !has_key(query)) {
        Some(query) => {
            wrong(format!("the mask hides every key from query {}: let it see at least one", query + 1))
        }
        None => Ok(rules),
    }
}

/// A boolean mask; 1 and 0 are accepted for true and false.
fn table(value: &Value, [queries, n_keys]: [usize; 2]) -> Result<Vec<Vec<bool>>, ExerciseError> {
    let rows = array(value, "mask", MAX_ROWS, "rows of true and false")?;
    if rows.len() != queries {
        return wrong(format!(
            "mask has {} rows and there are {queries} queries: give one for each",
            rows.len()
        ));
    }
    let row = |(number, value): (usize, &Value)| {
        let place = format!("mask, row {}", number + 1);
        let cells = array(value, &place, MAX_ROWS, "true and false")?;
        if cells.len() != n_keys {
            return wrong(format!(
                "{place} has {} elements and there are {n_keys} keys: give one for each",
                cells.len()
            ));
        }
        let cell = |(column, value): (usize, &Value)| match (value.as_bool(), value.as_u64()) {
            (Some(allowed), _) => Ok(allowed),
            (_, Some(bit @ 0..=1)) => Ok(bit == 1),
            _ => wrong(format!(
                "{place}, column {} is {}: give true (may be seen) or false",
                column + 1,
                short(value)
            )),
        };
        cells.iter().enumerate().map(cell).collect()
    };
    rows.iter().enumerate().map(row).collect()
}

impl MaskRule {
    pub(super) fn allows(&self, [query, key]: [usize; 2], [queries, keys]: [usize; 2]) -> bool {
        let distance = key as i64 - (query as i64 + keys as i64 - queries as i64);
        match self {
            MaskRule::Causal => distance <= 0,
            MaskRule::Window(reach) => distance.unsigned_abs() <= *reach as u64,
            MaskRule::Table(allowed) => allowed[query][key],
        }
    }
}

/// The number of heads. It is checked before the score's parameters: scores with parameters do not support
/// several heads.
fn heads(
    fields: &mut Fields,
    score: AttentionScore,
    [keys, values]: [usize; 2],
) -> Result<usize, ExerciseError> {
    let heads = fields.count("heads", 1, MAX_HEADS)?.unwrap_or(1);
    if heads > 1 && !matches!(score, AttentionScore::Dot | AttentionScore::ScaledDot) {
        return wrong(format!(
            "heads is {heads} and the score is {}: several heads need the score dot or scaled-dot",
            score.name()
        ));
    }
    for (what, width) in [("queries and keys", keys), ("values", values)] {
        if !width.is_multiple_of(heads) {
            return wrong(format!("{what} have {width} columns, which {heads} heads cannot share equally"));
        }
    }
    Ok(heads)
}

/// Why a key has no effect.
fn why_unused(key: &str) -> &'static str {
    match key {
        "q" | "k" | "v" => "q, k and v are computed from x; leave out x to give them",
        "memory" | "w_q" | "w_k" | "w_v" | "b_q" | "b_k" | "b_v" => "it requires x, but q, k and v are given",
        "memory_tokens" => "without a memory, the keys are labelled with the tokens of x",
        "b_o" => "it requires w_o, which is not given",
        _ => "the score has no such parameter",
    }
}
