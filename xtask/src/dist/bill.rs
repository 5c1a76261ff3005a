//! The software bill of materials: every crate in a program, as CycloneDX 1.5 in JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::packages::Package;

/// The bill of a program, the identifier of whose crate is `program`.
pub(super) fn bill(packages: &BTreeMap<String, Package>, program: &str, target: &str) -> Value {
    let rest = packages.iter().filter(|(id, _)| *id != program);
    let components: Vec<Value> = rest.map(|(_, package)| component(package, "library")).collect();
    let dependencies: Vec<Value> = packages
        .values()
        .map(|package| {
            let uses = package.uses.iter().filter_map(|id| packages.get(id)).map(reference);
            json!({ "ref": reference(package), "dependsOn": uses.collect::<Vec<_>>() })
        })
        .collect();
    let mut main = component(&packages[program], "application");
    main["properties"] = json!([{ "name": "cargo:target", "value": target }]);
    // Neither a time nor a random number: the same sources have the same bill.
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": main },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "description": package.description,
        "purl": reference(package),
    });
    if let Some(licence) = &package.licence {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// The package URL, which is also its name within the bill.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_a_component_that_names_what_it_uses() {
        let package = |name: &str, uses: &[&str]| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            description: String::new(),
            repository: None,
            licence: Some("MIT".to_owned()),
            folder: name.into(),
            checksum: (name != "main").then(|| "beef".to_owned()),
            uses: uses.iter().map(|id| (*id).to_owned()).collect(),
        };
        let packages =
            BTreeMap::from([("a".to_owned(), package("a", &[])), ("m".to_owned(), package("main", &["a"]))]);
        let bill = bill(&packages, "m", "x86_64-unknown-linux-gnu");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/main@1.0.0");
        assert_eq!(bill["components"].as_array().map(Vec::len), Some(1));
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "beef");
        let of_main = bill["dependencies"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|d| d["ref"] == "pkg:cargo/main@1.0.0");
        assert_eq!(of_main.expect("its own")["dependsOn"], json!(["pkg:cargo/a@1.0.0"]));
    }
}
