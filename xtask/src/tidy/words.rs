//! Rules for words and names: forbidden words, and public types that share a name.
//!
//! Forbidden words are built with `concat!`, so that this file follows its own rules.

use std::collections::BTreeMap;

/// A forbidden word or phrase, its replacement, and the phrases in which it is allowed.
struct Forbidden {
    word: &'static str,
    better: &'static str,
    allowed: &'static [&'static str],
}

const fn forbidden(word: &'static str, better: &'static str) -> Forbidden {
    Forbidden { word, better, allowed: &[] }
}

const MODEL_CARD: &[&str] = &[
    concat!("model ca", "rd"),
    concat!("Model ca", "rd"),
    concat!("model_ca", "rd"),
    concat!("--ca", "rd"),
    concat!("\"ca", "rd\""),
    concat!("ca", "rd.md"),
];

const THERE_IS: &[&str] = &["there is none", "there are none", "is none of"];

const WORDS: [Forbidden; 22] = [
    Forbidden { word: concat!("ca", "rd"), better: "GPU", allowed: MODEL_CARD },
    Forbidden { word: concat!("ca", "rds"), better: "GPUs", allowed: MODEL_CARD },
    Forbidden { word: concat!("proc", "essor"), better: "CPU", allowed: &[concat!("post-proc", "essor")] },
    forbidden(concat!("proc", "essors"), "CPUs"),
    forbidden(concat!("sing", "les"), "f32"),
    forbidden(concat!("asi", "de"), "on the side stream"),
    forbidden(concat!("roo", "my"), "rounded up to a bucket"),
    forbidden(concat!("who", "ever"), "a subject that says who"),
    forbidden(concat!("of eight ", "bits"), "int8"),
    forbidden(concat!("in eight ", "bits"), "in int8"),
    forbidden(concat!("is no ", "number"), "is NaN, or is not a number"),
    forbidden(concat!("that ", "which"), "the noun itself"),
    forbidden(concat!("is ", "told"), "gets, takes"),
    forbidden(concat!("are ", "told"), "get, take"),
    forbidden(concat!("begins ", "anew"), "is reinitialized, starts again"),
    forbidden(concat!("trained on ", "with"), "fine-tuned on"),
    forbidden(concat!("files know ", "each other"), "is checksummed"),
    forbidden(concat!("reluc", "tance"), "backoff"),
    forbidden(concat!("one of heed", "ful's"), "in heedful's format"),
    Forbidden { word: concat!("is ", "none"), better: "is not one", allowed: THERE_IS },
    Forbidden { word: concat!("are ", "none"), better: "are not ones", allowed: THERE_IS },
    forbidden(concat!("giving ", "way"), "yielding"),
];

/// Forbidden parts of names, with their replacements.
const PARTS: [(&str, &str); 2] =
    [(concat!("_tur", "ned"), "_transposed"), (concat!("tur", "ned_"), "transposed_")];

const LONGEST_MARKDOWN: usize = 120;

/// Whether a file is written by hand in this project, not generated or third-party.
fn is_prose(path: &str) -> bool {
    let ends = [".rs", ".cu", ".py", ".js", ".html", ".css", ".md", ".toml", ".yml", ".sh"];
    let foreign = [
        "bench/results/",
        "crates/heedful/tests/golden/",
        "crates/heedful/tests/exchange/",
        "docs/reference/",
        "STYLE.md",
    ];
    ends.iter().any(|end| path.ends_with(end)) && !foreign.iter().any(|start| path.starts_with(start))
}

pub(super) fn check(path: &str, text: &str, complaints: &mut Vec<String>) {
    if !is_prose(path) {
        return;
    }
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        let mut complain = |what: String| complaints.push(format!("{path}:{}: {what}", index + 1));
        for Forbidden { word, better, allowed } in &WORDS {
            if contains_word(line, word) && !allowed.iter().any(|phrase| line.contains(phrase)) {
                complain(format!("`{word}`: write {better}"));
            }
        }
        for (part, better) in PARTS {
            if line.contains(part) {
                complain(format!("`{part}`: write `{better}`"));
            }
        }
        if path.ends_with(".md") {
            is_fenced ^= line.trim_start().starts_with("```");
            if is_too_long(line) && !is_fenced {
                complain(format!("over {LONGEST_MARKDOWN} characters"));
            }
        }
    }
}

