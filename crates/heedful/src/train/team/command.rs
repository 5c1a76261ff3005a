//! The commands that the leader sends to the followers, with all inputs.

use std::borrow::Cow;

use heedful_tensor::{Device, Ragged};
use serde::{Deserialize, Serialize};

use super::wire::{Reader, Writer};
use crate::data::batch::Batch;
use crate::tasks::ModelConfig;

/// A joint operation of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command<'a> {
    /// Build a model and its trainer; the leader broadcasts its parameters next.
    Begin(Box<TrainerSetup>),
    /// Compute a step with these batches.
    Step(Cow<'a, [Batch]>),
    /// Gather the optimizer state on the leader.
    State,
    /// Gather the moving average on the leader.
    Average,
    /// Restore the leader's state.
    Restore {
        /// Its step.
        step: u64,
        /// Its gradient norms.
        norms: Vec<f32>,
    },
    /// Exit.
    End,
}

/// The inputs from which a follower builds its trainer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainerSetup {
    /// The model.
    pub(crate) config: ModelConfig,
    /// The recipe, as TOML.
    pub(crate) recipe: String,
    /// The device to train on.
    #[serde(rename = "place")]
    pub(crate) device: RankDevice,
}

/// The device of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RankDevice {
    Cpu,
    Gpu,
}

impl From<Device> for RankDevice {
    fn from(device: Device) -> RankDevice {
        match device {
            Device::Cpu => RankDevice::Cpu,
            Device::Cuda => RankDevice::Gpu,
        }
    }
}

impl From<RankDevice> for Device {
    fn from(device: RankDevice) -> Device {
        match device {
            RankDevice::Cpu => Device::Cpu,
            RankDevice::Gpu => Device::Cuda,
        }
    }
}

impl Command<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let out = Writer::default();
        let out = match self {
            Command::Begin(setup) => {
                let text = serde_json::to_string(setup).expect("a configuration has only names and numbers");
                out.byte(0).text(&text)
            }
            Command::Step(batches) => {
                let out = out.byte(1).u64(batches.len() as u64);
                batches.iter().fold(out, |out, batch| {
                    let out = out.u32s(&batch.source).u32s(&lengths(&batch.source_sequences));
                    let out = out.u32s(&batch.target_in).u32s(&batch.target_out);
                    out.u32s(&lengths(&batch.target_sequences))
                })
            }
            Command::State => out.byte(2),
            Command::Average => out.byte(3),
            Command::Restore { step, norms } => out.byte(4).u64(*step).f32s(norms),
            Command::End => out.byte(5),
        };
        out.finish()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Command<'static> {
        let mut input = Reader(bytes);
        match input.byte() {
            0 => Command::Begin(
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
                Command::Step(Cow::Owned(batches.collect()))
            }
            2 => Command::State,
            3 => Command::Average,
            4 => Command::Restore { step: input.u64(), norms: input.f32s() },
            5 => Command::End,
            kind => unreachable!("a command of the same program, not {kind}"),
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
    fn commands_round_trip_through_bytes() {
        let batch = |n: u32| {
            let pairs = [(vec![n, 2, 3], vec![4]), (vec![5], vec![])];
            Batch::new(&pairs, 1, 2).expect("two pairs")
        };
        let recipe = Recipe::default();
        let config = recipe.model_config([50; 2], 2).expect("a model");
        for command in [
            Command::Begin(Box::new(TrainerSetup {
                config,
                recipe: recipe.to_toml(),
                device: RankDevice::Gpu,
            })),
            Command::Step(vec![batch(7), batch(8)].into()),
            Command::State,
            Command::Average,
            Command::Restore { step: 12, norms: vec![0.5, f32::MIN_POSITIVE] },
            Command::End,
        ] {
            assert_eq!(Command::from_bytes(&command.to_bytes()), command);
        }
    }
}
