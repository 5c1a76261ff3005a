//! Shows a solution as text, JSON, HTML report and picture.

use serde_json::{Value, json};

use super::exercise::{Input, MaskRule, Score};
use super::matrix::Matrix;
use super::solution::{HeadSolution, Solution};
use crate::plot::{
    ColourScale, Fact, HeatMapOptions, Picture, PictureGroup, Report, Status, Table, heat_map_svg, row_svg,
};

/// A table titled with its formula.
struct Step<'a> {
    title: String,
    rows: &'a [String],
    columns: Vec<String>,
    values: &'a Matrix,
}

impl Solution {
    /// All tables as text, with the given number of decimals.
    pub fn to_text(&self, digits: usize) -> String {
        let tables = self.tables(digits);
        tables.iter().map(|table| table.to_markdown()).collect::<Vec<_>>().join("\n")
    }

    /// All tables as JSON in full precision; masked scores are null.
    pub fn to_json(&self) -> Value {
        let head = |head: &HeadSolution| {
            json!({
                "scores": rows(&head.scores),
                "scaled": rows(&head.scaled),
                "masked": rows(&head.masked),
                "weights": rows(&head.weights),
                "result": rows(&head.result),
            })
        };
        json!({
            "tokens": self.exercise.tokens,
            "key_tokens": self.exercise.key_tokens,
            "score": self.exercise.score.name(),
            "mask": self.describe_mask(),
            "q": rows(&self.q),
            "k": rows(&self.k),
            "v": rows(&self.v),
            "heads": self.heads.iter().map(head).collect::<Vec<_>>(),
            "result": rows(&self.result),
            "output": self.output.as_ref().map(rows),
        })
    }

    /// A report with pictures of scores and weights, and all tables.
    pub fn report(&self, title: &str, digits: usize) -> Report {
        let group = |title: &str, pictures: Vec<String>| PictureGroup {
            title: title.to_owned(),
            note: String::new(),
            pictures: pictures.into_iter().map(Picture::from).collect(),
        };
        Report {
            title: title.to_owned(),
            subtitle: "attention, step by step, in f64".to_owned(),
            status: Status::Absent,
            results: vec![
                Fact::new("score", self.exercise.score.name()).with_note(self.exercise.score.formula()),
                Fact::new("mask", self.describe_mask()),
                Fact::new("heads", self.heads.len()),
            ],
            pictures: vec![
                group("Inputs of the softmax: rows are queries, columns are keys", self.score_pictures()),
                group("Weights: every row sums to 1", self.weight_pictures()),
            ],
            tables: self.tables(digits),
            ..Report::default()
        }
    }

    /// The weights of all heads in one picture.
    pub fn weights_svg(&self) -> String {
        row_svg(&self.weight_pictures())
    }

    fn weight_pictures(&self) -> Vec<String> {
        self.pictures("weights", |head| &head.weights, |_| HeatMapOptions::default())
    }

    fn score_pictures(&self) -> Vec<String> {
        let options = |scores: &Matrix| HeatMapOptions {
            full: (scores.largest() as f32).clamp(f32::MIN_POSITIVE, f32::MAX),
            colours: ColourScale::Diverging,
            ..HeatMapOptions::default()
        };
        self.pictures("scores", |head| &head.masked, options)
    }

    fn pictures(
        &self,
        name: &str,
        matrix_of: impl Fn(&HeadSolution) -> &Matrix,
        options: impl Fn(&Matrix) -> HeatMapOptions,
    ) -> Vec<String> {
        let picture = |(number, head): (usize, &HeadSolution)| {
            let matrix = matrix_of(head);
            let title =
                if self.heads.len() == 1 { name.to_owned() } else { format!("{name}, head {}", number + 1) };
            // Masked scores have no colour; scores beyond the range of f32 have the strongest.
            let to_f32 = |&value: &f64| if value.is_finite() { value as f32 } else { 0.0 };
            let max = f32::MAX;
            let values: Vec<f32> =
                matrix.rows().flatten().map(to_f32).map(|value| value.clamp(-max, max)).collect();
            let options = HeatMapOptions { title, ..options(matrix) };
            heat_map_svg(&values, &self.exercise.tokens, &self.exercise.key_tokens, &options)
        };
        self.heads.iter().enumerate().map(picture).collect()
    }

