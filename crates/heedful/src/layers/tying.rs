//! Weight tying: which of a model's three embedding matrices (source, target, output projection) share a
//! parameter.

use heedful_tensor::{Param, Params};
use serde::{Deserialize, Serialize};

use super::Embedding;

/// Which of the three embedding matrices (source, target, output projection) are tied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// All three: `embedding`.
    #[default]
    All,
    /// Source and target: `source_embedding` and `output`.
    SourceTarget,
    /// Target and output: `source_embedding` and `target_embedding`.
    TargetOutput,
    /// None: `source_embedding`, `target_embedding`, `output`.
    None,
}

/// The tables of source embedding, target embedding and output projection. Tied tables share one parameter,
/// named after the first of them.
pub(crate) fn embedding_tables(
    params: &Params,
    tying: Tying,
    [source, target]: [usize; 2],
    d_model: usize,
) -> (Param, Param, Param) {
    let table = |name, vocabulary| Embedding::table(params, name, vocabulary, d_model);
    match tying {
        Tying::All => {
            let shared = table("embedding", source);
            (shared.clone(), shared.clone(), shared)
        }
        Tying::SourceTarget => {
            let shared = table("source_embedding", source);
            (shared.clone(), shared, table("output", target))
        }
        Tying::TargetOutput => {
            let source = table("source_embedding", source);
            let shared = table("target_embedding", target);
            (source, shared.clone(), shared)
        }
        Tying::None => {
            (table("source_embedding", source), table("target_embedding", target), table("output", target))
        }
    }
}
