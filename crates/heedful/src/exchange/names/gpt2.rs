//! ```text
//! P.h.i.attn.c_attn, attn.c_proj, ln_1      decoder.i.self_attention.qkv, .output, decoder.i.self_attention_norm
//! P.h.i.mlp.c_fc, mlp.c_proj, ln_2          decoder.i.feed_forward.inner, .outer, decoder.i.feed_forward_norm
//! P.ln_f                                    decoder.norm
//! ```
//!
//! Weights are inputs × outputs, as in heedful.

use super::{Linear, LinearNames, ParamMapping, StackShape, torch_blocks, torch_norm};

/// The blocks of a stack whose tensor names begin with `prefix`, and its final norm.
pub(in crate::exchange) fn stack(shape: StackShape, prefix: &str) -> Vec<ParamMapping> {
    let StackShape { name, d_model: d, d_ff, .. } = shape;
    let linears: [LinearNames; 4] = [
        ("self_attention.qkv", &["attn.c_attn"], [d, 3 * d]),
        ("self_attention.output", &["attn.c_proj"], [d, d]),
        ("feed_forward.inner", &["mlp.c_fc"], [d, d_ff]),
        ("feed_forward.outer", &["mlp.c_proj"], [d_ff, d]),
    ];
    let norms = [("self_attention_norm", "ln_1"), ("feed_forward_norm", "ln_2")];
    let mut pairs = torch_blocks(shape, &format!("{prefix}h"), Linear::InputsFirst, &linears, &norms);
    pairs.extend(torch_norm(&format!("{name}.norm"), &format!("{prefix}ln_f"), d));
    pairs
}
