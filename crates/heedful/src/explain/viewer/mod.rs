//! The page that draws explanations in the browser. [`page`] makes a single file that needs neither server
//! nor network.
//!
//! The JavaScript modules are handwritten and served unchanged. For the offline page they are concatenated,
//! each in its own scope. This works because they use a restricted syntax: every import is one line, and
//! every export precedes a `function`, `class` or `const` at the beginning of a line.

use super::Explanation;
use crate::plot::markup::escape;

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!($name))),*] };
}

/// Names and contents of all files that a page loads. A module comes after the modules that it imports.
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

const TEMPLATE: &str = include_str!("offline.html");

/// Explanations as one self-contained HTML file. [`WeightForm::Packed`](super::WeightForm::Packed) keeps it
/// small.
pub fn page(explanations: &[Explanation], title: &str) -> String {
    let json = serde_json::to_string(explanations).expect("explanations are plain data with text as keys");
    let style =
        FILES.iter().filter(|(name, _)| name.ends_with(".css")).map(|(_, text)| *text).collect::<String>();
    let values: [(&str, &str); 4] = [
        ("title", &escape(title)),
        ("style", &style),
        ("script", &bundle()),
        ("explanations", &embedded(&json)),
    ];
    render(TEMPLATE, &values)
}

/// Replaces the `{{name}}` placeholders of a template in one pass: inserted values are never searched for
/// placeholders.
fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut parts = template.split("{{");
    page += parts.next().unwrap_or_default();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("every placeholder of the template is closed");
        let (_, value) =
            values.iter().find(|(known, _)| *known == name).expect("every placeholder has a value");
        page += value;
        page += rest;
    }
    page
}

/// Equivalent JSON that can neither close its `<script>` element nor open a comment.
fn embedded(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escaped += &format!("\\u{:04x}", u32::from(c)),
            c => escaped.push(c),
        }
    }
    escaped
}

/// All modules in one script, which starts the page.
fn bundle() -> String {
    let modules = FILES.iter().filter(|(name, _)| name.ends_with(".js"));
    let mut script: String = modules.map(|(name, text)| scoped(name, text)).collect();
    script += "offline.startOffline();\n";
    script
}

/// A module as a constant of the same name whose properties are its exports.
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

/// The name of a module's constant.
fn variable(file: &str) -> String {
    file.trim_end_matches(".js").replace('-', "_")
}

/// The declared name in `function name(…`, `async function name(…`, `class Name {`, `const NAME = …`.
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
    fn every_module_uses_only_syntax_that_can_be_bundled() {
        let mut earlier = Vec::new();
        for (name, text) in modules() {
            for line in text.lines() {
                if line.starts_with("import") {
                    let (_, file) = import(line).unwrap_or_else(|| panic!("{name}: {line}"));
                    assert!(earlier.contains(&file), "{name} imports {file}, which does not precede it");
                }
                if let Some(rest) = line.strip_prefix("export ") {
                    let known = ["function ", "async function ", "class ", "const "];
                    assert!(known.iter().any(|word| rest.starts_with(word)), "{name}: {line}");
                    assert_ne!(
                        declared(rest),
                        variable(name),
                        "{name} exports its own name and would be shadowed where it is imported"
                    );
                }
            }
            assert!(!text.contains("</script") && !text.contains("<!--"), "{name} would end its element");
            earlier.push(*name);
        }
    }

    #[test]
    fn no_module_turns_text_into_markup_or_attributes_into_style() {
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
    fn a_page_refers_to_no_other_file() {
        let page = page(&[], "attention");
        for outside in [" src=", "<link", "@import", "url(", "fetch("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains(r#"<script type="application/json" id="explanations">[]</script>"#));
    }
}
