//! Frozen parameters (`training.freeze`).

use heedful_tensor::Params;

use crate::data::special::NAMES;
use crate::models::Model;
use crate::recipe::{NamePattern, Recipe};
use crate::{Error, Result};

/// Number of names suggested for a pattern that matches none.
const SHOWN: usize = 5;

/// Rejects patterns that match no parameter, and patterns that freeze everything. Runs before anything is
/// written: names do not depend on the vocabulary or the labels.
pub(super) fn check(recipe: &Recipe) -> Result<()> {
    let patterns = &recipe.training.freeze;
    if patterns.is_empty() {
        return Ok(());
    }
    let config = recipe.model_config([NAMES.len(); 2], 2)?;
    // Parameters are allocated on first use.
    let model = config.build(0)?;
    let shapes = model.params().shapes();
    let names: Vec<&str> = shapes.iter().map(|(name, _)| &**name).collect();
    if let Some(pattern) = patterns.iter().find(|pattern| !names.iter().any(|name| pattern.matches(name))) {
        let (pattern, near) = (pattern.to_string(), near(pattern, &names).join(", "));
        return Err(Error::new(format!(
            "training.freeze: no parameter is called `{pattern}`; names like it are {near}"
        )));
    }
    match names.iter().all(|name| is_frozen(patterns, name)) {
        true => Err(Error::new("training.freeze matches every parameter: leave some of them to train")),
        false => Ok(()),
    }
}

/// Freezes the parameters of a model that the recipe's patterns match.
pub(super) fn freeze(recipe: &Recipe, params: &Params) {
    let patterns = &recipe.training.freeze;
    params.iter().filter(|param| is_frozen(patterns, param.name())).for_each(|param| param.freeze());
}

fn is_frozen(patterns: &[NamePattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

/// The names that are most similar to a pattern without its wildcards.
fn near<'n>(pattern: &NamePattern, names: &[&'n str]) -> Vec<&'n str> {
    let literal: String = pattern.as_str().chars().filter(|c| !"*?".contains(*c)).collect();
    let mut near = names.to_vec();
    // A pattern is often the beginning of a name: characters after it have little weight.
    near.sort_by_key(|name| {
        let beginning: String = name.chars().take(literal.chars().count()).collect();
        (strsim::osa_distance(&literal, &beginning), strsim::osa_distance(&literal, name))
    });
    near.truncate(SHOWN);
    near
}
