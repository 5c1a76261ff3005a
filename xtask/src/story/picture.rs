//! The pictures of a chapter, converted to standalone SVG.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(super) struct Picture<'a> {
    /// Its file in the folder of pictures; unless it is part of a report, also the name of the file that a
    /// command wrote.
    pub(super) name: &'a str,
    /// The report that contains it, and its title there.
    pub(super) report: Option<(&'a str, &'a str)>,
}

/// Foreground and background colours: an SVG in an `<img>` cannot use the colours of the page.
const INK: &str = "#1f2328";
const PAPER: &str = "#fff";
/// Margin around the picture.
const MARGIN: f64 = 10.0;

impl Picture<'_> {
    /// The picture that the commands wrote to the folder.
    pub(super) fn drawing(&self, folder: &Path) -> Result<String> {
        let read = |file: &str| {
            fs::read_to_string(folder.join(file)).with_context(|| format!("no command wrote {file}"))
        };
        let svg = match self.report {
            None => read(self.name)?,
            Some((file, title)) => {
                let report = read(file)?;
                chart(&report, title).with_context(|| format!("{file} has no chart `{title}`"))?.to_owned()
            }
        };
        on_paper(&svg).with_context(|| format!("{} is not SVG of ours", self.name))
    }
}

/// The chart of this title in a page.
fn chart<'a>(page: &'a str, title: &str) -> Option<&'a str> {
    let label = format!("aria-label=\"{title}\"");
    page.match_indices("<svg").find_map(|(start, _)| {
        let rest = &page[start..];
        let tag = &rest[..rest.find('>')?];
        let end = rest.find("</svg>")? + "</svg>".len();
        tag.contains(&label).then_some(&rest[..end])
    })
}

/// The picture with fixed colours and without tooltips (`<title>`). `None` if it has no size.
fn on_paper(svg: &str) -> Option<String> {
    let (tag, inside) = svg.split_once('>')?;
    let [width, height] = size(tag)?;
    let [wide, high] = [width, height].map(|length| ((length + 2.0 * MARGIN) * 10.0).round() / 10.0);
    let paper =
        format!(r#"<rect x="-{MARGIN}" y="-{MARGIN}" width="{wide}" height="{high}" fill="{PAPER}"/>"#);
    let tag = tag
        .replace(
            &format!(r#"viewBox="0 0 {width} {height}""#),
            &format!(r#"viewBox="-{MARGIN} -{MARGIN} {wide} {high}""#),
        )
        .replace(&format!(r#" width="{width}""#), &format!(r#" width="{wide}""#))
        .replace(&format!(r#" height="{height}""#), &format!(r#" height="{high}""#));
    let mut drawn = format!("{tag}>{paper}{inside}").replace("currentColor", INK);
    // `var(--heat,#0b5c8a)`: a colour of the page with a fallback.
    while let Some(start) = drawn.find("var(--") {
        let end = start + drawn[start..].find(')')?;
        let default = drawn[start..end].split_once(',')?.1.trim().to_owned();
        drawn.replace_range(start..=end, &default);
    }
    while let Some(start) = drawn.find("<title>") {
        let end = start + drawn[start..].find("</title>")?;
        drawn.replace_range(start..end + "</title>".len(), "");
    }
    let lines: Vec<&str> = drawn.lines().map(str::trim_end).collect();
    Some(lines.join("\n").trim_end().to_owned() + "\n")
}

/// Width and height in an opening tag.
fn size(tag: &str) -> Option<[f64; 2]> {
    let (_, rest) = tag.split_once(r#"viewBox="0 0 "#)?;
    let (width, height) = rest.split_once('"')?.0.split_once(' ')?;
    Some([width.parse().ok()?, height.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_gets_paper_and_colours_of_its_own() {
        let svg = r##"<svg viewBox="0 0 9.5 7" width="9.5" height="7"><path fill="var(--heat,#0b5c8a)" stroke="currentColor"><title>0.9</title></path></svg>"##;
        let expected = r##"<svg viewBox="-10 -10 29.5 27" width="29.5" height="27"><rect x="-10" y="-10" width="29.5" height="27" fill="#fff"/><path fill="#0b5c8a" stroke="#1f2328"></path></svg>
"##;
        assert_eq!(on_paper(svg).unwrap(), expected);
        assert!(on_paper("nothing").is_none());
    }

    #[test]
    fn a_chart_is_found_by_its_title() {
        let page = r#"<p><svg aria-label="Loss"><g/></svg><svg aria-label="BLEU"><path/></svg></p>"#;
        assert_eq!(chart(page, "BLEU").unwrap(), r#"<svg aria-label="BLEU"><path/></svg>"#);
        assert!(chart(page, "chrF").is_none());
    }
}
