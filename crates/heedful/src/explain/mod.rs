//! Numbers in, pictures out: SVG written by hand, and `report.html`, one file that needs no network.
//!
//! Pictures take the colour of the text around them (`currentColor`) and a handful of CSS variables with fallbacks, so
//! the same SVG is right on a light page, on a dark one and as a file of its own. Magnitude is always one hue over the
//! background, never a rainbow: it reads the same with every kind of colour vision.

mod alignment;
mod axis;
mod explanation;
pub mod heads;
mod heat_map;
mod legend;
mod line_chart;
mod markup;
mod numbers;
mod pictures;
mod png;
mod report;
mod viewer;
mod views;

pub use alignment::alignment_svg;
pub use axis::Scale;
pub use explanation::{
    ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, Heads,
    WeightForm,
};
pub use heat_map::{HeatMapOptions, Hue, heat_map_svg};
pub use line_chart::{LineChart, Mark, Series, line_chart_svg};
pub use numbers::thousands;
pub use pictures::{position_table_svg, schedule_svg};
pub use png::{Png, PngError, png};
pub use report::{AttentionGrid, Fact, PictureGroup, Report, SampleHistory, SettingsGroup, Status, Table};
pub use viewer::{FILES as VIEWER_FILES, page};
pub use views::{HeadChoice, LayerChoice, Level, Matrix, ViewError, grid_svg, words_svg};
