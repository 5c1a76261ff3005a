//! Attributions as tables and as pictures.

use super::{AttributedTarget, Attribution, Completeness};
use crate::plot::{
    ColourScale, Fact, HeatMapOptions, PictureGroup, Report, Status, Table, heat_map_svg, with_colour_scale,
};

impl Attribution {
    /// One row for each prediction, one column for each input token.
    pub fn table(&self) -> Table {
        let mut columns = vec!["target".to_owned(), "log p".to_owned()];
        columns.extend(self.columns());
        if self.steps.is_some() {
            columns.push("completeness error".to_owned());
        }
        let row = |target: &AttributedTarget| {
            let mut cells = vec![target.target.piece.clone(), format!("{:.3}", target.log_probability)];
            cells.extend(target.scores.iter().flatten().map(|score| format!("{score:.3}")));
            cells.extend(target.completeness.map(|completeness| format!("{:.2} %", completeness.percent())));
            cells
        };
        Table { title: self.title(), columns, rows: self.targets.iter().map(row).collect() }
    }

    /// A heat map of predictions × input tokens.
    pub fn svg(&self) -> String {
        let values: Vec<f32> = self
            .targets
            .iter()
            .flat_map(|target| target.scores.iter().flatten().map(|&score| score as f32))
            .collect();
        let full = values.iter().map(|value| value.abs()).fold(f32::MIN_POSITIVE, f32::max);
        let options = HeatMapOptions { title: self.title(), full, colours: ColourScale::Diverging };
        let rows: Vec<String> = self.targets.iter().map(|target| target.target.piece.clone()).collect();
        with_colour_scale(&heat_map_svg(&values, &rows, &self.columns(), &options), &options)
    }

    /// The largest relative completeness error of all predictions; `None` for other methods.
    pub fn completeness_error(&self) -> Option<f64> {
        let errors = self.targets.iter().filter_map(|target| target.completeness);
        errors.map(|completeness| completeness.relative_error).reduce(f64::max)
    }

    /// Picture and table in one page.
    pub fn report(&self, subtitle: &str) -> Report {
        let mut results = vec![Fact::new("method", self.method)];
        if let Some(error) = self.completeness_error() {
            results.push(Fact::new("largest completeness error", format!("{:.2} %", 100.0 * error)));
        }
        Report {
            title: "Where a prediction comes from".to_owned(),
            subtitle: subtitle.to_owned(),
            status: Status::Absent,
            results,
            pictures: vec![PictureGroup {
                title: "Contributions".to_owned(),
                note: "rows: predictions; columns: input tokens".to_owned(),
                pictures: vec![self.svg().into()],
            }],
            tables: vec![self.table()],
            ..Report::default()
        }
    }

    fn title(&self) -> String {
        format!("Contributions by {}", self.method)
    }

    /// All input tokens.
    fn columns(&self) -> Vec<String> {
        self.inputs.iter().flat_map(|inputs| inputs.pieces.iter().cloned()).collect()
    }
}

impl Completeness {
    /// The relative error in percent.
    fn percent(&self) -> f64 {
        100.0 * self.relative_error
    }
}
