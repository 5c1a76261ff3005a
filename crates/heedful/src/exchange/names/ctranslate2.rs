//! ```text
//! S/layer_i/self_attention/linear_0, linear_1, layer_norm          S.i.self_attention.qkv, .output, S.i.self_attention_norm
//! decoder/layer_i/attention/linear_0, linear_1, linear_2           decoder.i.cross_attention.query, .key_value, .output
//! S/layer_i/ffn/linear_0, linear_1, layer_norm                     S.i.feed_forward.inner, .outer, S.i.feed_forward_norm
//! S/layer_norm, S/layernorm_embedding                              S.norm, …embedding_norm
//! ```

use super::{Cross, Linear, ParamMapping, StackShape, norm};
use crate::layers::Norm;

/// The blocks of a stack, which has the same name in both projects, and its final norm.
pub(in crate::exchange) fn stack(shape: StackShape) -> Vec<ParamMapping> {
    let StackShape { name, layers, d_model: d, d_ff, .. } = shape;
    let mut pairs = Vec::new();
    for i in 0..layers {
        let (ours, theirs) = (format!("{name}.{i}"), format!("{name}/layer_{i}"));
        let mut linear = |part: &str, their_part: &str, shape: [usize; 2]| {
            let layer = format!("{theirs}/{their_part}");
            pairs.push(ParamMapping::Linear {
                ours: format!("{ours}.{part}"),
                theirs: vec![["weight", "bias"].map(|part| format!("{layer}/{part}"))],
                layout: Linear::OutputsFirst,
                shape,
            });
        };
        linear("self_attention.qkv", "self_attention/linear_0", [d, 3 * d]);
        linear("self_attention.output", "self_attention/linear_1", [d, d]);
        if shape.cross == Cross::With {
            linear("cross_attention.query", "attention/linear_0", [d, d]);
            linear("cross_attention.key_value", "attention/linear_1", [d, 2 * d]);
            linear("cross_attention.output", "attention/linear_2", [d, d]);
        }
        linear("feed_forward.inner", "ffn/linear_0", [d, d_ff]);
        linear("feed_forward.outer", "ffn/linear_1", [d_ff, d]);
        let mut norms = vec![("self_attention_norm", "self_attention"), ("feed_forward_norm", "ffn")];
        if shape.cross == Cross::With {
            norms.push(("cross_attention_norm", "attention"));
        }
        for (part, their_part) in norms {
            pairs.extend(layer_norm(
                &format!("{ours}.{part}"),
                &format!("{theirs}/{their_part}/layer_norm"),
                d,
            ));
        }
    }
    if shape.norm == Norm::Pre {
        pairs.extend(layer_norm(&format!("{name}.norm"), &format!("{name}/layer_norm"), d));
    }
    pairs
}

/// The norm on the embeddings of a stack.
pub(in crate::exchange) fn embedding_norm(ours: &str, stack: &str, width: usize) -> [ParamMapping; 2] {
    layer_norm(ours, &format!("{stack}/layernorm_embedding"), width)
}

fn layer_norm(ours: &str, theirs: &str, width: usize) -> [ParamMapping; 2] {
    norm(ours, ["gamma", "beta"].map(|part| format!("{theirs}/{part}")), width)
}
