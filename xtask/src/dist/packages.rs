//! The crates linked into a program, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace::cargo;

/// A crate.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: Option<String>,
    /// The folder of its files.
    pub(super) folder: PathBuf,
    /// Whether it comes from a registry.
    pub(super) is_foreign: bool,
}

/// The crates of a program for a target, by their identifiers, without build and test dependencies.
pub(super) fn of_program(program: &str, target: &str) -> Result<BTreeMap<String, Package>> {
    let listing = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let output = cargo(listing).output().context("could not start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")?;
    let by_id: BTreeMap<&str, &Value> =
        items(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        items(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let first = by_id.iter().find(|(_, package)| text(&package["name"]) == program);
    let mut waiting = vec![*first.with_context(|| format!("there is no crate {program}"))?.0];
    let (mut seen, mut found) = (BTreeSet::new(), BTreeMap::new());
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let uses: Vec<&str> = nodes
            .get(id)
            .into_iter()
            .flat_map(|node| items(&node["deps"]))
            .filter(|used| is_linked(used))
            .map(|used| text(&used["pkg"]))
            .collect();
        let package = by_id.get(id).with_context(|| format!("cargo metadata has no package {id}"))?;
        if is_plug_in(package) {
            continue;
        }
        found.insert(id.to_owned(), described(package)?);
        waiting.extend(uses);
    }
    Ok(found)
}

/// Whether a dependency becomes part of the program.
fn is_linked(dependency: &Value) -> bool {
    items(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
}

/// Whether it is a procedural macro, which is not linked into the program.
fn is_plug_in(package: &Value) -> bool {
    items(&package["targets"]).flat_map(|target| items(&target["kind"])).any(|kind| kind == "proc-macro")
}

fn described(package: &Value) -> Result<Package> {
    let (name, version) = (text(&package["name"]).to_owned(), text(&package["version"]).to_owned());
    let manifest = Path::new(text(&package["manifest_path"]));
    Ok(Package {
        // Older crates separate licences by a slash.
        licence: package["license"].as_str().map(|licence| licence.replace('/', " OR ")),
        folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
        is_foreign: !package["source"].is_null(),
        name,
        version,
    })
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_the_build_are_no_part_of_the_program() {
        let kinds =
            |kinds: &str| serde_json::from_str(&format!(r#"{{"dep_kinds":[{kinds}]}}"#)).expect("JSON");
        assert!(is_linked(&kinds(r#"{"kind":"build"},{"kind":null}"#)));
        assert!(!is_linked(&kinds(r#"{"kind":"build"}"#)) && !is_linked(&kinds(r#"{"kind":"dev"}"#)));
    }
}
