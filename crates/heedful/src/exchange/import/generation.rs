//! The generation settings of transformers: `generation_config.json`, or without it the same keys of
//! `config.json`.
//!
//! | keys | import |
//! |---|---|
//! | the ids of the tokens that begin, end and pad a text (`ids`) | supported |
//! | `suppress_tokens`, `bad_words_ids` of one token | supported: never generated |
//! | rules that change outputs and that heedful does not support ([`RULES`]) | an error, unless they are off |
//! | search, sampling and length options ([`CHOICES`]) | options of the commands: listed in a note, unless they have no effect |
//! | the form of results, caches ([`WITHOUT_EFFECT`]) | ignored: outputs do not depend on them |
//! | any other key of `generation_config.json` | an error |

use std::collections::BTreeSet;

use serde_json::Value;

use crate::store::formats::files::Files;
use crate::store::formats::{FormatError, JsonObject, json_object};

const FILE: &str = "generation_config.json";

/// The token ids that `ids` reads. A forced last token is supported only if it is `eos`, which `ids` checks.
const IDS: [&str; 5] =
    ["bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id"];
const NEVER_GENERATED: [&str; 2] = ["suppress_tokens", "bad_words_ids"];

/// Rules that change outputs, each with the number that turns it off, if there is one; null, false and empty
/// lists turn off any.
const RULES: [(&str, Option<f64>); 16] = [
    ("forced_bos_token_id", None),
    ("forced_decoder_ids", None),
    ("begin_suppress_tokens", None),
    ("force_words_ids", None),
    ("constraints", None),
    ("sequence_bias", None),
    ("exponential_decay_length_penalty", None),
    ("stop_strings", None),
    ("watermarking_config", None),
    ("token_healing", None),
    ("dola_layers", None),
    ("repetition_penalty", Some(1.0)),
    ("encoder_repetition_penalty", Some(1.0)),
    ("encoder_no_repeat_ngram_size", Some(0.0)),
    ("diversity_penalty", Some(0.0)),
    ("guidance_scale", Some(1.0)),
];

/// Options of a `generate` call, each with its neutral number, if there is one.
const CHOICES: [(&str, Option<f64>); 22] = [
    ("num_beams", Some(1.0)),
    ("num_beam_groups", Some(1.0)),
    ("length_penalty", Some(1.0)),
    ("early_stopping", None),
    ("renormalize_logits", None),
    ("max_length", None),
    ("max_new_tokens", None),
    ("min_length", Some(0.0)),
    ("min_new_tokens", Some(0.0)),
    ("max_time", None),
    ("no_repeat_ngram_size", Some(0.0)),
    ("num_return_sequences", Some(1.0)),
    ("do_sample", None),
    ("temperature", Some(1.0)),
    ("top_k", Some(0.0)),
    ("top_p", Some(1.0)),
    ("min_p", Some(0.0)),
    ("top_h", None),
    ("typical_p", Some(1.0)),
    ("epsilon_cutoff", Some(0.0)),
    ("eta_cutoff", Some(0.0)),
    ("penalty_alpha", Some(0.0)),
];

/// Prefixes of keys that do not affect outputs: the form of results, caches, speculative decoding.
const WITHOUT_EFFECT: [&str; 24] = [
    "transformers_version",
    "_from_model_config",
    "_commit_hash",
    "_name_or_path",
    "output_",
    "return_",
    "use_cache",
    "cache_",
    "max_cache_len",
    "low_memory",
    "remove_invalid_values",
    "prefill_chunk_size",
    "compile_config",
    "disable_compile",
    "continuous_batching_config",
    "assistant_",
    "is_assistant",
    "num_assistant_tokens",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "target_lookbehind",
    "speculation_type",
    "use_mtp",
    "trust_remote_code",
];

/// The checked generation settings.
pub(super) struct Generation {
    settings: JsonObject,
    /// The file that contains them.
    pub(super) file: String,
    suppressed: BTreeSet<u32>,
}

