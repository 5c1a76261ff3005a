//! Which variable of another project is which parameter of ours: one table for each layout of names. Import reads by it and
//! export writes by it, so that neither can forget a variable.

pub(super) mod activations;
pub(super) mod bart;
pub(super) mod bert;
pub(super) mod ctranslate2;
pub(super) mod gpt2;
pub(super) mod tables;

use crate::layers::Norm;
use crate::models::transformer::{StackConfig, TransformerConfig};

/// Parameters of ours, and where they are in files of another project.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pair {
    /// A row of numbers.
    Vector { ours: String, theirs: String, width: usize },
    /// `ours.weight` and `ours.bias` of `inputs × outputs`. Several layers of theirs, given as weight and bias, are one of ours,
    /// side by side.
    Linear { ours: String, theirs: Vec<[String; 2]>, layout: Linear, shape: [usize; 2] },
}

/// How a file keeps the weight of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Linear {
    /// Outputs × inputs.
    OutputsFirst,
    /// Inputs × outputs, as we do.
    InputsFirst,
}

/// The sizes of one stack of ours, and what its blocks have.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackShape {
    /// What its parameters begin with: `encoder` or `decoder`.
    pub(super) name: &'static str,
    pub(super) layers: usize,
    pub(super) d_model: usize,
    pub(super) d_ff: usize,
    pub(super) norm: Norm,
    pub(super) cross: Cross,
}

/// Whether blocks attend to another stack too.
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
pub(super) fn norm(ours: &str, [gamma, beta]: [String; 2], width: usize) -> [Pair; 2] {
    [("gamma", gamma), ("beta", beta)].map(|(part, theirs)| Pair::Vector {
        ours: format!("{ours}.{part}"),
        theirs,
        width,
    })
}

/// A linear layer of ours: its name, the names of theirs that lie side by side in it, inputs and outputs.
pub(super) type LinearNames = (&'static str, &'static [&'static str], [usize; 2]);

/// The blocks of a stack whose layers have a weight and a bias, as in PyTorch. The names of their block `i` begin with
/// `BLOCKS.i`; norms are given by our name and theirs.
fn torch_blocks(
    shape: StackShape,
    blocks: &str,
    layout: Linear,
    linears: &[LinearNames],
    norms: &[(&str, &str)],
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for i in 0..shape.layers {
        let (ours, theirs) = (format!("{}.{i}", shape.name), format!("{blocks}.{i}"));
        pairs.extend(linears.iter().map(|(part, their_parts, shape)| Pair::Linear {
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

/// A norm whose γ and β they call weight and bias, as PyTorch does.
pub(super) fn torch_norm(ours: &str, theirs: &str, width: usize) -> [Pair; 2] {
    norm(ours, weight_and_bias(theirs), width)
}

/// The names of a layer's weight and bias, as PyTorch has them.
pub(super) fn weight_and_bias(layer: &str) -> [String; 2] {
    ["weight", "bias"].map(|part| format!("{layer}.{part}"))
}
