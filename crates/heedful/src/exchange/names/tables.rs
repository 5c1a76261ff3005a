//! The three embedding matrices of a translator: source embedding, target embedding, output projection.

use crate::layers::Tying;
use crate::models::transformer::TransformerConfig;

/// The parameter and shape of each of the three. Tied matrices are one parameter.
pub(in crate::exchange) fn ours(config: &TransformerConfig) -> [(&'static str, [usize; 2]); 3] {
    let names = match config.tying {
        Tying::All => ["embedding.weight"; 3],
        Tying::SourceTarget => ["source_embedding.weight", "source_embedding.weight", "output.weight"],
        Tying::TargetOutput => {
            ["source_embedding.weight", "target_embedding.weight", "target_embedding.weight"]
        }
        Tying::None => ["source_embedding.weight", "target_embedding.weight", "output.weight"],
    };
    let sizes = [config.source_vocabulary, config.target_vocabulary, config.target_vocabulary];
    std::array::from_fn(|table| (names[table], [sizes[table], config.d_model]))
}

/// The factor √d by which most models multiply their embeddings.
pub(in crate::exchange) fn embedding_scale(d_model: usize) -> f32 {
    (d_model as f32).sqrt()
}
