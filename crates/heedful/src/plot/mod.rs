//! Plots as handwritten SVG, PNG rendered from it (feature `png`), and `report.html`, a single file that
//! needs no network. Nothing here depends on models.
//!
//! Pictures use `currentColor` and a few CSS variables with fallbacks, so the same SVG works on a light page,
//! on a dark page and as a standalone file. Magnitude is always shown as one hue over the background, never
//! as a rainbow, so it is readable with every kind of colour vision.

pub(crate) mod markup;
mod numbers;

mod alignment;
mod heat_map;

mod colour_scale;

mod axis;
mod bar_chart;
mod legend;
mod line_chart;
mod row;
mod token_grid;

#[cfg(feature = "png")]
mod png;

mod report;

pub use alignment::alignment_svg;
pub use axis::Scale;
pub use bar_chart::{Bar, BarChart, BarGroup, bar_chart_svg};
pub use colour_scale::with_colour_scale;
pub use heat_map::ColourScale;
pub use heat_map::{HeatMapOptions, heat_map_svg};
pub(crate) use line_chart::line_chart_svg;
pub use line_chart::{Highlight, LineChart, Series};
pub use numbers::thousands;
#[cfg(feature = "png")]
pub use png::{Png, PngError, png};
pub use report::{AttentionGrid, Fact, Picture, Report, Status, Table};
pub use report::{PictureGroup, SampleHistory, SettingsGroup};
pub(crate) use row::row_svg;
pub use token_grid::{TokenCell, token_grid_svg};
