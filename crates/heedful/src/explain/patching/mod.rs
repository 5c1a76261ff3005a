//! Activation patching: a state of the run on a clean text is put into the run on a corrupted text. How far
//! the answer moves shows where the model keeps the information that distinguishes the two.
//!
//! ```text
//! M       = log p(answer) − log p(wrong answer)
//! effect  = (M_patched − M_corrupted) / (M_clean − M_corrupted)       0: no effect; 1: the clean answer
//! ```
//!
//! | unit | a patch replaces |
//! |---|---|
//! | states | the residual stream at one position after one layer |
//! | heads | the output of one head at all positions |
//!
//! Both texts have the same number of tokens, so that every state has a counterpart.

mod views;

#[cfg(test)]
mod tests;

use heedful_tensor::Tensor;
use serde::Serialize;

use super::inspect::{Inspected, Prediction};
use crate::layers::{LayerName, StackSide, StateSite, States};
use crate::{Error, Result};

/// The unit that a patch replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PatchUnit {
    /// The residual stream at a position after a layer.
    States,
    /// A head of an attention layer.
    Heads,
}

/// The prediction that patches move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contrast {
    /// Its number among the predictions of both texts.
    pub prediction: usize,
    /// The token or label of the clean text.
    pub answer: u32,
    /// That of the corrupted text.
    pub wrong: u32,
}

/// The effect of every patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Patching {
    /// The unit that was replaced.
    pub unit: PatchUnit,
    /// The answer of the clean text.
    pub answer: Prediction,
    /// The answer of the corrupted text.
    pub wrong: Prediction,
    /// `log p(answer) − log p(wrong answer)` of the clean text.
    pub clean: f64,
    /// The same of the corrupted text.
    pub corrupted: f64,
    /// One grid for each stack or kind of attention.
    pub grids: Vec<PatchGrid>,
}

/// The effects of the patches of one stack or kind of attention.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatchGrid {
    /// The layers.
    pub rows: Vec<String>,
    /// The positions, as tokens of the clean and the corrupted text, or the heads.
    pub columns: Vec<String>,
    /// The effect of each patch: rows × columns.
    pub effects: Vec<Vec<f64>>,
}

/// Below this difference between clean and corrupted text, effects are rounding errors.
const MIN_DIFFERENCE: f64 = 1e-4;

/// Maximum number of tokens in a batch of patched copies, unless one copy has more.
const BATCH_TOKENS: usize = 4096;

impl Patching {
    /// Patches states of `clean` into `corrupted`.
    pub fn new(
        clean: &Inspected<'_>,
        corrupted: &Inspected<'_>,
        contrast: Contrast,
        unit: PatchUnit,
    ) -> Result<Patching> {
        check(clean, corrupted)?;
        let runs = Runs::new(clean, corrupted, contrast)?;
        let grids = match unit {
            PatchUnit::States => runs.state_grids()?,
            PatchUnit::Heads => runs.head_grids()?,
        };
        let prediction = |class| Prediction { class, piece: clean.piece(class) };
        Ok(Patching {
            unit,
            answer: prediction(contrast.answer),
            wrong: prediction(contrast.wrong),
            clean: runs.clean_margin,
            corrupted: runs.corrupted_margin,
            grids,
        })
    }
}

/// Checks that both texts have the same shape.
fn check(clean: &Inspected<'_>, corrupted: &Inspected<'_>) -> Result<()> {
    for (one, other) in clean.inputs().iter().zip(corrupted.inputs()) {
        let [clean, corrupted] = [one, other].map(|inputs| inputs.pieces.len());
        if clean != corrupted {
            return Err(Error::new(format!(
                "the clean text has {clean} tokens and the corrupted text {corrupted} ({} | {}): patching needs the same number, \
                 so replace words by words with as many tokens",
                one.pieces.join(" "),
                other.pieces.join(" ")
            )));
        }
    }
    Ok(())
}

/// The recorded runs of both texts.
struct Runs<'t> {
    corrupted: &'t Inspected<'t>,
    contrast: Contrast,
    states: [States; 2],
    clean_margin: f64,
    corrupted_margin: f64,
    /// The columns of the state grids.
    columns: Vec<Vec<String>>,
    /// The heads of each attention layer.
    heads: Vec<(LayerName, usize)>,
}

