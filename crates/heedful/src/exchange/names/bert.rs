//! ```text
//! P.encoder.layer.i.attention.self.{query,key,value}, attention.output.dense     encoder.i.self_attention.qkv, .output
//! P.encoder.layer.i.intermediate.dense, output.dense                             encoder.i.feed_forward.inner, .outer
//! post-norm (BERT)            attention.output.LayerNorm, output.LayerNorm       encoder.i.self_attention_norm, feed_forward_norm
//! pre-norm (Megatron-BERT)    attention.ln, ln; P.encoder.ln                     the same; encoder.norm
//! cls.predictions.transform.dense, LayerNorm; cls.predictions.bias               head, head_norm; output.bias
//! ```

use super::{Linear, Pair, StackShape, torch_norm, weight_and_bias};
use crate::layers::Norm;

/// The head for masked tokens.
pub(in crate::exchange) const HEAD: &str = "cls.predictions";

/// The blocks of tensors that begin with `prefix`, and the norm at the end of pre-norm ones.
pub(in crate::exchange) fn stack(shape: StackShape, prefix: &str) -> Vec<Pair> {
    let StackShape { name, layers, d_model: d, d_ff, .. } = shape;
    let mut pairs = Vec::new();
    for i in 0..layers {
        let (ours, theirs) = (format!("{name}.{i}"), format!("{prefix}encoder.layer.{i}"));
        let mut linear = |part: &str, their_parts: &[&str], shape: [usize; 2]| {
            pairs.push(Pair::Linear {
                ours: format!("{ours}.{part}"),
                theirs: their_parts.iter().map(|part| weight_and_bias(&format!("{theirs}.{part}"))).collect(),
                layout: Linear::OutputsFirst,
                shape,
            });
        };
        let qkv = ["attention.self.query", "attention.self.key", "attention.self.value"];
        linear("self_attention.qkv", &qkv, [d, 3 * d]);
        linear("self_attention.output", &["attention.output.dense"], [d, d]);
        linear("feed_forward.inner", &["intermediate.dense"], [d, d_ff]);
        linear("feed_forward.outer", &["output.dense"], [d_ff, d]);
        let [attention, feed_forward] = match shape.norm {
            Norm::Post => ["attention.output.LayerNorm", "output.LayerNorm"],
            Norm::Pre => ["attention.ln", "ln"],
        };
        for (part, their_part) in [("self_attention_norm", attention), ("feed_forward_norm", feed_forward)] {
            pairs.extend(torch_norm(&format!("{ours}.{part}"), &format!("{theirs}.{their_part}"), d));
        }
    }
    if shape.norm == Norm::Pre {
        pairs.extend(torch_norm(&format!("{name}.norm"), &format!("{prefix}encoder.ln"), d));
    }
    pairs
}

/// The layer between the states and the output projection.
pub(in crate::exchange) fn head(d: usize) -> Vec<Pair> {
    let dense = Pair::Linear {
        ours: "head".to_owned(),
        theirs: vec![weight_and_bias(&format!("{HEAD}.transform.dense"))],
        layout: Linear::OutputsFirst,
        shape: [d, d],
    };
    [dense].into_iter().chain(torch_norm("head_norm", &format!("{HEAD}.transform.LayerNorm"), d)).collect()
}
