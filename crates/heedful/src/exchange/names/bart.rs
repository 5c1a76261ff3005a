//! The layer names of BART in Hugging Face's transformers, which Marian, Pegasus and OPT use too.
//!
//! ```text
//! P.layers.i.self_attn.{q,k,v,out}_proj, self_attn_layer_norm         S.i.self_attention.qkv, .output, S.i.self_attention_norm
//! P.layers.i.encoder_attn.{q,k,v,out}_proj, encoder_attn_layer_norm   S.i.cross_attention.query, .key_value, .output, …_norm
//! P.layers.i.fc1, fc2, final_layer_norm                               S.i.feed_forward.inner, .outer, S.i.feed_forward_norm
//! P.layer_norm                                                        S.norm
//! ```

use super::{Cross, Linear, LinearNames, ParamMapping, StackShape, torch_blocks, torch_norm};
use crate::layers::Norm;

/// The blocks of a stack whose tensor names begin with `prefix`, such as `model.encoder`, and its final norm,
/// named `last_norm`.
pub(in crate::exchange) fn stack(shape: StackShape, prefix: &str, last_norm: &str) -> Vec<ParamMapping> {
    let StackShape { name, d_model: d, d_ff, .. } = shape;
    let mut linears: Vec<LinearNames> = vec![
        ("self_attention.qkv", &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], [d, 3 * d]),
        ("self_attention.output", &["self_attn.out_proj"], [d, d]),
    ];
    let mut norms =
        vec![("self_attention_norm", "self_attn_layer_norm"), ("feed_forward_norm", "final_layer_norm")];
    if shape.cross == Cross::With {
        linears.extend::<[LinearNames; 3]>([
            ("cross_attention.query", &["encoder_attn.q_proj"], [d, d]),
            ("cross_attention.key_value", &["encoder_attn.k_proj", "encoder_attn.v_proj"], [d, 2 * d]),
            ("cross_attention.output", &["encoder_attn.out_proj"], [d, d]),
        ]);
        norms.push(("cross_attention_norm", "encoder_attn_layer_norm"));
    }
    linears.extend::<[LinearNames; 2]>([
        ("feed_forward.inner", &["fc1"], [d, d_ff]),
        ("feed_forward.outer", &["fc2"], [d_ff, d]),
    ]);
    let blocks = format!("{prefix}.layers");
    let mut pairs = torch_blocks(shape, &blocks, Linear::OutputsFirst, &linears, &norms);
    if shape.norm == Norm::Pre {
        pairs.extend(torch_norm(&format!("{name}.norm"), &format!("{prefix}.{last_norm}"), d));
    }
    pairs
}
