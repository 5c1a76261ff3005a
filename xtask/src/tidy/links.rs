//! Links between the files of the project have existing targets: a file or folder, and its heading if they
//! name one.

use std::collections::BTreeMap;

use crate::markdown;

/// Possible targets of links: every file with the anchors of its headings (Markdown files only).
pub(super) struct LinkTargets {
    files: BTreeMap<String, Vec<String>>,
}

impl LinkTargets {
    pub(super) fn new(files: &[(String, String)]) -> LinkTargets {
        let anchors = |(path, text): &(String, String)| {
            let anchors = if path.ends_with(".md") { markdown::anchors(text) } else { Vec::new() };
            (path.clone(), anchors)
        };
        LinkTargets { files: files.iter().map(anchors).collect() }
    }

    /// Complains about every broken link of a Markdown text.
    pub(super) fn check(&self, path: &str, text: &str, complaints: &mut Vec<String>) {
        if !path.ends_with(".md") {
            return;
        }
        for link in markdown::links(text) {
            if let Some(complaint) = self.complaint(path, link.target) {
                complaints.push(format!("{path}:{}: {complaint}", link.line));
            }
        }
    }

    fn complaint(&self, path: &str, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (target, None),
        };
        let file = if file.is_empty() { Some(path.to_owned()) } else { markdown::joined(path, file) };
        let found = file.as_ref().and_then(|file| Some((file, self.files.get(file)?)));
        match (found, anchor) {
            (None, None) if file.as_ref().is_some_and(|file| self.is_folder(file)) => None,
            (None, _) => Some(format!("the link to `{target}` leads to no file")),
            (Some(_), None) => None,
            (Some((_, anchors)), Some(anchor)) if anchors.iter().any(|known| known == anchor) => None,
            (Some((file, _)), Some(anchor)) => Some(format!("{file} has no heading for `#{anchor}`")),
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        path.is_empty() || self.files.keys().any(|file| file.starts_with(&format!("{path}/")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        let files = [
            ("README.md".to_owned(), "# Begin\n".to_owned()),
            ("docs/a.md".to_owned(), "# One two\n## 一二\n".to_owned()),
            ("docs/a.svg".to_owned(), String::new()),
        ];
        let targets = LinkTargets::new(&files);
        let complaints = |target: &str| {
            let mut complaints = Vec::new();
            targets.check("docs/b.md", &format!("text\n[x]({target})\n"), &mut complaints);
            complaints
        };
        for target in
            ["a.md", "a.md#one-two", "a.md#一二", "./a.svg", "../README.md#begin", "https://x.org/y"]
        {
            assert!(complaints(target).is_empty(), "{target}");
        }
        for folder in [".", "..", "../docs", "../docs/"] {
            assert!(complaints(folder).is_empty(), "{folder}");
        }
        assert_eq!(complaints("c.md"), ["docs/b.md:2: the link to `c.md` leads to no file"]);
        assert_eq!(complaints("../../x"), ["docs/b.md:2: the link to `../../x` leads to no file"]);
        assert_eq!(complaints("a.md#three"), ["docs/b.md:2: docs/a.md has no heading for `#three`"]);
        assert_eq!(complaints("a.svg#one"), ["docs/b.md:2: docs/a.svg has no heading for `#one`"]);
    }
}
