//! Rules of `tidy` for chapters: each has a formula, a link to code, commands, a picture, and a translation
//! with the same blocks.

use super::chapter::{self, Chapter};
use super::{FOLDER, PICTURES};
use crate::markdown;

/// Maximum size of a picture.
const PICTURE_BYTES: usize = 64 << 10;
const INDEXES: [&str; 2] = ["README.md", "README.zh.md"];

/// Complains about incomplete chapters. `files` are paths and texts.
pub(crate) fn check(files: &[(String, String)], complaints: &mut Vec<String>) {
    let text = |path: &str| files.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str());
    let mut shown: Vec<String> = Vec::new();
    let chapters = files.iter().filter(|(path, _)| chapter::is_english(path));
    for (index, (path, english)) in chapters.enumerate() {
        let number = format!("{FOLDER}{:02}-", index + 1);
        if !path.starts_with(&number) {
            complaints.push(format!("{path}: the chapter before this one is missing, or there are two"));
        }
        complaints.extend(lacks(english).into_iter().map(|what| format!("{path}: {what}")));
        let other = chapter::chinese(path);
        match text(&other) {
            Some(chinese) if quoted(chinese) == quoted(english) => {}
            Some(_) => complaints.push(format!("{other}: other blocks, comments or links than in English")),
            None => complaints.push(format!("{other}: the chapter is missing in Chinese")),
        }
        for (index, path) in INDEXES.into_iter().zip([path.as_str(), &other]) {
            let name = path.strip_prefix(FOLDER).unwrap_or(path);
            let index = format!("{FOLDER}{index}");
            if !text(&index).is_some_and(|text| markdown::links(text).iter().any(|link| link.target == name))
            {
                complaints.push(format!("{index}: does not link {name}"));
            }
        }
        shown.extend(
            Chapter::new(english).pictures().iter().map(|picture| format!("{PICTURES}{}", picture.name)),
        );
    }
    for (path, picture) in files.iter().filter(|(path, _)| path.starts_with(PICTURES)) {
        if !shown.contains(path) {
            complaints.push(format!("{path}: no chapter shows it"));
        }
        if picture.len() > PICTURE_BYTES {
            complaints.push(format!("{path}: {} bytes, over {PICTURE_BYTES}: draw less", picture.len()));
        }
    }
}

/// The missing parts of an English chapter.
fn lacks(text: &str) -> Vec<&'static str> {
    let chapter = Chapter::new(text);
    let has_command = chapter.scripts().iter().any(|script| script.starts_with("heedful "));
    let has_code = markdown::links(text).iter().any(|link| link.target.starts_with("../../crates/"));
    let has = [
        (chapter.formulas() > 0, "no formula"),
        (has_command, "no command"),
        (has_code, "no link to the code"),
        (!chapter.pictures().is_empty(), "no picture"),
        (chapter.is_filled(), "a quotation is empty: run `cargo xtask story`"),
    ];
    has.into_iter().filter(|(has, _)| !has).map(|(_, what)| what).collect()
}

/// Parts that are the same in both languages: blocks, comments about the contents of blocks, and link
/// targets.
fn quoted(text: &str) -> Vec<String> {
    let blocks = markdown::blocks(text).into_iter().map(|block| block.lines.join("\n"));
    let comments = text.lines().filter_map(markdown::comment).map(str::to_owned);
    let links = markdown::links(text).into_iter().map(|link| link.target.replace(".zh.md", ".md"));
    blocks.chain(comments).chain(links).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAPTER: &str = "# One\n```text\nq · k\n```\n[code](../../crates/a.rs)\n```sh\nheedful a\n```\n![p](pictures/p.svg)\n\
        [next](02-b.md)\n";

    fn complaints(changes: &[(&str, &str)]) -> Vec<String> {
        let mut files: Vec<(String, String)> = [
            ("docs/story/01-a.md", CHAPTER.to_owned()),
            ("docs/story/01-a.zh.md", CHAPTER.replace("02-b.md", "02-b.zh.md")),
            ("docs/story/README.md", "[a](01-a.md)\n".to_owned()),
            ("docs/story/README.zh.md", "[a](01-a.zh.md)\n".to_owned()),
            ("docs/story/pictures/p.svg", "<svg/>\n".to_owned()),
        ]
        .map(|(path, text)| (path.to_owned(), text))
        .to_vec();
        for &(path, text) in changes {
            files.retain(|(other, _)| other != path);
            files.push((path.to_owned(), text.to_owned()));
        }
        let mut complaints = Vec::new();
        check(&files, &mut complaints);
        complaints
    }

    #[test]
    fn a_whole_chapter_passes() {
        assert!(complaints(&[]).is_empty());
    }

    #[test]
    fn missing_parts_of_a_chapter_are_reported() {
        let empty = complaints(&[("docs/story/01-a.md", "# One\n"), ("docs/story/01-a.zh.md", "# 一\n")]);
        let lacks = ["no formula", "no command", "no link to the code", "no picture"];
        let mut expected = lacks.map(|what| format!("docs/story/01-a.md: {what}")).to_vec();
        expected.push("docs/story/pictures/p.svg: no chapter shows it".to_owned());
        assert_eq!(empty, expected);
    }

    #[test]
    fn quotations_are_not_empty() {
        let empty = format!("{CHAPTER}<!-- printed -->\n```text\n```\n");
        let found = complaints(&[("docs/story/01-a.md", &empty), ("docs/story/01-a.zh.md", &empty)]);
        assert_eq!(found, ["docs/story/01-a.md: a quotation is empty: run `cargo xtask story`"]);
    }

    #[test]
    fn languages_must_not_differ() {
        let other = CHAPTER.replace("heedful a", "heedful b");
        let found = complaints(&[("docs/story/01-a.zh.md", &other)]);
        assert_eq!(found, ["docs/story/01-a.zh.md: other blocks, comments or links than in English"]);
    }

    #[test]
    fn chapters_follow_each_other_and_are_listed() {
        let found = complaints(&[("docs/story/03-c.md", CHAPTER)]);
        assert_eq!(
            found,
            [
                "docs/story/03-c.md: the chapter before this one is missing, or there are two",
                "docs/story/03-c.zh.md: the chapter is missing in Chinese",
                "docs/story/README.md: does not link 03-c.md",
                "docs/story/README.zh.md: does not link 03-c.zh.md",
            ]
        );
    }

    #[test]
    fn pictures_are_small() {
        let found = complaints(&[("docs/story/pictures/p.svg", &"x".repeat(PICTURE_BYTES + 1))]);
        assert_eq!(found, ["docs/story/pictures/p.svg: 65537 bytes, over 65536: draw less"]);
    }
}
