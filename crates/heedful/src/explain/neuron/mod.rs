//! The neuron view: the numbers behind one attention weight, and behind one token's path through the model.
//!
//! ```text
//! q ∘ k          element by element, of one head, query and key; its sum is q · k
//! score          q · k · scale                        before the softmax
//! weight         softmax over all keys of the query
//!
//! path           token vector → embedding → block 0 → … → block N → logits
//! ```

mod views;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::inspect::Inspected;
use crate::layers::{AttentionRole, HeadName, StackSide, StateSite, States};
use crate::{Error, Result};

/// The numbers of one attention weight and one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeuronView {
    /// The attention weight.
    pub pair: PairView,
    /// The path of the query's token.
    pub path: TokenPath,
}

/// A query and a key of one head.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairView {
    /// `decoder.0.self.1`.
    pub head: String,
    /// The token that attends.
    pub query: TokenAt,
    /// The token that it attends to.
    pub key: TokenAt,
    /// The query vector of the head.
    pub q: Vec<f32>,
    /// The key vector of the head.
    pub k: Vec<f32>,
    /// `q ∘ k`.
    pub products: Vec<f32>,
    /// `q · k`.
    pub dot: f64,
    /// `q · k · scale`; `None` if a mask hides the key.
    pub score: Option<f32>,
    /// The attention weight.
    pub weight: f32,
    /// All attention weights of the query.
    pub weights: Vec<f32>,
    /// The tokens of these weights.
    pub keys: Vec<String>,
}

/// A token at a position of a stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenAt {
    /// Its stack: `encoder` or `decoder`.
    pub stack: &'static str,
    /// Its position, counted from 0.
    pub position: usize,
    /// The token in readable form.
    pub piece: String,
}

/// The states of one token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenPath {
    /// The token.
    pub token: TokenAt,
    /// Its states in the order of computation.
    pub steps: Vec<PathStep>,
    /// The most probable tokens that are predicted at its position; empty if nothing is.
    pub logits: Vec<PathLogit>,
}

/// One state of a token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStep {
    /// `decoder.tokens`, `decoder.embedding`, `decoder.0.self.heads`, `decoder.0`, …
    pub name: String,
    /// Its L2 norm.
    pub norm: f64,
    /// Its values.
    pub values: Vec<f32>,
}

/// A logit with its token.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathLogit {
    /// The token or label in readable form.
    pub piece: String,
    /// Its logit.
    pub logit: f32,
}

impl NeuronView {
    /// Head 0 of the first layer of self attention of the stack that predicts.
    pub fn first_head(text: &Inspected<'_>) -> HeadName {
        let role = match text.last_stack().stack {
            StackSide::Encoder => AttentionRole::EncoderSelf,
            StackSide::Decoder => AttentionRole::DecoderSelf,
        };
        HeadName { role, layer: 0, head: 0 }
    }

