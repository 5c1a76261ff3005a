//! Attention weights as pictures in a terminal: a darker or brighter cell for each weight in [0, 1].
//!
//! Colours on a terminal that has them, block characters on one that has not, ASCII in files and pipes.

use std::env;
use std::io::{self, IsTerminal, Write};

/// How cells are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Background colours of the 256-colour palette.
    Colour,
    /// ▁▂▃▄▅▆▇█
    Blocks,
    /// From `.` to `@`.
    Plain,
}

/// Weights of rows × columns with a title.
pub(crate) struct Heatmap {
    title: String,
    weights: Vec<f32>,
}

/// From dark blue through red to light yellow; brightness rises all the way, so it reads without colours too.
const COLOURS: [u8; 12] = [233, 17, 18, 54, 90, 126, 162, 168, 203, 209, 215, 229];
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
const CELL: usize = 2;
const GAP: &str = "    ";

impl Style {
    /// What standard output can show.
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

    fn cell(self, weight: f32) -> String {
        match self {
            Style::Colour => {
                let colour = COLOURS[level(weight, COLOURS.len())];
                format!("\x1b[48;5;{colour}m{:CELL$}\x1b[0m", "")
            }
            Style::Blocks => BLOCKS[level(weight, BLOCKS.len())].to_string().repeat(CELL),
            Style::Plain => SHADES[level(weight, SHADES.len())].to_string().repeat(CELL),
        }
    }
}

impl Heatmap {
    /// A picture of weights, row after row.
    pub(crate) fn new(title: &str, weights: Vec<f32>) -> Heatmap {
        Heatmap { title: title.to_owned(), weights }
    }

    /// Draws pictures of the same rows and columns beside each other.
    ///
    /// # Panics
    /// If a picture has not as many weights as rows × columns.
    pub(crate) fn write_side_by_side(
        pictures: &[Heatmap],
        columns: &str,
        rows: &[String],
        style: Style,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let count = columns.chars().count();
        let labels = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
        let margin = " ".repeat(labels + 1);
        let width = labels + 1 + count * CELL;
        let titles =
            pictures.iter().map(|picture| format!("{margin}{:1$}", picture.title, width - labels - 1));
        write_line(out, &titles.collect::<Vec<_>>().join(GAP))?;
        let heading: String = columns.chars().map(|letter| format!("{letter:CELL$}")).collect();
        write_line(out, &vec![format!("{margin}{heading}"); pictures.len()].join(GAP))?;
        for (i, row) in rows.iter().enumerate() {
            let strip = |picture: &Heatmap| {
                assert_eq!(picture.weights.len(), rows.len() * count, "heat map {}", picture.title);
                let weights = &picture.weights[i * count..(i + 1) * count];
                let cells: String = weights.iter().map(|&weight| style.cell(weight)).collect();
                format!("{row:>labels$} {cells}")
            };
            write_line(out, &pictures.iter().map(strip).collect::<Vec<_>>().join(GAP))?;
        }
        Ok(())
    }
}

fn write_line(out: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(out, "  {}", line.trim_end())
}

fn level(weight: f32, levels: usize) -> usize {
    ((weight.clamp(0.0, 1.0) * levels as f32) as usize).min(levels - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(style: Style) -> String {
        let weights = vec![0.0, 1.0, 0.55, 0.45];
        let pictures = [Heatmap::new("mean", weights.clone()), Heatmap::new("head 0", weights)];
        let mut out = Vec::new();
        let rows = ["b".to_owned(), "end".to_owned()];
        Heatmap::write_side_by_side(&pictures, "ab", &rows, style, &mut out).expect("memory takes all");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn plain_pictures_are_ascii_and_aligned() {
        let expected = [
            "      mean        head 0",
            "      a b         a b",
            "    b   @@      b   @@",
            "  end ++==    end ++==",
            "",
        ];
        assert_eq!(drawn(Style::Plain), expected.join("\n"));
    }

    #[test]
    fn blocks_and_colours() {
        assert!(drawn(Style::Blocks).contains("end ▄▄▄▄"), "{}", drawn(Style::Blocks));
        assert!(drawn(Style::Colour).contains("\x1b[48;5;229m  \x1b[0m"));
    }

    #[test]
    fn weights_outside_of_their_range_are_drawn_too() {
        assert_eq!((level(-0.1, 9), level(0.0, 9), level(1.0, 9), level(1.1, 9)), (0, 0, 8, 8));
        assert_eq!(level(f32::NAN, 9), 0);
    }
}
