//! What the leader tells the others to do, with all that they need for it.

use std::borrow::Cow;

use heedful_tensor::{Device, Ragged};
use serde::{Deserialize, Serialize};

use super::wire::{Reader, Writer};
use crate::data::batch::Batch;
use crate::tasks::ModelConfig;

/// What all ranks do next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order<'a> {
    /// Build a model and its trainer; the leader's parameters follow.
    Begin(Box<Beginning>),
    /// Make a step with these batches.
    Step(Cow<'a, [Batch]>),
    /// Give the leader what everybody owns of the optimizer's state.
    State,
    /// Give the leader what everybody owns of the moving average.
    Average,
    /// Go on from a state that the leader has.
    Restore {
        /// Its step.
        step: u64,
        /// Its gradient norms.
        norms: Vec<f32>,
    },
    /// Nothing more.
    End,
}

/// What a follower builds its trainer from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beginning {
    /// The model.
    pub(crate) config: ModelConfig,
    /// The recipe, as TOML.
    pub(crate) recipe: String,
    /// Where it trains.
    pub(crate) place: Place,
}

/// What a rank trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    Cpu,
    Gpu,
}

impl From<Device> for Place {
    fn from(device: Device) -> Place {
        match device {
            Device::Cpu => Place::Cpu,
            Device::Cuda => Place::Gpu,
        }
    }
}

impl From<Place> for Device {
    fn from(place: Place) -> Device {
        match place {
            Place::Cpu => Device::Cpu,
            Place::Gpu => Device::Cuda,
        }
    }
}

impl Order<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let out = Writer::default();
        let out = match self {
            Order::Begin(beginning) => {
                let text =
                    serde_json::to_string(beginning).expect("a configuration has only names and numbers");
                out.byte(0).text(&text)
            }
            Order::Step(batches) => {
                let out = out.byte(1).u64(batches.len() as u64);
                batches.iter().fold(out, |out, batch| {
                    let out = out.u32s(&batch.source).u32s(&lengths(&batch.source_sequences));
                    let out = out.u32s(&batch.target_in).u32s(&batch.target_out);
                    out.u32s(&lengths(&batch.target_sequences))
                })
            }
            Order::State => out.byte(2),
            Order::Average => out.byte(3),
            Order::Restore { step, norms } => out.byte(4).u64(*step).f32s(norms),
            Order::End => out.byte(5),
        };
        out.finish()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Order<'static> {
        let mut input = Reader(bytes);
        match input.byte() {
            0 => Order::Begin(
                serde_json::from_str(&input.text()).expect("a configuration of the same program"),
            ),
            1 => {
                let batches = (0..input.u64()).map(|_| Batch {
                    source: input.u32s(),
                    source_sequences: ragged(&input.u32s()),
                    target_in: input.u32s(),
                    target_out: input.u32s(),
                    target_sequences: ragged(&input.u32s()),
                });
                Order::Step(Cow::Owned(batches.collect()))
            }
            2 => Order::State,
            3 => Order::Average,
            4 => Order::Restore { step: input.u64(), norms: input.f32s() },
            5 => Order::End,
            kind => unreachable!("an order of the same program, not {kind}"),
        }
    }
}

fn lengths(sequences: &Ragged) -> Vec<u32> {
    sequences.lengths().map(|length| length as u32).collect()
}

fn ragged(lengths: &[u32]) -> Ragged {
    Ragged::from_lengths(lengths.iter().map(|&length| length as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn orders_arrive_as_they_were_given() {
        let batch = |n: u32| {
            let pairs = [(vec![n, 2, 3], vec![4]), (vec![5], vec![])];
            Batch::new(&pairs, 1, 2).expect("two pairs")
        };
        let recipe = Recipe::default();
        let config = recipe.model_config([50; 2], 2).expect("a model");
        for order in [
            Order::Begin(Box::new(Beginning { config, recipe: recipe.to_toml(), place: Place::Gpu })),
            Order::Step(vec![batch(7), batch(8)].into()),
            Order::State,
            Order::Average,
            Order::Restore { step: 12, norms: vec![0.5, f32::MIN_POSITIVE] },
            Order::End,
        ] {
            assert_eq!(Order::from_bytes(&order.to_bytes()), order);
        }
    }
}