    /// The view of a head's query and key, given by their positions, with the `top` largest logits. The query
    /// is the last token if not given, the key the one with the largest weight.
    pub fn new(
        text: &Inspected<'_>,
        head: HeadName,
        [query, key]: [Option<usize>; 2],
        top: usize,
    ) -> Result<NeuronView> {
        let mut pass = text.pass().recording_scores().recording_states();
        let logits = text.logits(&mut pass, 1, &text.all())?;
        let (maps, states) = (pass.take_attention()?, pass.take_states());
        let layer = head.layer_name();
        let with_states = |role| role != AttentionRole::Pooling;
        let map = maps.iter().find(|map| map.site.layer_name() == layer && with_states(map.site.role));
        let Some(map) = map.filter(|map| head.head < map.heads()) else {
            let known = maps.iter().filter(|map| with_states(map.site.role));
            let known: Vec<String> =
                known.map(|map| format!("{}.0 to .{}", map.site.layer_name(), map.heads() - 1)).collect();
            return Err(Error::new(format!("the model has no head {head}: it has {}", known.join(", "))));
        };
        let [query_side, key_side] = sides(head.role);
        let last = inputs(text, query_side)?.pieces.len() - 1;
        let query = at(text, query_side, query.unwrap_or(last))?;
        let keys = &inputs(text, key_side)?.pieces;
        let row = query.position * keys.len()..(query.position + 1) * keys.len();
        let weights = map.weights[0][head.head][row.clone()].to_vec();
        let largest = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(key, _)| key);
        let key = at(text, key_side, key.unwrap_or(largest))?;
        let score = map.scores.as_ref().map(|scores| scores[0][head.head][row][key.position]);
        let [q, k] =
            [(StateSite::Queries(layer), &query), (StateSite::Keys(layer), &key)].map(|(site, token)| {
                let state =
                    states.at(site).map(|state| state.row(token.position).into_owned()).unwrap_or_default();
                let width = state.len() / map.heads();
                state[head.head * width..(head.head + 1) * width].to_vec()
            });
        let products: Vec<f32> = q.iter().zip(&k).map(|(q, k)| q * k).collect();
        let predicted = predictions_at(text, &query);
        let logits = predicted.map(|row| largest_logits(text, &logits.row(row), top)).unwrap_or_default();
        Ok(NeuronView {
            path: TokenPath { steps: steps(&states, &query), logits, token: query.clone() },
            pair: PairView {
                head: head.to_string(),
                dot: products.iter().map(|&product| f64::from(product)).sum(),
                score: score.filter(|score| score.is_finite()),
                weight: weights[key.position],
                keys: keys.clone(),
                weights,
                query,
                key,
                q,
                k,
                products,
            },
        })
    }
}

/// The stacks of the queries and keys of a kind of attention.
fn sides(role: AttentionRole) -> [StackSide; 2] {
    match role {
        AttentionRole::EncoderSelf | AttentionRole::Pooling => [StackSide::Encoder; 2],
        AttentionRole::DecoderSelf => [StackSide::Decoder; 2],
        AttentionRole::Cross => [StackSide::Decoder, StackSide::Encoder],
    }
}

fn inputs<'t>(text: &'t Inspected<'_>, stack: StackSide) -> Result<&'t super::inspect::StackInputs> {
    let found = text.inputs().iter().find(|inputs| inputs.stack == stack);
    found.ok_or_else(|| Error::new(format!("the model has no {}", stack.name())))
}

fn at(text: &Inspected<'_>, stack: StackSide, position: usize) -> Result<TokenAt> {
    let pieces = &inputs(text, stack)?.pieces;
    let Some(piece) = pieces.get(position) else {
        let last = pieces.len() - 1;
        return Err(Error::new(format!(
            "position {position} is not in the {}, whose tokens have the positions 0 to {last}: {}",
            stack.name(),
            pieces.join(" ")
        )));
    };
    Ok(TokenAt { stack: stack.name(), position, piece: piece.clone() })
}

/// All states of a token in its stack.
fn steps(states: &States, token: &TokenAt) -> Vec<PathStep> {
    let step = |(site, state): &(StateSite, heedful_tensor::Tensor)| {
        let stack = match site {
            StateSite::Tokens(stack) | StateSite::Residual { stack, .. } => *stack,
            StateSite::Heads(layer) => sides(layer.role)[0],
            StateSite::Queries(_) | StateSite::Keys(_) => return None,
        };
        let values = (stack.name() == token.stack).then(|| state.row(token.position).into_owned())?;
        let squares = values.iter().map(|&value| f64::from(value) * f64::from(value));
        Some(PathStep { name: site.to_string(), norm: squares.sum::<f64>().sqrt(), values })
    };
    states.iter().filter_map(step).collect()
}

/// The number of the prediction that is made at a token's position, if there is one.
fn predictions_at(text: &Inspected<'_>, token: &TokenAt) -> Option<usize> {
    if token.stack != text.last_stack().stack.name() {
        return None;
    }
    match &text.readout {
        super::inspect::Readout::Rows(rows) => rows.iter().position(|&row| row == token.position),
        super::inspect::Readout::Pooled(_) => Some(0),
    }
}

fn largest_logits(text: &Inspected<'_>, logits: &[f32], top: usize) -> Vec<PathLogit> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let logit = |class: usize| PathLogit { piece: text.piece(class as u32), logit: logits[class] };
    order.into_iter().take(top).map(logit).collect()
}
