//! Texts to try a model with.

use heedful::train::examples::examples;

use super::Origin;

/// Those of the model's folder or package; none for a model that is built by a function.
pub(super) fn of(origin: &Origin) -> Vec<String> {
    match origin {
        Origin::Folder(folder) => examples(folder),
        Origin::Factory(_) => Vec::new(),
    }
}
