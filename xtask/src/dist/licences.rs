//! The licences of the crates in a program: a list, then each distinct text once, with its crates.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::packages::Package;

/// The licence file that is packed with a program.
pub(super) fn text(packages: &BTreeMap<String, Package>) -> Result<String> {
    let foreign: Vec<&Package> = packages.values().filter(|package| package.is_foreign).collect();
    let bare: Vec<&str> = foreign
        .iter()
        .filter(|package| package.licence.is_none())
        .map(|package| package.name.as_str())
        .collect();
    ensure!(
        bare.is_empty(),
        "these crates name no licence, so what they are in cannot be given away: {}",
        bare.join(", ")
    );
    let mut list = String::from("heedful contains the following crates, under the licences named.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in foreign {
        let name = format!("{} {}", package.name, package.version);
        list += &format!("{name}: {}\n", package.licence.as_deref().unwrap_or_default());
        for text in texts_in(&package.folder)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, names) in texts {
        list += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", "));
    }
    Ok(list)
}

/// The texts of licences and notices in a crate's folder.
fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        let is_code = upper.ends_with(".RS") || upper.ends_with(".PY");
        if !is_code
            && ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|start| upper.starts_with(start))
        {
            names.push(name);
        }
    }
    names.sort();
    let files = names.iter().map(|name| folder.join(name)).filter(|file| file.is_file());
    files
        .map(|file| {
            let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = String::from_utf8_lossy(&bytes);
            Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned())
        })
        .collect()
}
