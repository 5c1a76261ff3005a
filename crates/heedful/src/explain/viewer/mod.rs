//! The page that draws explanations in the browser: [`page`] is a single file that needs neither server nor
//! network.
//!
//! The modules are served unbundled. For the offline page they are concatenated, each in its own scope, which
//! works because they use a small subset of the language: an import is one line, and an export precedes a
//! `function`, `class` or `const` at the start of a line.

use super::Explanation;
use crate::plot::markup::escape;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!($name))),*] };
}

/// Every file that the page loads, with its contents. A module comes after its imports.
pub const FILES: &[(&str, &str)] = files![
    "viewer.css",
    "elements.js",
    "numbers.js",
    "text-direction.js",
    "weights.js",
    "colour.js",
    "scene.js",
    "frame.js",
    "palette.js",
    "sides.js",
    "choice.js",
    "words.js",
    "lines.js",
    "word-heads.js",
    "table.js",
    "matrix.js",
    "grid.js",
    "tree.js",
    "download.js",
    "theme.js",
    "viewer.js",
    "offline.js",
];

const FRAME: &str = include_str!("offline.html");

/// Explanations as one self-contained HTML file. [`WeightForm::Packed`](super::WeightForm::Packed) keeps it
/// small.
pub fn page(explanations: &[Explanation], title: &str) -> String {
    let json = serde_json::to_string(explanations).expect("explanations are plain data with text as keys");
    let style =
        FILES.iter().filter(|(name, _)| name.ends_with(".css")).map(|(_, text)| *text).collect::<String>();
    let slots: [(&str, &str); 4] = [
        ("title", &escape(title)),
        ("style", &style),
        ("script", &bundle()),
        ("explanations", &embedded(&json)),
    ];
    filled(FRAME, &slots)
}

/// The frame with its slots filled, in one pass: the contents of a slot are not searched for slots.
fn filled(frame: &str, slots: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut parts = frame.split("{{");
    page += parts.next().unwrap_or_default();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("every slot of the frame is closed");
        let (_, value) =
            slots.iter().find(|(known, _)| *known == name).expect("every slot of the frame is known");
        page += value;
        page += rest;
    }
    page
}

/// Equivalent JSON that can neither end the element that contains it nor open a comment.
fn embedded(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe += &format!("\\u{:04x}", u32::from(c)),
            c => safe.push(c),
        }
    }
    safe
}

/// All modules as one script that starts the page.
fn bundle() -> String {
    let modules = FILES.iter().filter(|(name, _)| name.ends_with(".js"));
    let mut script: String = modules.map(|(name, text)| scoped(name, text)).collect();
    script += "offline.startOffline();\n";
    script
}

/// A module as a constant of the same name that holds its exports.
fn scoped(name: &str, text: &str) -> String {
    let mut body = String::new();
    let mut exports = Vec::new();
    for line in text.lines() {
        if let Some((names, file)) = import(line) {
            body += &format!("const {{{names}}} = {};\n", variable(file));
        } else if let Some(declaration) = line.strip_prefix("export ") {
            exports.push(declared(declaration));
            body += declaration;
            body.push('\n');
        } else {
            body += line;
            body.push('\n');
        }
    }
    format!("const {} = (() => {{\n{body}return {{ {} }};\n}})();\n", variable(name), exports.join(", "))
}

/// Names and file of `import { a, b } from './file.js';`.
fn import(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("import {")?.strip_suffix("';")?.split_once("} from './")
}

fn variable(file: &str) -> String {
    file.trim_end_matches(".js").replace('-', "_")
}

/// The name in `function name(…`, `async function name(…`, `class Name {`, `const NAME = …`.
fn declared(declaration: &str) -> &str {
    let mut words = declaration
        .split([' ', '('])
        .skip_while(|word| ["async", "function", "class", "const"].contains(word));
    words.next().expect("an export names something")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::ExplainedSource;

    fn modules() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        FILES.iter().filter(|(name, _)| name.ends_with(".js"))
    }

    #[test]
    fn every_module_can_be_bundled_into_one_file() {
        let mut earlier = Vec::new();
        for (name, text) in modules() {
            for line in text.lines() {
                if line.starts_with("import") {
                    let (_, file) = import(line).unwrap_or_else(|| panic!("{name}: {line}"));
                    assert!(earlier.contains(&file), "{name} imports {file}, which must come before it");
                }
                if let Some(rest) = line.strip_prefix("export ") {
                    let known = ["function ", "async function ", "class ", "const "];
                    assert!(known.iter().any(|word| rest.starts_with(word)), "{name}: {line}");
                    assert_ne!(
                        declared(rest),
                        variable(name),
                        "{name} would shadow itself where it is imported"
                    );
                }
            }
            assert!(!text.contains("</script") && !text.contains("<!--"), "{name} would end its element");
            earlier.push(*name);
        }
    }

    #[test]
    fn no_module_creates_markup_from_text_or_style_attributes() {
        for (name, text) in modules() {
            for forbidden in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style:"]
            {
                assert!(!text.contains(forbidden), "{name}: {forbidden}");
            }
        }
    }

    #[test]
    fn a_module_becomes_a_scope() {
        let text =
            "import { a, b } from './first.js';\nexport const C = 1;\nexport async function d(x) {\n}\n";
        assert_eq!(
            scoped("second.js", text),
            "const second = (() => {\nconst { a, b } = first;\nconst C = 1;\nasync function d(x) {\n}\nreturn { C, d };\n})();\n"
        );
    }

    #[test]
    fn text_in_a_page_is_never_markup() {
        let evil = "</script><script>alert(1)</script><!-- \u{2028} {{script}}";
        let source = ExplainedSource { text: evil.to_owned(), tokens: Vec::new() };
        let page = page(&[Explanation { source, outputs: Vec::new() }], "</title><script>alert(1)</script>");
        assert_eq!(page.matches("</script>").count(), 3, "two for data, one for the program");
        assert!(!page.contains("<script>alert") && !page.contains("<!--") && !page.contains('\u{2028}'));
        assert!(page.contains("\\u003c/script\\u003e") && page.contains("&lt;/script&gt;"));
    }

    #[test]
    fn a_page_references_no_external_resources() {
        let page = page(&[], "attention");
        for outside in [" src=", "<link", "@import", "url(", "fetch("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains(r#"<script type="application/json" id="explanations">[]</script>"#));
    }
}
