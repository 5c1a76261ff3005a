//! ```text
//! P.h.i.attn.c_attn, attn.c_proj, ln_1      decoder.i.self_attention.qkv, .output, decoder.i.self_attention_norm
//! P.h.i.mlp.c_fc, mlp.c_proj, ln_2          decoder.i.feed_forward.inner, .outer, decoder.i.feed_forward_norm
//! P.ln_f                                    decoder.norm
//! ```
//!
//! Weights are inputs × outputs, as ours are.

use super::{Linear, Pair, StackShape, torch_norm, weight_and_bias};

/// The blocks, and the norm at their end, of tensors that begin with `prefix`.
pub(in crate::exchange) fn stack(shape: StackShape, prefix: &str) -> Vec<Pair> {
    let StackShape { name, layers, d_model: d, d_ff, .. } = shape;
    let mut pairs = Vec::new();
    for i in 0..layers {
        let (ours, theirs) = (format!("{name}.{i}"), format!("{prefix}h.{i}"));
        for (part, their_part, shape) in [
            ("self_attention.qkv", "attn.c_attn", [d, 3 * d]),
            ("self_attention.output", "attn.c_proj", [d, d]),
            ("feed_forward.inner", "mlp.c_fc", [d, d_ff]),
            ("feed_forward.outer", "mlp.c_proj", [d_ff, d]),
        ] {
            pairs.push(Pair::Linear {
                ours: format!("{ours}.{part}"),
                theirs: vec![weight_and_bias(&format!("{theirs}.{their_part}"))],
                layout: Linear::InputsFirst,
                shape,
            });
        }
        for (part, their_part) in [("self_attention_norm", "ln_1"), ("feed_forward_norm", "ln_2")] {
            pairs.extend(torch_norm(&format!("{ours}.{part}"), &format!("{theirs}.{their_part}"), d));
        }
    }
    pairs.extend(torch_norm(&format!("{name}.norm"), &format!("{prefix}ln_f"), d));
    pairs
}
