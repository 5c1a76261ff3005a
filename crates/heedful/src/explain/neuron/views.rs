//! The neuron view as tables and pictures.

use super::{NeuronView, PairView, PathStep, TokenPath};
use crate::plot::{
    ColourScale, Fact, HeatMapOptions, PictureGroup, Report, Status, Table, heat_map_svg, with_colour_scale,
};

/// Values of a state that fit a table's cell.
const FIRST_VALUES: usize = 4;

impl NeuronView {
    /// The elements of the pair, the weights of the query, the states of the path, and the logits.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.pair.elements(), self.pair.row(), self.path.states(), self.path.largest()]
    }

    /// Query, key and their products as a heat map.
    pub fn svg(&self) -> String {
        let PairView { q, k, products, .. } = &self.pair;
        let values: Vec<f32> = [&q[..], k, products].concat();
        let full = values.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, f32::max);
        let options = HeatMapOptions { title: self.pair.title(), full, colours: ColourScale::Diverging };
        let columns: Vec<String> = (0..q.len()).map(|element| element.to_string()).collect();
        let rows = ["q", "k", "q ∘ k"].map(str::to_owned);
        with_colour_scale(&heat_map_svg(&values, &rows, &columns, &options), &options)
    }

    /// The states of the path as a heat map.
    fn path_svg(&self) -> Option<String> {
        let width = self.path.steps.first()?.values.len();
        let steps: Vec<&PathStep> =
            self.path.steps.iter().filter(|step| step.values.len() == width).collect();
        let values: Vec<f32> = steps.iter().flat_map(|step| step.values.iter().copied()).collect();
        let full = values.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, f32::max);
        let title = format!("States of {}", self.path.token.piece);
        let options = HeatMapOptions { title, full, colours: ColourScale::Diverging };
        let rows: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let columns = vec![String::new(); width];
        Some(with_colour_scale(&heat_map_svg(&values, &rows, &columns, &options), &options))
    }

    /// Pictures and tables in one page.
    pub fn report(&self, subtitle: &str) -> Report {
        let pictures = [self.svg()].into_iter().chain(self.path_svg());
        Report {
            title: "One attention weight and one path".to_owned(),
            subtitle: subtitle.to_owned(),
            status: Status::Absent,
            results: vec![
                Fact::new("q · k", format!("{:.4}", self.pair.dot)),
                Fact::new(
                    "score",
                    self.pair.score.map_or("masked".to_owned(), |score| format!("{score:.4}")),
                ),
                Fact::new("weight", format!("{:.4}", self.pair.weight)),
            ],
            pictures: vec![PictureGroup {
                title: self.pair.head.clone(),
                note: self.pair.title(),
                pictures: pictures.map(Into::into).collect(),
            }],
            tables: self.tables(),
            ..Report::default()
        }
    }
}

impl PairView {
    fn title(&self) -> String {
        format!(
            "{}: {} (position {}) attends to {} (position {})",
            self.head, self.query.piece, self.query.position, self.key.piece, self.key.position
        )
    }

    fn elements(&self) -> Table {
        let number = |value: f32| format!("{value:.4}");
        let elements = self.q.iter().zip(&self.k).zip(&self.products).enumerate();
        let rows = elements.map(|(element, ((&q, &k), &product))| {
            vec![element.to_string(), number(q), number(k), number(product)]
        });
        let score = self.score.map_or("masked".to_owned(), number);
        let sum = format!("q · k {:.4}, score {score}, weight {:.4}", self.dot, self.weight);
        Table {
            title: format!("{}: {sum}", self.title()),
            columns: ["element", "q", "k", "q ∘ k"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    fn row(&self) -> Table {
        let rows = self.keys.iter().zip(&self.weights);
        Table {
            title: format!("Weights of the query {}", self.query.piece),
            columns: vec!["key".to_owned(), "weight".to_owned()],
            rows: rows.map(|(key, weight)| vec![key.clone(), format!("{weight:.4}")]).collect(),
        }
    }
}

impl TokenPath {
    fn states(&self) -> Table {
        let row = |step: &PathStep| {
            let first: Vec<String> =
                step.values.iter().take(FIRST_VALUES).map(|value| format!("{value:.3}")).collect();
            let more = if step.values.len() > FIRST_VALUES { " …" } else { "" };
            vec![step.name.clone(), format!("{:.3}", step.norm), first.join(" ") + more]
        };
        Table {
            title: format!("Path of {} from the embedding", self.token.piece),
            columns: ["state", "norm", "first values"].map(str::to_owned).to_vec(),
            rows: self.steps.iter().map(row).collect(),
        }
    }

    fn largest(&self) -> Table {
        let rows = self.logits.iter().map(|logit| vec![logit.piece.clone(), format!("{:.4}", logit.logit)]);
        Table {
            title: "Largest logits at its position".to_owned(),
            columns: vec!["token".to_owned(), "logit".to_owned()],
            rows: rows.collect(),
        }
    }
}
