//! A minimal Markdown parser: fenced blocks, links and the anchors of headings.

/// A fenced block: its language, the lines between its fences, and its position in the text (counted from 0).
#[derive(Debug, PartialEq)]
pub(crate) struct Block<'a> {
    pub(crate) language: &'a str,
    /// The line of the opening fence.
    pub(crate) opening: usize,
    pub(crate) lines: Vec<&'a str>,
    /// The text of a comment `<!-- … -->` directly above the block.
    pub(crate) comment: Option<&'a str>,
}

/// The target of a link, and its line (counted from 1).
#[derive(Debug, PartialEq)]
pub(crate) struct Link<'a> {
    pub(crate) line: usize,
    pub(crate) target: &'a str,
}

pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    let mut above = None;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                blocks.push(Block { language, opening: index, lines: Vec::new(), comment: above });
                is_open = true;
            }
            None if is_open => blocks.last_mut().expect("an open block was pushed").lines.push(line),
            None => {}
        }
        above = comment(line);
    }
    blocks
}

/// The text of a line that is a comment.
pub(crate) fn comment(line: &str) -> Option<&str> {
    Some(line.strip_prefix("<!--")?.strip_suffix("-->")?.trim())
}

/// The links and pictures of a text, in Markdown or HTML, outside of code.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (index, line) in prose(text) {
        // Every second part is between backquotes.
        for part in line.split('`').step_by(2) {
            for (before, after) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
                let found = part.match_indices(before).filter_map(|(start, _)| {
                    let rest = &part[start + before.len()..];
                    rest.find(after).map(|end| Link { line: index + 1, target: &rest[..end] })
                });
                links.extend(found);
            }
        }
    }
    links
}

/// The path of `target` as seen from the file at `path`; `None` if it leaves the project.
pub(crate) fn joined(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a text's headings, as GitHub makes them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        let is_heading = line.starts_with('#') && title.starts_with(' ');
        if is_heading {
            let anchor = anchor(title.trim());
            let same = |other: &&String| {
                let rest =
                    other.strip_prefix(anchor.as_str()).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
                rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()))
            };
            let repeated = anchors.iter().filter(same).count();
            anchors.push(if repeated == 0 { anchor } else { format!("{anchor}-{repeated}") });
        }
    }
    anchors
}

/// Lowercase letters, digits, hyphens and underscores; spaces become hyphens, other characters are removed.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The lines outside of fenced blocks, with their numbers from 0.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_open = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_open ^= is_fence;
        !is_open && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_language_and_the_comment_above() {
        let text =
            "# A\n\n```sh\nheedful demo\n```\n\n<!-- printed -->\n```text\n98 %\n```\n```text\nq · k\n```\n";
        let blocks = blocks(text);
        let found: Vec<_> =
            blocks.iter().map(|block| (block.language, block.opening, block.comment)).collect();
        assert_eq!(found, [("sh", 2, None), ("text", 7, Some("printed")), ("text", 10, None)]);
        assert_eq!(blocks[1].lines, ["98 %"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "[a](b.md#c) and `[x](y)`\n```sh\n[x](y)\n```\n![p](q.svg)\n<img src=\"r.svg\" width=\"1\">\n";
        let targets: Vec<_> = links(text).into_iter().map(|link| (link.line, link.target)).collect();
        assert_eq!(targets, [(1, "b.md#c"), (5, "q.svg"), (6, "r.svg")]);
    }

    #[test]
    fn anchors_equal_those_of_github() {
        let text = "# How to add …\n## `--quick`, 1/√d_k\n```sh\n# a comment\n```\n## 多头 Heads\n## One\n## One\n#not\n";
        assert_eq!(anchors(text), ["how-to-add-", "--quick-1d_k", "多头-heads", "one", "one-1"]);
    }
}