/// Whether a Markdown line is too long. Exempt are tables, HTML, URLs in links, and Chinese, which has no
/// spaces to break at.
fn is_too_long(line: &str) -> bool {
    let starts_so = |start| line.trim_start().starts_with(start);
    let is_chinese = line.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c));
    let addresses: usize =
        line.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::len).sum();
    line.chars().count() > LONGEST_MARKDOWN + addresses && !starts_so('|') && !starts_so('<') && !is_chinese
}

fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let joins = |neighbour: Option<char>| neighbour.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !joins(before) && !joins(after)
    })
}

/// Complains about public types of a crate that share a name: the name `Output` must identify one type.
pub(super) fn check_types(texts: &[(String, String)], complaints: &mut Vec<String>) {
    let mut places: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (path, text) in texts {
        let Some((library, _)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        // Stubs for disabled features have the names of the real types.
        if !path.ends_with(".rs") || path.ends_with("absent.rs") || path.contains("/absent/") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = public_type(line) {
                places.entry((library, name)).or_default().push(format!("{path}:{}", index + 1));
            }
        }
    }
    for ((library, name), places) in places {
        if places.len() > 1 {
            complaints.push(format!(
                "{library} has {} public types `{name}`: {}",
                places.len(),
                places.join(", ")
            ));
        }
    }
}

fn public_type(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("pub ")?.split_whitespace();
    let kind = words.next()?;
    let name = words.next().filter(|_| ["struct", "enum", "trait", "union"].contains(&kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let mut complaints = Vec::new();
        check(path, text, &mut complaints);
        complaints
    }

    #[test]
    fn words_without_a_use_here_are_found() {
        for Forbidden { word, .. } in &WORDS {
            assert_eq!(complaints("src/lib.rs", &format!("// a {word}, b\n")).len(), 1, "{word}");
            assert!(complaints("bench/results/a.md", &format!("{word}\n")).is_empty());
        }
        for phrase in MODEL_CARD {
            assert!(complaints("a.md", &format!("a {phrase}\n")).is_empty(), "{phrase}");
        }
        assert!(complaints("a.rs", "dis\u{63}ard; post_process; besides\n").is_empty());
        assert_eq!(complaints("a.cu", &format!("gemm{}\n", PARTS[0].0)).len(), 1);
    }

    #[test]
    fn long_lines_of_markdown_are_found() {
        let long = "word ".repeat(30);
        assert_eq!(complaints("a.md", &format!("{}\n", long.trim())).len(), 1);
        let link = format!("[a]({}) {}", "b/".repeat(60), &long[..100]);
        for fine in [format!("| {long}|"), link.trim_end().to_owned(), format!("```\n{long}x\n```")] {
            assert!(complaints("a.md", &format!("{fine}\n")).is_empty(), "{fine}");
        }
        assert!(complaints("a.rs", &format!("// {}\n", long.trim())).is_empty());
    }

    #[test]
    fn public_types_have_names_of_their_own() {
        let text = |name: &str| format!("pub struct {name}<T>(T);\nstruct Inner;\n");
        let file = |path: &str, name| (path.to_owned(), text(name));
        let mut complaints = Vec::new();
        let files =
            [file("crates/a/src/x.rs", "X"), file("crates/b/src/x.rs", "X"), file("crates/a/src/y.rs", "X")];
        check_types(&files[..2], &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
        check_types(&files, &mut complaints);
        assert_eq!(complaints, ["a has 2 public types `X`: crates/a/src/x.rs:1, crates/a/src/y.rs:1"]);
    }
}
