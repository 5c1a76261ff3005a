//! Heat maps of attention weights in a terminal: one cell, darker or brighter, for each weight in [0, 1].
//!
//! Columns are as wide as their labels on the terminal, where a Chinese character takes two columns
//! of characters. Cells are coloured on a terminal with colours, block characters on one without,
//! ASCII in files and pipes.

use std::env;
use std::io::{self, IsTerminal, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How cells are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Background colours of the 256-colour palette.
    Colour,
    /// ▁▂▃▄▅▆▇█
    Blocks,
    /// ASCII characters from `.` to `@`.
    Plain,
}

/// A title and rows × columns weights.
pub(crate) struct Heatmap {
    title: String,
    weights: Vec<f32>,
}

/// Labels of the rows and columns of heat maps.
pub(crate) struct Labels {
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
}

/// From dark blue through red to light yellow; brightness increases throughout, so that the scale also works
/// in greyscale.
const COLOURS: [u8; 12] = [233, 17, 18, 54, 90, 126, 162, 168, 203, 209, 215, 229];
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Characters between two labels.
const SPACE: usize = 1;
/// Maximum width of a label; a longer one is cut.
const LONGEST_LABEL: usize = 16;
/// Used where the width of the terminal is unknown.
const DEFAULT_WIDTH: usize = 100;
const MARGIN: &str = "  ";
const GAP: &str = "    ";

impl Style {
    /// The best style that standard output can show.
    pub(crate) fn of_stdout() -> Style {
        let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if !io::stdout().is_terminal() {
            Style::Plain
        } else if set("NO_COLOR") || dumb {
            Style::Blocks
        } else {
            Style::Colour
        }
    }

    fn cell(self, weight: f32, width: usize) -> String {
        match self {
            Style::Colour => {
                let colour = COLOURS[level(weight, COLOURS.len())];
                format!("\x1b[48;5;{colour}m{:width$}\x1b[0m", "")
            }
            Style::Blocks => BLOCKS[level(weight, BLOCKS.len())].to_string().repeat(width),
            Style::Plain => SHADES[level(weight, SHADES.len())].to_string().repeat(width),
        }
    }
}

impl Heatmap {
    /// A heat map of weights, row by row.
    pub(crate) fn new(title: &str, weights: Vec<f32>) -> Heatmap {
        Heatmap { title: title.to_owned(), weights }
    }

    /// Draws heat maps of the same rows and columns side by side, as many as fit into `width` characters.
    ///
    /// # Panics
    /// If a heat map does not have rows × columns weights.
    pub(crate) fn write_side_by_side(
        pictures: &[Heatmap],
        labels: &Labels,
        style: Style,
        width: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let rows: Vec<String> = labels.rows.iter().map(|label| shortened(label)).collect();
        let columns: Vec<String> = labels.columns.iter().map(|label| shortened(label)).collect();
        let margin = rows.iter().map(|row| row.width()).max().unwrap_or(0) + SPACE;
        let titles = pictures.iter().map(|picture| picture.title.width()).max().unwrap_or(0);
        let cells: usize = columns.iter().map(|column| column.width() + SPACE).sum();
        let each = margin + cells.max(titles);
        let per_row = ((width + GAP.len()).saturating_sub(MARGIN.len()) / (each + GAP.len())).max(1);
        for (number, pictures) in pictures.chunks(per_row).enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            let line = |part: &dyn Fn(&Heatmap) -> String| {
                let parts: Vec<String> =
                    pictures.iter().map(|picture| padded(&part(picture), each)).collect();
                format!("{MARGIN}{}", parts.join(GAP)).trim_end().to_owned()
            };
            let indent = " ".repeat(margin);
            writeln!(out, "{}", line(&|picture| format!("{indent}{}", picture.title)))?;
            let heading: String =
                columns.iter().map(|column| padded(column, column.width() + SPACE)).collect();
            writeln!(out, "{}", line(&|_| format!("{indent}{heading}")))?;
            for (i, row) in rows.iter().enumerate() {
                let label = format!("{}{row}{}", " ".repeat(margin - SPACE - row.width()), " ".repeat(SPACE));
                writeln!(
                    out,
                    "{}",
                    line(&|picture| format!("{label}{}", picture.strip(i, &columns, style)))
                )?;
            }
        }
        Ok(())
    }

    /// The cells of one row.
    fn strip(&self, row: usize, columns: &[String], style: Style) -> String {
        let weights = self.weights.chunks_exact(columns.len()).nth(row);
        let weights = weights.unwrap_or_else(|| panic!("heat map {}: no weights in row {row}", self.title));
        weights
            .iter()
            .zip(columns)
            .map(|(&weight, column)| style.cell(weight, column.width() + SPACE))
            .collect()
    }
}

