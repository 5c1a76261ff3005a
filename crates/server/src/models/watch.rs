//! Watches model files and reloads changed models.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::{Duration, SystemTime};

use heedful::tasks::folder::{MODEL, MODEL_FILES};

use super::{ModelSpec, Models, Origin, ServedModel};

/// The modification time and size of each file of each model.
pub(crate) struct Stamps(HashMap<String, Option<Stamp>>);

type Stamp = [Option<(SystemTime, u64)>; MODEL_FILES.len()];

impl Stamps {
    /// The current stamps. Taken before models are loaded, so that files written meanwhile count as changed.
    pub(crate) fn of(specs: &[ModelSpec]) -> Stamps {
        Stamps(specs.iter().map(|spec| (spec.name.clone(), stamp(spec))).collect())
    }
}

/// Reloads models whose files changed, until the server is dropped. A model that is being copied is loaded
/// when it has not changed between two checks; if the copy was incomplete, the old version keeps serving
/// until the next change.
pub(crate) async fn watch(models: Weak<Models>, Stamps(mut loaded): Stamps, every: Duration) {
    let mut seen: HashMap<String, Option<Stamp>> = HashMap::new();
    loop {
        tokio::time::sleep(every).await;
        let Some(held) = models.upgrade() else { return };
        for number in 0..held.served.len() {
            let spec = &held.served[number].spec;
            let (name, now) = (&spec.name, stamp(spec));
            let is_settled = seen.insert(name.clone(), now) == Some(now);
            if now.is_none() || !is_settled || loaded.get(name) == Some(&now) {
                continue;
            }
            loaded.insert(name.clone(), now);
            let models = held.clone();
            let reload = move || models.served.get(number).map(ServedModel::reload);
            if let Ok(Some(Err(error))) = tokio::task::spawn_blocking(reload).await {
                eprintln!("heedful: {error}; the old model keeps serving");
            }
        }
    }
}

fn stamp(spec: &ModelSpec) -> Option<Stamp> {
    let Origin::Folder(folder) = &spec.origin else { return None };
    let stamp = |name: &str| {
        let metadata = folder.join(name).metadata().ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    if folder.is_file() {
        // A package has one stamp instead of one per file.
        let package = folder.metadata().ok()?;
        return Some([Some((package.modified().ok()?, package.len())); MODEL_FILES.len()]);
    }
    folder.join(MODEL).exists().then(|| MODEL_FILES.map(stamp))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_change_of_any_file_is_detected() {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = ModelSpec::named("en-de", folder.path());
        assert_eq!(stamp(&spec), None, "there is no model yet");
        let mut seen = Vec::new();
        for name in [MODEL, "config.json", "tokenizer.json", "labels.json"] {
            fs::write(folder.path().join(name), name).expect("room");
            assert!(!seen.contains(&stamp(&spec)), "{name}");
            seen.push(stamp(&spec));
        }
        let package = folder.path().join("en-de.zip");
        fs::write(&package, "one").expect("room");
        let spec = ModelSpec::named("en-de", &package);
        let before = stamp(&spec);
        fs::write(&package, "another").expect("room");
        assert!(before.is_some() && stamp(&spec) != before);
    }
}