impl Generation {
    /// Reads those of a folder with this `config.json`. An unsupported rule is an error.
    pub(super) fn read(files: &Files, config: &JsonObject) -> Result<Generation, FormatError> {
        let (settings, file) = match files.find(FILE)? {
            Some(bytes) => (json_object(&files.label(FILE), &bytes)?, files.label(FILE)),
            None => (of_config(config), files.label("config.json")),
        };
        let mut generation = Generation { settings, file, suppressed: BTreeSet::new() };
        generation.check_rules()?;
        generation.suppressed = generation.never_generated()?;
        Ok(generation)
    }

    /// A setting, if it exists.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.settings.get(key)
    }

    /// The tokens that are never generated, in ascending order.
    pub(super) fn suppressed(&self) -> Vec<u32> {
        self.suppressed.iter().copied().collect()
    }

    /// A note for the user about settings that must be given to each command.
    pub(super) fn note(&self) -> Option<String> {
        let has_effect = |(key, neutral): &&(&str, Option<f64>)| {
            self.value(key).is_some_and(|value| !is_off(value, *neutral))
        };
        let chosen: Vec<String> = CHOICES
            .iter()
            .filter(has_effect)
            .map(|(key, _)| format!("`{key}`: {}", self.settings[*key]))
            .collect();
        (!chosen.is_empty()).then(|| {
            format!(
                "{} sets {}, which heedful does not import: give such options to each command (heedful translate --help, heedful \
                 generate --help)",
                self.file,
                chosen.join(", ")
            )
        })
    }

    fn check_rules(&self) -> Result<(), FormatError> {
        for (key, value) in &self.settings {
            let is_known = IDS.contains(&key.as_str())
                || NEVER_GENERATED.contains(&key.as_str())
                || CHOICES.iter().any(|(choice, _)| choice == key)
                || WITHOUT_EFFECT.iter().any(|beginning| key.starts_with(beginning));
            let neutral = RULES.iter().find(|(rule, _)| rule == key).and_then(|(_, neutral)| *neutral);
            if !is_known && !is_off(value, neutral) {
                return Err(self.unsupported(key));
            }
        }
        Ok(())
    }

    fn never_generated(&self) -> Result<BTreeSet<u32>, FormatError> {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        let list = |key: &str| match self.value(key) {
            None | Some(Value::Null) => Ok(&[][..]),
            Some(Value::Array(list)) => Ok(&list[..]),
            Some(_) => Err(self.unsupported(key)),
        };
        let single = list("suppress_tokens")?.iter().map(id);
        let words = list("bad_words_ids")?.iter().map(|word| match word.as_array().map(Vec::as_slice) {
            Some([token]) => id(token),
            _ => None,
        });
        let single: Option<BTreeSet<u32>> = single.collect();
        let words: Option<BTreeSet<u32>> = words.collect();
        let mut suppressed = single.ok_or_else(|| self.unsupported("suppress_tokens"))?;
        suppressed.extend(words.ok_or_else(|| self.unsupported("bad_words_ids"))?);
        Ok(suppressed)
    }

    /// The error about an unsupported setting.
    pub(super) fn unsupported(&self, key: &str) -> FormatError {
        let mut shown = self.value(key).map(Value::to_string).unwrap_or_default();
        if shown.chars().count() > 40 {
            shown = shown.chars().take(40).chain("…".chars()).collect();
        }
        let remedy = "In transformers, outputs can depend on it. To import the model without it, remove it from the file";
        FormatError::unsupported(&self.file, format!("`{key}`: {shown}"), remedy)
    }
}

/// The generation keys of `config.json`.
fn of_config(config: &JsonObject) -> JsonObject {
    let is_known = |key: &str| {
        let (rule, choice) = (RULES.iter(), CHOICES.iter());
        NEVER_GENERATED.contains(&key)
            || IDS.contains(&key)
            || rule.chain(choice).any(|(known, _)| *known == key)
    };
    config.iter().filter(|(key, _)| is_known(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether a rule has no effect with this value.
fn is_off(value: &Value, neutral: Option<f64>) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => neutral.is_some() && number.as_f64() == neutral,
        Value::Bool(true) | Value::String(_) => false,
    }
}
