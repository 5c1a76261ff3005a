//! The sources of a book: files of the repository under their names in the site, with adapted links.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::title;
use crate::markdown;
use crate::workspace::root;

/// Base URL of links to files outside of the site.
const REPOSITORY: &str = "https://github.com/heedful/heedful";

/// Pages from outside docs/, and their names in the site.
const PAGES_OUTSIDE_DOCS: [(&str, &str); 2] =
    [("ARCHITECTURE.md", "design/architecture.md"), ("bench/README.md", "benchmarks.md")];

/// A book of the site.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Book {
    /// The guide, and the story.
    English,
    /// The story.
    Chinese,
}

impl Book {
    pub(super) fn language(self) -> &'static str {
        match self {
            Book::English => "en",
            Book::Chinese => "zh",
        }
    }

    /// Writes `book.toml` and `src` into a folder.
    pub(super) fn write(self, tracked: &[String], folder: &Path) -> Result<()> {
        let source = folder.join("src");
        fs::create_dir_all(&source)?;
        fs::write(folder.join("book.toml"), self.settings())?;
        let names = names(tracked);
        for (path, (book, name)) in &names {
            if *book != self && !is_shared(path) {
                continue;
            }
            let to = source.join(name);
            fs::create_dir_all(to.parent().expect("a file has a folder"))?;
            let from = root().join(path);
            if path.ends_with(".md") {
                let text = fs::read_to_string(&from).with_context(|| format!("cannot read {path}"))?;
                fs::write(&to, with_links(&text, path, (self, name), &names))?;
            } else {
                fs::copy(&from, &to).with_context(|| format!("cannot copy {path}"))?;
            }
        }
        if self == Book::Chinese {
            fs::write(source.join("SUMMARY.md"), chinese_summary(tracked)?)?;
        }
        Ok(())
    }

    fn settings(self) -> String {
        let (title, language) = match self {
            Book::English => ("heedful", "en"),
            Book::Chinese => ("注意力的故事", "zh"),
        };
        format!(
            "[book]\ntitle = \"{title}\"\nlanguage = \"{language}\"\n\n[build]\ncreate-missing = false\n\n[output.html]\n\
             default-theme = \"light\"\npreferred-dark-theme = \"navy\"\nno-section-label = true\n\
             git-repository-url = \"{REPOSITORY}\"\n"
        )
    }
}

/// Whether a file is in both books, as the pictures of the story are.
fn is_shared(path: &str) -> bool {
    path.starts_with("docs/story/pictures/")
}

/// The pages of the site by their paths in the repository: the book, and the name in it.
fn names(tracked: &[String]) -> BTreeMap<String, (Book, String)> {
    let mut names = BTreeMap::new();
    for path in tracked {
        let Some(inside) = path.strip_prefix("docs/") else { continue };
        let entry = match inside.strip_suffix(".zh.md") {
            Some(chapter) => {
                let chapter = chapter.trim_start_matches("story/");
                (Book::Chinese, format!("{}.md", if chapter == "README" { "index" } else { chapter }))
            }
            None if inside.ends_with("README.md") => (Book::English, inside.replace("README.md", "index.md")),
            None => (Book::English, inside.to_owned()),
        };
        names.insert(path.clone(), entry);
    }
    for (path, name) in PAGES_OUTSIDE_DOCS {
        names.insert(path.to_owned(), (Book::English, name.to_owned()));
    }
    names
}

/// The text with its links replaced by links to pages of the site, or to the repository.
fn with_links(
    text: &str,
    path: &str,
    page: (Book, &str),
    names: &BTreeMap<String, (Book, String)>,
) -> String {
    let mut out = text.to_owned();
    let mut seen: Vec<&str> = Vec::new();
    for link in markdown::links(text) {
        let target = link.target;
        if target.contains("://")
            || target.starts_with(['#'])
            || target.starts_with("mailto:")
            || seen.contains(&target)
        {
            continue;
        }
        seen.push(target);
        let (file, anchor) =
            target.split_once('#').map_or((target, String::new()), |(file, a)| (file, format!("#{a}")));
        let Some(file) = markdown::joined(path, file) else { continue };
        let new = match names.get(&file) {
            Some((book, name)) => format!("{}{anchor}", relative(page, (*book, name), &file)),
            None if root().join(&file).is_dir() => format!("{REPOSITORY}/tree/main/{file}"),
            None => format!("{REPOSITORY}/blob/main/{file}{anchor}"),
        };
        for (before, after) in [("](", ")"), ("src=\"", "\""), ("srcset=\"", "\""), ("href=\"", "\"")] {
            out = out.replace(&format!("{before}{target}{after}"), &format!("{before}{new}{after}"));
        }
    }
    out
}

/// A link from one page to another; the Chinese book is in a subfolder of the English one.
fn relative((from_book, from): (Book, &str), (to_book, to): (Book, &str), path: &str) -> String {
    let up = "../".repeat(from.matches('/').count());
    match (from_book, to_book) {
        (Book::English, Book::Chinese) => format!("{up}zh/{to}"),
        (Book::Chinese, Book::English) if !is_shared(path) => format!("{up}../{to}"),
        // Pictures have the same path in both books.
        _ => format!("{up}{to}"),
    }
}

fn chinese_summary(tracked: &[String]) -> Result<String> {
    let mut summary = String::from("# Summary\n\n");
    for (path, (book, name)) in names(tracked) {
        if book == Book::Chinese {
            let text = fs::read_to_string(root().join(&path))?;
            let line = format!("- [{}]({name})\n", title(&text)?);
            if name == "index.md" {
                summary.insert_str("# Summary\n\n".len(), &line);
            } else {
                summary += &line;
            }
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_site_or_to_the_repository() {
        let tracked =
            ["docs/a.md", "docs/story/README.md", "docs/story/README.zh.md", "docs/story/01-x.zh.md"];
        let names = names(&tracked.map(str::to_owned));
        let linked =
            |path: &str, page, target: &str| with_links(&format!("[x]({target})"), path, page, &names);
        let english = (Book::English, "story/index.md");
        assert_eq!(linked("docs/story/README.md", english, "../a.md#b"), "[x](../a.md#b)");
        assert_eq!(linked("docs/story/README.md", english, "README.zh.md"), "[x](../zh/index.md)");
        assert_eq!(
            linked("docs/story/README.md", english, "../../bench/README.md#y"),
            "[x](../benchmarks.md#y)"
        );
        let readme = linked("docs/story/README.md", english, "../../README.md#install");
        assert_eq!(readme, format!("[x]({REPOSITORY}/blob/main/README.md#install)"));
        let chinese = (Book::Chinese, "01-x.md");
        assert_eq!(linked("docs/story/01-x.zh.md", chinese, "README.md"), "[x](../story/index.md)");
        assert_eq!(linked("docs/story/01-x.zh.md", chinese, "README.zh.md"), "[x](index.md)");
    }
}
