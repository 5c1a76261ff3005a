//! The lens as a table and as pictures.

use super::{Lens, LensLayer, LensPosition, LensPrediction};
use crate::plot::{Fact, Picture, PictureGroup, Report, Status, Table, TokenCell, token_grid_svg};

impl Lens {
    /// One row for each position, one column for each layer: the layer's best token, its probability, and the
    /// rank of the target.
    pub fn table(&self) -> Table {
        let cell = |layer: &LensLayer, position: usize| {
            let LensPrediction { top, rank, .. } = &layer.predictions[position];
            let best = top
                .first()
                .map_or_else(String::new, |best| format!("{} {:.2}", best.piece, best.probability));
            format!("{best} #{rank}")
        };
        let row = |(number, position): (usize, &LensPosition)| {
            let layers = self.layers.iter().map(|layer| cell(layer, number));
            [label(position)].into_iter().chain(layers).collect()
        };
        Table {
            title: "Best token of each layer, its probability, and the rank of the target".to_owned(),
            columns: ["target".to_owned()]
                .into_iter()
                .chain(self.layers.iter().map(|layer| layer.name.clone()))
                .collect(),
            rows: self.positions.iter().enumerate().map(row).collect(),
        }
    }

    /// Layers (rows, the last at the top) × positions, coloured by the probability of the layer's best token.
    pub fn svg(&self) -> String {
        let cell = |prediction: &LensPrediction| {
            let lines =
                prediction.top.iter().map(|token| format!("{} {:.4}", token.piece, token.probability));
            let target = format!("target: {:.4}, rank {}", prediction.probability, prediction.rank);
            let best = prediction.top.first();
            TokenCell {
                text: best.map_or_else(String::new, |best| best.piece.clone()),
                value: best.map_or(0.0, |best| best.probability as f32),
                is_outlined: prediction.rank == 1,
                tooltip: lines.chain([target]).collect::<Vec<_>>().join("\n"),
            }
        };
        let layers = || self.layers.iter().rev();
        let rows: Vec<String> = layers().map(|layer| layer.name.clone()).collect();
        let columns: Vec<String> = self.positions.iter().map(label).collect();
        let cells: Vec<TokenCell> = layers().flat_map(|layer| layer.predictions.iter().map(cell)).collect();
        token_grid_svg(&cells, &rows, &columns, "Best token of each layer; outlined where it is the target")
    }

    /// Picture, tables and all numbers in one page.
    pub fn report(&self, title: &str) -> Report {
        let picture = Picture {
            svg: self.svg(),
            caption: "Colour: the probability of the layer's best token. Hover over a cell for more."
                .to_owned(),
        };
        let last = self.layers.last().map(|layer| &layer.predictions);
        let probability = last.map_or(0.0, |last| {
            let sum: f64 = last.iter().map(|prediction| prediction.probability.ln()).sum();
            sum / last.len().max(1) as f64
        });
        Report {
            title: "What each layer predicts".to_owned(),
            subtitle: title.to_owned(),
            status: Status::Absent,
            results: vec![Fact::new("mean log-probability of the targets", format!("{probability:.3}"))],
            pictures: vec![PictureGroup {
                title: "Logit lens".to_owned(),
                note: String::new(),
                pictures: vec![picture],
            }],
            tables: vec![self.table()],
            ..Report::default()
        }
    }
}

fn label(position: &LensPosition) -> String {
    position.target.piece.clone()
}
