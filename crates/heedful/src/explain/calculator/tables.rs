//! A solution as text, JSON, a page and a picture.

use serde_json::{Value, json};

use super::exercise::{Input, MaskRule, Score};
use super::matrix::Matrix;
use super::solution::{HeadSolution, Solution};
use crate::plot::{
    ColourScale, Fact, HeatMapOptions, Picture, PictureGroup, Report, Status, Table, heat_map_svg, row_svg,
};

/// A table with its formula.
struct Step<'a> {
    title: String,
    rows: &'a [String],
    columns: Vec<String>,
    numbers: &'a Matrix,
}

impl Solution {
    /// Every table as text, with so many digits after the point.
    pub fn to_text(&self, digits: usize) -> String {
        let tables = self.tables(digits);
        tables.iter().map(|table| table.to_markdown()).collect::<Vec<_>>().join("\n")
    }

    /// Every table as JSON, with all digits; a masked score is null.
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
            "mask": self.mask_in_words(),
            "q": rows(&self.q),
            "k": rows(&self.k),
            "v": rows(&self.v),
            "heads": self.heads.iter().map(head).collect::<Vec<_>>(),
            "result": rows(&self.result),
            "output": self.output.as_ref().map(rows),
        })
    }

    /// A page with pictures of scores and weights, and every table.
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
                Fact::new("score", self.exercise.score.name()).noted(self.exercise.score.formula()),
                Fact::new("mask", self.mask_in_words()),
                Fact::new("heads", self.heads.len()),
            ],
            pictures: vec![
                group("What the softmax takes: rows are queries, columns are keys", self.score_pictures()),
                group("Weights: every row sums to 1", self.weight_pictures()),
            ],
            tables: self.tables(digits),
            ..Report::default()
        }
    }

    /// The weights of every head, as one picture.
    pub fn weights_svg(&self) -> String {
        row_svg(&self.weight_pictures())
    }

    fn weight_pictures(&self) -> Vec<String> {
        self.pictures("weights", |head| &head.weights, |_| HeatMapOptions::default())
    }

    fn score_pictures(&self) -> Vec<String> {
        let options = |numbers: &Matrix| HeatMapOptions {
            full: (numbers.largest() as f32).clamp(f32::MIN_POSITIVE, f32::MAX),
            colours: ColourScale::Diverging,
            ..HeatMapOptions::default()
        };
        self.pictures("scores", |head| &head.masked, options)
    }

    fn pictures(
        &self,
        what: &str,
        of: impl Fn(&HeadSolution) -> &Matrix,
        options: impl Fn(&Matrix) -> HeatMapOptions,
    ) -> Vec<String> {
        let picture = |(number, head): (usize, &HeadSolution)| {
            let numbers = of(head);
            let title =
                if self.heads.len() == 1 { what.to_owned() } else { format!("{what}, head {}", number + 1) };
            // A masked score has no colour; one beyond f32 has the strongest.
            let colour = |&value: &f64| if value.is_finite() { value as f32 } else { 0.0 };
            let most = f32::MAX;
            let values: Vec<f32> =
                numbers.rows().flatten().map(colour).map(|value| value.clamp(-most, most)).collect();
            let options = HeatMapOptions { title, ..options(numbers) };
            heat_map_svg(&values, &self.exercise.tokens, &self.exercise.key_tokens, &options)
        };
        self.heads.iter().enumerate().map(picture).collect()
    }

    /// One table for each step that does something.
    fn tables(&self, digits: usize) -> Vec<Table> {
        self.steps().iter().map(|step| step.table(digits)).collect()
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let (tokens, key_tokens) = (&self.exercise.tokens, &self.exercise.key_tokens);
        let step = |title: &str, rows, numbers| Step::new(title, rows, numbers);
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
        for (title, rows, numbers) in [
            (&titles[0], tokens, &self.q),
            (&titles[1], key_tokens, &self.k),
            (&titles[2], key_tokens, &self.v),
        ] {
            steps.push(step(title, rows, numbers));
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
        let by_key = |title: String, numbers| Step {
            title: format!("{name}{title}"),
            rows: tokens,
            columns: self.exercise.key_tokens.clone(),
            numbers,
        };
        let mut steps = vec![by_key(format!("scores = {}", score.raw_formula()), &head.scores)];
        let mut last = "scores";
        if matches!(score, Score::ScaledDot) {
            steps.push(by_key(format!("scaled = scores / √{d_k}"), &head.scaled));
            last = "scaled";
        }
        if !self.exercise.mask.is_empty() {
            steps.push(by_key(
                format!("masked = {last}, −∞ where hidden ({})", self.mask_in_words()),
                &head.masked,
            ));
            last = "masked";
        }
        steps.push(by_key(format!("weights = softmax({last}), row by row"), &head.weights));
        steps.push(Step::new(&format!("{name}result = weights V"), tokens, &head.result));
        steps
    }

    fn mask_in_words(&self) -> String {
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
    fn new(title: &str, rows: &'a [String], numbers: &'a Matrix) -> Step<'a> {
        let columns = (1..=numbers.width()).map(|column| column.to_string()).collect();
        Step { title: title.to_owned(), rows, columns, numbers }
    }

    fn table(&self, digits: usize) -> Table {
        let row = |(label, numbers): (&String, &[f64])| {
            let numbers = numbers.iter().map(|&number| written(number, digits));
            [label.clone()].into_iter().chain(numbers).collect()
        };
        Table {
            title: self.title.clone(),
            columns: [String::new()].into_iter().chain(self.columns.iter().cloned()).collect(),
            rows: self.rows.iter().zip(self.numbers.rows()).map(row).collect(),
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
        if matches!(self, Score::ScaledDot) { "Q Kᵀ / √d_k" } else { self.raw_formula() }
    }

    /// The formula before scaling.
    fn raw_formula(&self) -> &'static str {
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

/// A number with so many digits after the point; in powers of ten if it is very large.
fn written(number: f64, digits: usize) -> String {
    if number == f64::NEG_INFINITY {
        "−∞".to_owned()
    } else if number.abs() >= 1e7 {
        format!("{number:.digits$e}")
    } else {
        // No negative zero.
        format!(
            "{:.digits$}",
            if format!("{number:.digits$}").trim_matches(['-', '0', '.']).is_empty() { 0.0 } else { number }
        )
    }
}

/// Rows of numbers; null for −∞, which JSON does not have.
fn rows(matrix: &Matrix) -> Value {
    matrix.rows().map(|row| row.iter().map(|&number| json!(number)).collect::<Value>()).collect()
}