    /// One table for each step of the computation.
    fn tables(&self, digits: usize) -> Vec<Table> {
        self.steps().iter().map(|step| step.table(digits)).collect()
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let (tokens, key_tokens) = (&self.exercise.tokens, &self.exercise.key_tokens);
        let step = |title: &str, rows, values| Step::new(title, rows, values);
        let mut steps = Vec::new();
        let titles = match &self.exercise.input {
            Input::Given { .. } => ["Q (given)", "K (given)", "V (given)"].map(str::to_owned),
            Input::Projected { x, memory, w } => {
                steps.push(step("X (given)", tokens, x));
                if let Some(memory) = memory {
                    steps.push(step("M, the memory (given)", key_tokens, memory));
                }
                let m = if memory.is_some() { "M" } else { "X" };
                let b = [0, 1, 2].map(|i| w[i].bias.is_some());
                let title = |left: &str, from: &str, index: &str, b: bool| {
                    format!(
                        "{left} = {from} W_{index}{}",
                        if b { format!(" + b_{index}") } else { String::new() }
                    )
                };
                [title("Q", "X", "q", b[0]), title("K", m, "k", b[1]), title("V", m, "v", b[2])]
            }
        };
        for (title, rows, values) in [
            (&titles[0], tokens, &self.q),
            (&titles[1], key_tokens, &self.k),
            (&titles[2], key_tokens, &self.v),
        ] {
            steps.push(step(title, rows, values));
        }
        for (number, head) in self.heads.iter().enumerate() {
            steps.extend(self.head_steps(number, head));
        }
        if self.heads.len() > 1 {
            let title = format!("result = Concat(head 1 … head {})", self.heads.len());
            steps.push(step(&title, tokens, &self.result));
        }
        if let Some(output) = &self.output {
            let bias = self.exercise.output.as_ref().is_some_and(|output| output.bias.is_some());
            let title = if bias { "output = result W_o + b_o" } else { "output = result W_o" };
            steps.push(step(title, tokens, output));
        }
        steps
    }

    fn head_steps<'a>(&'a self, number: usize, head: &'a HeadSolution) -> Vec<Step<'a>> {
        let (score, tokens) = (&self.exercise.score, &self.exercise.tokens);
        let name = if self.heads.len() == 1 { String::new() } else { format!("head {}: ", number + 1) };
        let d_k = self.k.width() / self.heads.len();
        let by_key = |title: String, values| Step {
            title: format!("{name}{title}"),
            rows: tokens,
            columns: self.exercise.key_tokens.clone(),
            values,
        };
        let mut steps = vec![by_key(format!("scores = {}", score.unscaled_formula()), &head.scores)];
        let mut last = "scores";
        if matches!(score, Score::ScaledDot) {
            steps.push(by_key(format!("scaled = scores / √{d_k}"), &head.scaled));
            last = "scaled";
        }
        if !self.exercise.mask.is_empty() {
            steps.push(by_key(
                format!("masked = {last}, −∞ where hidden ({})", self.describe_mask()),
                &head.masked,
            ));
            last = "masked";
        }
        steps.push(by_key(format!("weights = softmax({last}), row by row"), &head.weights));
        steps.push(Step::new(&format!("{name}result = weights V"), tokens, &head.result));
        steps
    }

    fn describe_mask(&self) -> String {
        let rule = |rule: &MaskRule| match rule {
            MaskRule::Causal => "causal".to_owned(),
            MaskRule::Window(reach) => format!("window {reach}"),
            MaskRule::Table(_) => "a table".to_owned(),
        };
        let rules: Vec<String> = self.exercise.mask.iter().map(rule).collect();
        if rules.is_empty() { "none".to_owned() } else { rules.join(" and ") }
    }
}

impl<'a> Step<'a> {
    /// A table whose columns are dimensions.
    fn new(title: &str, rows: &'a [String], values: &'a Matrix) -> Step<'a> {
        let columns = (1..=values.width()).map(|column| column.to_string()).collect();
        Step { title: title.to_owned(), rows, columns, values }
    }

    fn table(&self, digits: usize) -> Table {
        let row = |(label, values): (&String, &[f64])| {
            let values = values.iter().map(|&value| format_value(value, digits));
            [label.clone()].into_iter().chain(values).collect()
        };
        Table {
            title: self.title.clone(),
            columns: [String::new()].into_iter().chain(self.columns.iter().cloned()).collect(),
            rows: self.rows.iter().zip(self.values.rows()).map(row).collect(),
        }
    }
}

impl Score {
    pub(super) fn name(&self) -> &'static str {
        use crate::layers::AttentionScore;
        match self {
            Score::Dot => AttentionScore::Dot.name(),
            Score::ScaledDot => AttentionScore::ScaledDot.name(),
            Score::General { .. } => AttentionScore::General.name(),
            Score::Additive { .. } => AttentionScore::Additive.name(),
        }
    }

    fn formula(&self) -> &'static str {
        if matches!(self, Score::ScaledDot) { "Q Kᵀ / √d_k" } else { self.unscaled_formula() }
    }

    /// The formula before scaling.
    fn unscaled_formula(&self) -> &'static str {
        match self {
            Score::Dot | Score::ScaledDot => "Q Kᵀ",
            Score::General { .. } => "Q W Kᵀ",
            Score::Additive { bias: None, .. } => "tanh(q score_query + k score_key) · score_vector",
            Score::Additive { bias: Some(_), .. } => {
                "tanh(q score_query + k score_key + score_bias) · score_vector"
            }
        }
    }
}

/// A value with the given number of decimals; in scientific notation if it is very large.
fn format_value(value: f64, digits: usize) -> String {
    if value == f64::NEG_INFINITY {
        "−∞".to_owned()
    } else if value.abs() >= 1e7 {
        format!("{value:.digits$e}")
    } else {
        // Avoid "-0.00".
        format!(
            "{:.digits$}",
            if format!("{value:.digits$}").trim_matches(['-', '0', '.']).is_empty() { 0.0 } else { value }
        )
    }
}

/// The rows as JSON; −∞, which JSON cannot represent, becomes null.
fn rows(matrix: &Matrix) -> Value {
    matrix.rows().map(|row| row.iter().map(|&value| json!(value)).collect::<Value>()).collect()
}
