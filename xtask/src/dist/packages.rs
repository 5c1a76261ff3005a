//! The crates that a program is made of, by `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::workspace::{cargo, root};

/// A crate.
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) repository: Option<String>,
    /// An SPDX expression.
    pub(super) licence: Option<String>,
    /// Where its files are.
    pub(super) folder: PathBuf,
    /// The SHA-256 of the file that the registry gave; none for our own.
    pub(super) checksum: Option<String>,
    /// The identifiers of those that it uses.
    pub(super) uses: Vec<String>,
}

/// The crates of a program for a target, by their identifiers; tools of the build and of tests are none of it.
pub(super) fn of_program(program: &str, target: &str) -> Result<BTreeMap<String, Package>> {
    let listing = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
    let output = cargo(listing).output().context("could not start cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")?;
    let checksums =
        checksums(&fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?);
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
        found.insert(id.to_owned(), described(package, &uses, &checksums)?);
        waiting.extend(uses);
    }
    Ok(found)
}

/// Whether a dependency becomes part of the program.
fn is_linked(dependency: &Value) -> bool {
    items(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
}

/// Whether it is a plug-in of the compiler, which leaves nothing of itself in the program.
fn is_plug_in(package: &Value) -> bool {
    items(&package["targets"]).flat_map(|target| items(&target["kind"])).any(|kind| kind == "proc-macro")
}

fn described(package: &Value, uses: &[&str], checksums: &BTreeMap<String, String>) -> Result<Package> {
    let field = |name: &str| package[name].as_str().map(str::to_owned);
    let (name, version) = (text(&package["name"]).to_owned(), text(&package["version"]).to_owned());
    let manifest = Path::new(text(&package["manifest_path"]));
    Ok(Package {
        checksum: checksums.get(&format!("{name} {version}")).cloned(),
        description: field("description").unwrap_or_default(),
        repository: field("repository"),
        // Older crates separate licences by a stroke.
        licence: field("license").map(|licence| licence.replace('/', " OR ")),
        folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
        uses: uses.iter().map(|id| (*id).to_owned()).collect(),
        name,
        version,
    })
}

/// The checksums of `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |entry: &str, key: &str| {
        let line = entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let entries = lock.split("[[package]]").skip(1);
    let checksum = |entry| {
        Some((format!("{} {}", value(entry, "name")?, value(entry, "version")?), value(entry, "checksum")?))
    };
    entries.filter_map(checksum).collect()
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
    fn checksums_belong_to_a_name_and_a_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"registry\"\nchecksum = \"beef\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([("a 1.2.3".to_owned(), "beef".to_owned())]));
    }

    #[test]
    fn tools_of_the_build_are_no_part_of_the_program() {
        let kinds =
            |kinds: &str| serde_json::from_str(&format!(r#"{{"dep_kinds":[{kinds}]}}"#)).expect("JSON");
        assert!(is_linked(&kinds(r#"{"kind":"build"},{"kind":null}"#)));
        assert!(!is_linked(&kinds(r#"{"kind":"build"}"#)) && !is_linked(&kinds(r#"{"kind":"dev"}"#)));
    }
}
