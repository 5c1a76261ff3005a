//! A chapter's text: its commands, pictures and quotations of output.

use anyhow::{Context, Result};

use super::FOLDER;
use super::picture::Picture;
use crate::markdown::{self, Block};

const CHINESE: &str = ".zh.md";

pub(super) struct Chapter<'a> {
    text: &'a str,
}

/// Whether a path is that of a chapter in English: `docs/story/NN-NAME.md`.
pub(super) fn is_english(path: &str) -> bool {
    let name = path.strip_prefix(FOLDER).unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".md") && !name.ends_with(CHINESE)
}

/// The path of the same chapter in Chinese.
pub(super) fn chinese(english: &str) -> String {
    format!("{}{CHINESE}", english.trim_end_matches(".md"))
}

impl<'a> Chapter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Chapter { text }
    }

    /// The shell blocks.
    pub(super) fn scripts(&self) -> Vec<String> {
        let blocks = markdown::blocks(self.text).into_iter().filter(|block| block.language == "sh");
        blocks.map(|block| block.lines.join("\n")).collect()
    }

    /// Number of blocks that are neither commands nor printed output.
    pub(super) fn formulas(&self) -> usize {
        let is_formula = |block: &Block<'_>| block.language == "text" && printed(block).is_none();
        markdown::blocks(self.text).iter().filter(|block| is_formula(block)).count()
    }

    /// Whether no quotation is empty.
    pub(super) fn is_filled(&self) -> bool {
        markdown::blocks(self.text).iter().all(|block| printed(block).is_none() || !block.lines.is_empty())
    }

    /// The pictures, and the comments above them.
    pub(super) fn pictures(&self) -> Vec<Picture<'a>> {
        let mut above = "";
        let mut pictures = Vec::new();
        for line in self.text.lines() {
            let target = line.strip_prefix("![").and_then(|line| line.split_once("](pictures/"));
            if let Some((name, _)) = target.and_then(|(_, rest)| rest.split_once(')')) {
                let report = markdown::comment(above).and_then(|comment| comment.strip_prefix("drawn:"));
                let report = report.and_then(|words| words.trim().split_once(' '));
                pictures.push(Picture { name, report });
            }
            above = line;
        }
        pictures
    }

    /// The text with every quotation replaced by the output of the scripts.
    pub(super) fn filled(&self, outputs: &[String]) -> Result<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut copied = 0;
        let all: Vec<&str> = self.text.lines().collect();
        let mut scripts = 0;
        for block in markdown::blocks(self.text) {
            scripts += usize::from(block.language == "sh");
            let Some(which) = printed(&block) else { continue };
            let output = scripts.checked_sub(1).and_then(|script| outputs.get(script));
            let output = output.with_context(|| {
                format!("line {}: no `sh` block above this one was run", block.opening + 1)
            })?;
            lines.extend(all[copied..=block.opening].iter().map(|&line| line.to_owned()));
            lines.extend(excerpt(output, which).with_context(|| format!("line {}", block.opening))?);
            copied = block.opening + 1 + block.lines.len();
        }
        lines.extend(all[copied..].iter().map(|&line| line.to_owned()));
        Ok(lines.join("\n") + "\n")
    }
}

/// The selection of lines, if the block quotes an output; empty for the whole output.
fn printed<'a>(block: &Block<'a>) -> Option<&'a str> {
    let rest = block.comment?.strip_prefix("printed")?;
    Some(rest.trim_start_matches(':').trim())
}

/// The lines selected by `which`: `3 lines from TEXT`, or all.
fn excerpt(output: &str, which: &str) -> Result<Vec<String>> {
    let lines: Vec<String> = output.lines().map(|line| line.trim_end().to_owned()).collect();
    let (first, count) = if which.is_empty() {
        (0, lines.len())
    } else {
        let (count, text) = which.split_once(" lines from ").context("expected `N lines from TEXT`")?;
        let first = lines.iter().position(|line| line.contains(text));
        (first.with_context(|| format!("no printed line contains `{text}`"))?, count.parse()?)
    };
    let chosen: Vec<String> = lines.into_iter().skip(first).take(count).collect();
    let is_blank = |line: &String| line.is_empty();
    let begin = chosen.iter().take_while(|line| is_blank(line)).count();
    let end = chosen.len() - chosen[begin..].iter().rev().take_while(|line| is_blank(line)).count();
    Ok(chosen[begin..end].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# One\n```text\nq · k\n```\n```sh\nheedful a\nheedful b\n```\n<!-- printed: 2 lines from all -->\n```text\nold\n\
        old\nold\n```\n![p](pictures/p.svg)\n\n<!-- drawn: a/report.html BLEU score -->\n![r](pictures/r.svg)\n";

    #[test]
    fn scripts_pictures_and_formulas_are_found() {
        let chapter = Chapter::new(TEXT);
        assert_eq!(chapter.scripts(), ["heedful a\nheedful b"]);
        assert_eq!(chapter.formulas(), 1);
        let pictures: Vec<_> =
            chapter.pictures().iter().map(|picture| (picture.name, picture.report)).collect();
        assert_eq!(pictures, [("p.svg", None), ("r.svg", Some(("a/report.html", "BLEU score")))]);
    }

    #[test]
    fn quotations_are_replaced_and_everything_else_stays() {
        let filled = Chapter::new(TEXT).filled(&["x\nall:  \n\nrest\n".to_owned()]).unwrap();
        assert_eq!(filled, TEXT.replace("old\nold\nold\n", "all:\n"));
        let again = Chapter::new(&filled).filled(&["x\nall: 1\n\nrest\n".to_owned()]).unwrap();
        assert_eq!(again, TEXT.replace("old\nold\nold\n", "all: 1\n"));
        assert!(Chapter::new(TEXT).filled(&["x\n".to_owned()]).is_err());
        assert!(Chapter::new(TEXT).filled(&[]).is_err());
    }

    #[test]
    fn chapters_have_numbers() {
        assert!(is_english("docs/story/01-one-vector.md"));
        for other in
            ["docs/story/01-one-vector.zh.md", "docs/story/README.md", "docs/01-x.md", "docs/story/01.svg"]
        {
            assert!(!is_english(other), "{other}");
        }
        assert_eq!(chinese("docs/story/01-one-vector.md"), "docs/story/01-one-vector.zh.md");
    }
}
