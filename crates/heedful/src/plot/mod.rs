//! Plots: SVG written by hand, PNG rendered from it (feature `png`), and `report.html`, one file that needs no network. Nothing here
//! depends on models.
//!
//! Pictures take the colour of the text around them (`currentColor`) and a handful of CSS variables with fallbacks, so
//! the same SVG works on a light page, on a dark one and as a file of its own. Magnitude is always one hue over the
//! background, never a rainbow: it reads the same with every kind of colour vision.

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
pub use line_chart::{LineChart, Mark, Series};
pub use numbers::thousands;
#[cfg(feature = "png")]
pub use png::{Png, PngError, png};
pub use report::{AttentionGrid, Fact, Picture, Report, Status, Table};
pub use report::{PictureGroup, SampleHistory, SettingsGroup};
pub(crate) use row::row_svg;
