//! Parameters that keep their values (`training.freeze`).

use heedful_tensor::Params;

use crate::data::special::NAMES;
use crate::models::Model;
use crate::recipe::{NamePattern, Recipe};
use crate::{Error, Result};

/// How many names are shown where a pattern matches none.
const SHOWN: usize = 5;

/// Refuses patterns that match no parameter, and those that leave nothing to train. Known before anything is written: names do
/// not depend on the vocabulary or the labels.
pub(super) fn check(recipe: &Recipe) -> Result<()> {
    let patterns = &recipe.training.freeze;
    if patterns.is_empty() {
        return Ok(());
    }
    let config = recipe.model_config([NAMES.len(); 2], 2)?;
    // Nothing is allocated before a parameter is used.
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

/// The names that are most like a pattern, without its wildcards.
fn near<'n>(pattern: &NamePattern, names: &[&'n str]) -> Vec<&'n str> {
    let wanted: String = pattern.as_str().chars().filter(|c| !"*?".contains(*c)).collect();
    let mut near = names.to_vec();
    // A pattern is often the beginning of a name: what follows it counts little.
    near.sort_by_key(|name| {
        let begin: String = name.chars().take(wanted.chars().count()).collect();
        (strsim::osa_distance(&wanted, &begin), strsim::osa_distance(&wanted, name))
    });
    near.truncate(SHOWN);
    near
}
