//! Watching the weights of models on disk.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::{Duration, SystemTime};

use super::{ModelSpec, Models, Origin, ServedModel};

/// The modification time and size of the weights of each model.
pub(crate) struct Stamps(HashMap<String, Option<Stamp>>);

type Stamp = (SystemTime, u64);

impl Stamps {
    /// The current ones. Taken before models are loaded: what is written meanwhile is then seen as a change.
    pub(crate) fn of(specs: &[ModelSpec]) -> Stamps {
        Stamps(specs.iter().map(|spec| (spec.name.clone(), stamp(spec))).collect())
    }
}

/// Reloads models whose weights changed, until the server is dropped. A file that is being copied is loaded when it has
/// not changed between two checks.
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
    let metadata = folder.join("model.safetensors").metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
