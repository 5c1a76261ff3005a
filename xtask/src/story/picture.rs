//! The pictures of a chapter: SVG that a page shows as it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(super) struct Picture<'a> {
    /// Its file in the folder of pictures, and, where it is not part of a report, the file that a command wrote.
    pub(super) name: &'a str,
    /// The report that it is part of, and its title there.
    pub(super) report: Option<(&'a str, &'a str)>,
}

/// Lines and letters, on white: in an `<img>` a picture does not know the colours of the page around it.
const INK: &str = "#1f2328";
const PAPER: &str = r##"<rect width="100%" height="100%" fill="#fff"/>"##;

impl Picture<'_> {
    /// The picture that the commands left in the folder.
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
        on_paper(&svg).with_context(|| format!("{} is not SVG", self.name))
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

/// The picture with colours of its own, and without the titles that a pointer would show. `None` if it has no opening tag.
fn on_paper(svg: &str) -> Option<String> {
    let inside = svg.find('>')? + 1;
    let mut drawn = format!("{}{PAPER}{}", &svg[..inside], &svg[inside..]).replace("currentColor", INK);
    // `var(--heat,#0b5c8a)`: a colour of the page, and the one to take without it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_the_page_are_replaced() {
        let svg = r##"<svg width="9"><path fill="var(--heat,#0b5c8a)" stroke="currentColor"><title>0.9</title></path></svg>"##;
        let expected =
            format!("<svg width=\"9\">{PAPER}<path fill=\"#0b5c8a\" stroke=\"{INK}\"></path></svg>\n");
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
