//! Attention in one call, for custom models.

use heedful_tensor::ops::{self, AttentionOptions, ColumnView, Mask};
use heedful_tensor::{Ragged, Tensor};

use super::{AttentionMap, AttentionRole, AttentionSite, Pass};

/// `MultiHead(Q, K, V) = Concat(head_1 … head_h)`, `head_i = softmax(Q_i K_iᵀ / √d_k) V_i`: every row of
/// sequence `n` of the queries attends to all rows of sequence `n` of the keys. A recording pass records
/// the weights.
///
/// # Panics
/// If the shapes do not match, or if a query has no key to attend to.
pub fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    [queries, keys]: [&Ragged; 2],
    heads: usize,
    pass: &mut Pass,
) -> Tensor {
    let role = AttentionRole::Cross;
    let options = AttentionOptions {
        heads,
        scale: ((q.width() / heads) as f32).sqrt().recip(),
        mask: Mask::full(),
        dropout: pass.dropout(0.0),
        weights: pass.weights(role, heads, queries, keys),
        rounding: pass.compute().precision.rounding(),
    };
    let [q, k, v] = [q, k, v].map(|tensor| ColumnView::whole(tensor.clone()));
    let attended = ops::attention(q, k, v, queries, keys, &options);
    if let Some(weights) = attended.weights {
        let site = AttentionSite::new("attention", 0, role);
        let (queries, keys, scores) = (queries.clone(), keys.clone(), attended.scores);
        pass.record(AttentionMap { site, queries, keys, weights, scores });
    }
    attended.context
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;

    use super::*;

    #[test]
    fn equal_keys_share_the_attention_of_a_query() {
        let row = |values: &[f32]| Tensor::from_f32(values.len() / 2, 2, values);
        let [one, two] = [1, 2].map(|length| Ragged::from_lengths([length]));
        let mut pass = Pass::inference(DType::F32).recording();
        let (q, k, v) = (row(&[1.0, 2.0]), row(&[3.0, 4.0, 3.0, 4.0]), row(&[0.0, 1.0, 2.0, 3.0]));
        assert_eq!(attention(&q, &k, &v, [&one, &two], 1, &mut pass).to_vec(), [1.0, 2.0]);
        let maps = pass.take_attention().expect("few weights");
        assert_eq!(maps[0].weights, [[[0.5, 0.5]]]);
    }
}
