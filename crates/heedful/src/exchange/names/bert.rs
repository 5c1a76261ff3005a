//! ```text
//! P.encoder.layer.i.attention.self.{query,key,value}, attention.output.dense     encoder.i.self_attention.qkv, .output
//! P.encoder.layer.i.intermediate.dense, output.dense                             encoder.i.feed_forward.inner, .outer
//! post-norm (BERT)            attention.output.LayerNorm, output.LayerNorm       encoder.i.self_attention_norm, feed_forward_norm
//! pre-norm (Megatron-BERT)    attention.ln, ln; P.encoder.ln                     the same; encoder.norm
//! cls.predictions.transform.dense, LayerNorm; cls.predictions.bias               head, head_norm; output.bias
//! ```

use super::{Linear, LinearNames, ParamMapping, StackShape, torch_blocks, torch_norm, weight_and_bias};
use crate::layers::Norm;

/// The prefix of the masked-token head.
pub(in crate::exchange) const HEAD: &str = "cls.predictions";

/// The blocks of a stack whose tensor names begin with `prefix`, and the final norm of a pre-norm stack.
pub(in crate::exchange) fn stack(shape: StackShape, prefix: &str) -> Vec<ParamMapping> {
    let StackShape { name, d_model: d, d_ff, .. } = shape;
    let qkv = &["attention.self.query", "attention.self.key", "attention.self.value"];
    let linears: [LinearNames; 4] = [
        ("self_attention.qkv", qkv, [d, 3 * d]),
        ("self_attention.output", &["attention.output.dense"], [d, d]),
        ("feed_forward.inner", &["intermediate.dense"], [d, d_ff]),
        ("feed_forward.outer", &["output.dense"], [d_ff, d]),
    ];
    let [attention, feed_forward] = match shape.norm {
        Norm::Post => ["attention.output.LayerNorm", "output.LayerNorm"],
        Norm::Pre => ["attention.ln", "ln"],
    };
    let norms = [("self_attention_norm", attention), ("feed_forward_norm", feed_forward)];
    let blocks = format!("{prefix}encoder.layer");
    let mut pairs = torch_blocks(shape, &blocks, Linear::OutputsFirst, &linears, &norms);
    if shape.norm == Norm::Pre {
        pairs.extend(torch_norm(&format!("{name}.norm"), &format!("{prefix}encoder.ln"), d));
    }
    pairs
}

/// The layer between the states and the output projection.
pub(in crate::exchange) fn head(d: usize) -> Vec<ParamMapping> {
    let dense = ParamMapping::Linear {
        ours: "head".to_owned(),
        theirs: vec![weight_and_bias(&format!("{HEAD}.transform.dense"))],
        layout: Linear::OutputsFirst,
        shape: [d, d],
    };
    [dense].into_iter().chain(torch_norm("head_norm", &format!("{HEAD}.transform.LayerNorm"), d)).collect()
}