/// Width of standard output in characters.
pub(crate) fn stdout_width() -> usize {
    terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| width.0.into())
}

/// `text` padded with spaces to `width` characters; escape sequences count as zero width.
fn padded(text: &str, width: usize) -> String {
    let mut seen = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            characters.by_ref().find(|&end| end == 'm');
        } else {
            seen += character.width().unwrap_or(0);
        }
    }
    format!("{text}{}", " ".repeat(width.saturating_sub(seen)))
}

/// A label that fits, at least one character wide, without control characters, which would move the cursor.
fn shortened(label: &str) -> String {
    let visible: String = label.chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    match visible.width() {
        0 => " ".to_owned(),
        1..=LONGEST_LABEL => visible,
        _ => {
            let mut width = 1;
            let fits = |c: &char| {
                width += c.width().unwrap_or(0);
                width <= LONGEST_LABEL
            };
            visible.chars().take_while(fits).chain(['…']).collect()
        }
    }
}

fn level(weight: f32, levels: usize) -> usize {
    ((weight.clamp(0.0, 1.0) * levels as f32) as usize).min(levels - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(columns: &[&str], style: Style, width: usize) -> String {
        let weights = vec![0.0, 1.0, 0.55, 0.45];
        let pictures = [Heatmap::new("mean", weights.clone()), Heatmap::new("head 1", weights)];
        let owned = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
        let labels = Labels { rows: owned(&["b", "end"]), columns: owned(columns) };
        let mut out = Vec::new();
        Heatmap::write_side_by_side(&pictures, &labels, style, width, &mut out).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn plain_pictures_are_ascii_and_aligned() {
        let expected = [
            "      mean          head 1",
            "      a b           a b",
            "    b   @@        b   @@",
            "  end ++==      end ++==",
            "",
        ];
        assert_eq!(drawn(&["a", "b"], Style::Plain, 80), expected.join("\n"));
    }

    #[test]
    fn chinese_characters_are_two_columns_wide() {
        let expected = ["      mean", "      一 自动驾驶", "    b    @@@@@@@@@", "  end +++=========", ""];
        let drawn = drawn(&["一", "自动驾驶"], Style::Plain, 30);
        assert!(drawn.starts_with(&expected.join("\n")), "{drawn}");
        assert!(drawn.contains("\n\n      head 1\n"), "{drawn}");
    }

    #[test]
    fn colours_take_no_width() {
        let line = drawn(&["a", "b"], Style::Colour, 80).lines().nth(3).expect("four lines").to_owned();
        let cells = line.matches("\x1b[48;5;").count();
        assert_eq!(cells, 4);
        assert!(line.contains("\x1b[0m      end"), "{line:?}");
    }

    #[test]
    fn long_labels_are_cut_and_control_characters_replaced() {
        assert_eq!(shortened("自动驾驶自动驾驶自动"), "自动驾驶自动驾…");
        assert_eq!(shortened("a\x1b[2Jb\n"), "a·[2Jb·");
        assert_eq!(shortened(""), " ");
    }

    #[test]
    fn blocks_and_colours() {
        let blocks = drawn(&["a", "b"], Style::Blocks, 80);
        assert!(blocks.contains("end ▄▄▄▄"), "{blocks}");
        assert!(drawn(&["a", "b"], Style::Colour, 80).contains("\x1b[48;5;229m  \x1b[0m"));
    }

    #[test]
    fn weights_outside_of_their_range_are_clamped() {
        assert_eq!((level(-0.1, 9), level(0.0, 9), level(1.0, 9), level(1.1, 9)), (0, 0, 8, 8));
        assert_eq!(level(f32::NAN, 9), 0);
    }
}
