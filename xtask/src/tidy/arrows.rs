//! Modules of a library import only from those above them in `lib.rs`, so that there are no cycles between
//! modules.

/// The libraries with this rule; the `mod` lines of their `lib.rs` define the order.
pub(super) const LIBRARIES: [&str; 2] = ["crates/tensor/src/", "crates/heedful/src/"];

/// Registries of items of all modules, which are exempt from the order.
const REGISTRIES: [&str; 2] = ["kernels", "registry"];

/// The modules of a library in the order of `lib.rs`.
pub(super) fn order(library: &str) -> Vec<String> {
    let module = |line: &str| {
        let line = line.trim_start_matches("pub ").strip_prefix("mod ")?;
        line.strip_suffix(';').map(str::to_owned)
    };
    library.lines().filter_map(module).collect()
}

/// Complains about every line of a module that imports from a later one. Tests may import from all modules.
pub(super) fn check(
    path: &str,
    text: &str,
    (sources, order): (&str, &[String]),
    complaints: &mut Vec<String>,
) {
    let Some(inside) = path.strip_prefix(sources) else { return };
    let own = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
    let Some(place) = order.iter().position(|module| module == own) else { return };
    if REGISTRIES.contains(&own) || inside.ends_with("tests.rs") || inside.contains("/tests/") {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    for (index, line) in lines[..end].iter().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for named in modules_named(code) {
            if order[place + 1..].iter().any(|later| later == named) {
                let number = index + 1;
                complaints
                    .push(format!("{path}:{number}: {own} comes before {named} in lib.rs and cannot use it"));
            }
        }
    }
}

/// The modules after every `crate::` of a line, also in braces.
fn modules_named(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("crate::").flat_map(|(start, root)| {
        let rest = &code[start + root.len()..];
        let count = if rest.starts_with('{') { usize::MAX } else { 1 };
        let name =
            |part: &'_ str| part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let names = rest.trim_start_matches('{').split(',').map(str::trim_start).take(count);
        names.map(move |part| &part[..name(part)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_from_a_later_module_is_found() {
        let order = order("//! Text.\nmod registry;\npub mod layers;\n\npub mod models;\n");
        assert_eq!(order, ["registry", "layers", "models"]);
        let complaints = |path: &str, text: &str| {
            let mut complaints = Vec::new();
            check(path, text, ("crates/heedful/src/", &order), &mut complaints);
            complaints
        };
        let up = complaints("crates/heedful/src/layers/norm.rs", "use crate::models::Model;\n");
        assert_eq!(
            up,
            ["crates/heedful/src/layers/norm.rs:1: layers comes before models in lib.rs and cannot use it"]
        );
        assert!(complaints("crates/heedful/src/models/mod.rs", "use crate::layers::Pass;\n").is_empty());
        let listed = complaints("crates/heedful/src/layers/norm.rs", "use crate::{layers, models::Model};\n");
        assert_eq!(listed, up);
        assert!(complaints("crates/heedful/src/registry.rs", "use crate::models::Model;\n").is_empty());
        assert!(complaints("crates/heedful/src/layers/norm.rs", "/// See [`crate::models`].\n").is_empty());
        let test = "#[cfg(test)]\nmod tests {\n    use crate::models::Model;\n}\n";
        assert!(complaints("crates/heedful/src/layers/norm.rs", test).is_empty());
        assert!(complaints("crates/server/src/app.rs", "use crate::models::Model;\n").is_empty());
    }
}