impl<'t> Runs<'t> {
    fn new(clean: &'t Inspected<'t>, corrupted: &'t Inspected<'t>, contrast: Contrast) -> Result<Runs<'t>> {
        let run = |text: &Inspected<'_>| -> Result<_> {
            let mut pass = text.pass().recording().recording_states();
            let rows = text.log_probabilities(&mut pass, 1, &[contrast.prediction])?;
            let maps = pass.take_attention()?;
            let heads = maps.iter().map(|map| (map.site.layer_name(), map.heads())).collect::<Vec<_>>();
            Ok((margin(&rows[0], contrast), pass.take_states(), heads))
        };
        let (clean_margin, clean_states, heads) = run(clean)?;
        let (corrupted_margin, corrupted_states, _) = run(corrupted)?;
        if (clean_margin - corrupted_margin).abs() < MIN_DIFFERENCE {
            return Err(Error::new(
                "clean and corrupted text prefer the answer equally: give texts, or --answer and --wrong, that differ",
            ));
        }
        let column = |(clean, corrupted): (&String, &String)| match clean == corrupted {
            true => clean.clone(),
            false => format!("{clean}/{corrupted}"),
        };
        let columns = clean
            .inputs()
            .iter()
            .zip(corrupted.inputs())
            .map(|(clean, corrupted)| clean.pieces.iter().zip(&corrupted.pieces).map(column).collect());
        Ok(Runs {
            corrupted,
            contrast,
            states: [clean_states, corrupted_states],
            clean_margin,
            corrupted_margin,
            columns: columns.collect(),
            heads,
        })
    }

    fn state_grids(&self) -> Result<Vec<PatchGrid>> {
        let grid = |(number, columns): (usize, &Vec<String>)| {
            let inputs = &self.corrupted.inputs()[number];
            let stack = inputs.stack;
            let layers = 0..=inputs.blocks;
            let effects = layers.clone().map(|blocks| {
                let site = StateSite::Residual { stack, blocks };
                let [clean, corrupted] = self.both(site)?;
                let width = clean.width();
                let (clean, corrupted) = (clean.to_vec(), corrupted.to_vec());
                let patch = |position: usize| {
                    let mut patched = corrupted.clone();
                    let row = position * width..(position + 1) * width;
                    patched[row.clone()].copy_from_slice(&clean[row]);
                    patched
                };
                self.effects(site, width, columns.len(), patch)
            });
            Ok(PatchGrid {
                effects: effects.collect::<Result<_>>()?,
                rows: layers.map(|blocks| Inspected::layer_name(stack, blocks)).collect(),
                columns: columns.clone(),
            })
        };
        self.columns.iter().enumerate().map(grid).collect()
    }

    fn head_grids(&self) -> Result<Vec<PatchGrid>> {
        let mut grids: Vec<(crate::layers::AttentionRole, PatchGrid)> = Vec::new();
        for &(layer, heads) in &self.heads {
            let site = StateSite::Heads(layer);
            if self.states[0].at(site).is_none() {
                // A classifier's pooling has no heads in the residual stream.
                continue;
            }
            let [clean, corrupted] = self.both(site)?;
            let width = clean.width();
            let (clean, corrupted) = (clean.to_vec(), corrupted.to_vec());
            let patch = |head: usize| {
                let columns = head * (width / heads)..(head + 1) * (width / heads);
                let mut patched = corrupted.clone();
                for (to, from) in patched.chunks_exact_mut(width).zip(clean.chunks_exact(width)) {
                    to[columns.clone()].copy_from_slice(&from[columns.clone()]);
                }
                patched
            };
            let effects = self.effects(site, width, heads, patch)?;
            let index = grids.iter().position(|(role, _)| *role == layer.role).unwrap_or_else(|| {
                let columns = (0..heads).map(|head| head.to_string()).collect();
                grids.push((layer.role, PatchGrid { rows: Vec::new(), columns, effects: Vec::new() }));
                grids.len() - 1
            });
            grids[index].1.rows.push(layer.to_string());
            grids[index].1.effects.push(effects);
        }
        Ok(grids.into_iter().map(|(_, grid)| grid).collect())
    }

    /// The state of the clean and of the corrupted run.
    fn both(&self, site: StateSite) -> Result<[&Tensor; 2]> {
        let missing = || Error::new(format!("the model recorded no state {site}"));
        let [clean, corrupted] = &self.states;
        Ok([clean.at(site).ok_or_else(missing)?, corrupted.at(site).ok_or_else(missing)?])
    }

    /// The effect of each of `count` patches at a site.
    fn effects(
        &self,
        site: StateSite,
        width: usize,
        count: usize,
        patch: impl Fn(usize) -> Vec<f32>,
    ) -> Result<Vec<f64>> {
        let tokens: usize = self.corrupted.inputs().iter().map(|inputs| inputs.ids.len()).sum();
        let in_batch = (BATCH_TOKENS / tokens.max(1)).max(1);
        let patches: Vec<usize> = (0..count).collect();
        let mut effects = Vec::new();
        for chunk in patches.chunks(in_batch) {
            let values: Vec<f32> = chunk.iter().flat_map(|&number| patch(number)).collect();
            let mut replaced = vec![(site, self.corrupted.state(width, &values))];
            replaced.extend(self.unchanged_encoder(site, chunk.len())?);
            effects
                .extend(self.margins(replaced, chunk.len())?.into_iter().map(|margin| self.effect(margin)));
        }
        Ok(effects)
    }

    /// The corrupted encoder's output, for patches of a translator's decoder: it need not be computed.
    fn unchanged_encoder(&self, patched: StateSite, copies: usize) -> Result<Option<(StateSite, Tensor)>> {
        let is_decoder = matches!(patched, StateSite::Residual { stack: StackSide::Decoder, .. });
        let Some(encoder) = self.corrupted.inputs().iter().find(|inputs| inputs.stack == StackSide::Encoder)
        else {
            return Ok(None);
        };
        if !is_decoder {
            return Ok(None);
        }
        let site = StateSite::Residual { stack: encoder.stack, blocks: encoder.blocks };
        let [_, state] = self.both(site)?;
        Ok(Some((site, self.corrupted.state(state.width(), &state.to_vec().repeat(copies)))))
    }

    /// `M` of copies of the corrupted text with these states.
    fn margins(&self, replaced: Vec<(StateSite, Tensor)>, copies: usize) -> Result<Vec<f64>> {
        let count = self.corrupted.predictions().len();
        let rows: Vec<usize> = (0..copies).map(|copy| copy * count + self.contrast.prediction).collect();
        let mut pass = self.corrupted.pass().replacing(replaced);
        let scores = self.corrupted.log_probabilities(&mut pass, copies, &rows)?;
        Ok(scores.iter().map(|row| margin(row, self.contrast)).collect())
    }

    fn effect(&self, margin: f64) -> f64 {
        (margin - self.corrupted_margin) / (self.clean_margin - self.corrupted_margin)
    }
}

/// `log p(answer) − log p(wrong answer)`.
fn margin(row: &[f64], contrast: Contrast) -> f64 {
    row[contrast.answer as usize] - row[contrast.wrong as usize]
}
