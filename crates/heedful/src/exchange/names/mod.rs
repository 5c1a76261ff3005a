//! The mapping between the variables of other projects and heedful's parameters: one table for each naming
//! scheme. Import and export use the same tables, so that neither can miss a variable.

pub(super) mod activations;
pub(super) mod bart;
pub(super) mod bert;
pub(super) mod ctranslate2;
pub(super) mod gpt2;
pub(super) mod tables;

use crate::layers::Norm;
use crate::models::transformer::{StackConfig, TransformerConfig};

/// A parameter of heedful, and its name and layout in another project's files.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ParamMapping {
    /// A vector.
    Vector { ours: String, theirs: String, width: usize },
    /// `ours.weight` (`inputs × outputs`) and `ours.bias`: the concatenation of one or more of the other
    /// project's layers, each given by the names of its weight and bias.
    Linear { ours: String, theirs: Vec<[String; 2]>, layout: Linear, shape: [usize; 2] },
}

/// How a file stores the weight of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linear {
    /// Outputs × inputs.
    OutputsFirst,
    /// Inputs × outputs, as in heedful.
    InputsFirst,
}

/// The sizes of a stack and the structure of its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackShape {
    /// The prefix of its parameters: `encoder` or `decoder`.
    pub(super) name: &'static str,
    pub(super) layers: usize,
    pub(super) d_model: usize,
    pub(super) d_ff: usize,
    pub(super) norm: Norm,
    pub(super) cross: Cross,
}

/// Whether the blocks have cross attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cross {
    With,
    Without,
}

impl StackShape {
    /// The stack of a model that has only one.
    pub(super) fn single(name: &'static str, config: &StackConfig) -> StackShape {
        let StackConfig { layers, d_model, d_ff, norm, .. } = *config;
        StackShape { name, layers, d_model, d_ff, norm, cross: Cross::Without }
    }

    /// Encoder and decoder of a translator.
    pub(super) fn both(config: &TransformerConfig) -> [StackShape; 2] {
        [
            StackShape::single("encoder", &config.encoder()),
            StackShape { cross: Cross::With, ..StackShape::single("decoder", &config.decoder()) },
        ]
    }
}

/// γ and β of a norm.
pub(super) fn norm(ours: &str, [gamma, beta]: [String; 2], width: usize) -> [ParamMapping; 2] {
    [("gamma", gamma), ("beta", beta)].map(|(part, theirs)| ParamMapping::Vector {
        ours: format!("{ours}.{part}"),
        theirs,
        width,
    })
}

/// A linear layer: heedful's name, the names of the other project's layers that are concatenated in it,
/// inputs and outputs.
pub(super) type LinearNames = (&'static str, &'static [&'static str], [usize; 2]);

/// The blocks of a stack whose layers have a weight and a bias, as in PyTorch. The other project's names of
/// block `i` begin with `BLOCKS.i`; norms are given by heedful's and the other project's name.
fn torch_blocks(
    shape: StackShape,
    blocks: &str,
    layout: Linear,
    linears: &[LinearNames],
    norms: &[(&str, &str)],
) -> Vec<ParamMapping> {
    let mut pairs = Vec::new();
    for i in 0..shape.layers {
        let (ours, theirs) = (format!("{}.{i}", shape.name), format!("{blocks}.{i}"));
        pairs.extend(linears.iter().map(|(part, their_parts, shape)| ParamMapping::Linear {
            ours: format!("{ours}.{part}"),
            theirs: their_parts.iter().map(|part| weight_and_bias(&format!("{theirs}.{part}"))).collect(),
            layout,
            shape: *shape,
        }));
        for (part, their_part) in norms {
            pairs.extend(torch_norm(
                &format!("{ours}.{part}"),
                &format!("{theirs}.{their_part}"),
                shape.d_model,
            ));
        }
    }
    pairs
}

/// A norm whose γ and β are named weight and bias, as in PyTorch.
pub(super) fn torch_norm(ours: &str, theirs: &str, width: usize) -> [ParamMapping; 2] {
    norm(ours, weight_and_bias(theirs), width)
}

/// The names of a layer's weight and bias in PyTorch.
pub(super) fn weight_and_bias(layer: &str) -> [String; 2] {
    ["weight", "bias"].map(|part| format!("{layer}.{part}"))
}
