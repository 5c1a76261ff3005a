//! Effects of patches as tables and pictures.

use super::{PatchGrid, PatchUnit, Patching};
use crate::plot::{
    ColourScale, Fact, HeatMapOptions, Picture, PictureGroup, Report, Status, Table, heat_map_svg,
    with_colour_scale,
};

impl Patching {
    /// One table for each grid.
    pub fn tables(&self) -> Vec<Table> {
        let table = |grid: &PatchGrid| Table {
            title: self.title(),
            columns: ["layer".to_owned()].into_iter().chain(grid.columns.iter().cloned()).collect(),
            rows: grid
                .rows
                .iter()
                .zip(&grid.effects)
                .map(|(row, effects)| {
                    let effects = effects.iter().map(|effect| format!("{effect:.2}"));
                    [row.clone()].into_iter().chain(effects).collect()
                })
                .collect(),
        };
        self.grids.iter().map(table).collect()
    }

    /// The heat map of one grid.
    fn heat_map(&self, grid: &PatchGrid) -> String {
        let options = HeatMapOptions { title: self.title(), full: 1.0, colours: ColourScale::Diverging };
        let values: Vec<f32> = grid.effects.iter().flatten().map(|&effect| effect as f32).collect();
        with_colour_scale(&heat_map_svg(&values, &grid.rows, &grid.columns, &options), &options)
    }

    /// The heat map of one grid, counted from 0; the last one if there are fewer.
    pub fn svg(&self, grid: usize) -> String {
        let grid = self.grids.get(grid).or(self.grids.last());
        grid.map_or_else(String::new, |grid| self.heat_map(grid))
    }

    /// Pictures and tables in one page.
    pub fn report(&self, subtitle: &str) -> Report {
        let pictures = self.grids.iter().map(|grid| Picture::from(self.heat_map(grid)));
        Report {
            title: "Where the answer is decided".to_owned(),
            subtitle: subtitle.to_owned(),
            status: Status::Absent,
            results: vec![
                Fact::new("answer", &self.answer.piece),
                Fact::new("wrong answer", &self.wrong.piece),
                Fact::new("log p(answer) − log p(wrong), clean", format!("{:.3}", self.clean)),
                Fact::new("the same, corrupted", format!("{:.3}", self.corrupted)),
            ],
            pictures: vec![PictureGroup {
                title: self.title(),
                note: "0: no effect; 1: the answer of the clean text".to_owned(),
                pictures: pictures.collect(),
            }],
            tables: self.tables(),
            ..Report::default()
        }
    }

    fn title(&self) -> String {
        let unit = match self.unit {
            PatchUnit::States => "states",
            PatchUnit::Heads => "heads",
        };
        format!("Effect of clean {unit} on {} against {}", self.answer.piece, self.wrong.piece)
    }
}
