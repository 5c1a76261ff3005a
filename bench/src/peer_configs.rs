//! Configurations of CTranslate2: a compute type, and how its threads are split among workers.

use anyhow::{Context, Result};

/// The fastest configuration, such as `int8 4x2`, by trials that return seconds. The type is chosen with the
/// first split, the split with that type, then the type again with that split: trying all combinations would
/// take minutes for each cell.
pub fn fastest_config(
    types: &[String],
    threads: usize,
    mut trial: impl FnMut(&str) -> Result<f64>,
) -> Result<String> {
    let splits = splits(threads);
    let first = splits[0];
    let mut trials: Vec<(String, f64)> = Vec::new();
    let mut fastest_of = |configs: &mut dyn Iterator<Item = (&String, Split)>| -> Result<(String, Split)> {
        let mut fastest: Option<(f64, (String, Split))> = None;
        for (compute, split) in configs {
            let config = config(compute, split);
            let known = trials.iter().find(|(tried, _)| *tried == config).map(|(_, seconds)| *seconds);
            let seconds = known.map_or_else(|| trial(&config), Ok)?;
            trials.push((config, seconds));
            if fastest.as_ref().is_none_or(|(least, _)| seconds < *least) {
                fastest = Some((seconds, (compute.clone(), split)));
            }
        }
        Ok(fastest.context("the peer has no compute type")?.1)
    };
    let (compute, _) = fastest_of(&mut types.iter().map(|compute| (compute, first)))?;
    let (_, split) = fastest_of(&mut splits.iter().map(|&split| (&compute, split)))?;
    let (compute, split) = fastest_of(&mut types.iter().map(|compute| (compute, split)))?;
    Ok(config(&compute, split))
}

/// Workers, and the threads of each.
type Split = [usize; 2];

/// Every split of the threads into powers of two, including splits that leave threads idle: at small batches
/// few threads are faster than many. One worker with all threads comes first.
fn splits(threads: usize) -> Vec<Split> {
    let powers = || (0..usize::BITS).map(|power| 1 << power).take_while(|&power| power <= threads);
    let all = powers().flat_map(|workers| powers().map(move |each| [workers, each]));
    let others = all.filter(|&[workers, each]| workers * each <= threads && [workers, each] != [1, threads]);
    [[1, threads]].into_iter().chain(others).collect()
}

/// The configuration in the format of the peer's script.
fn config(compute: &str, [workers, each]: Split) -> String {
    format!("{compute} {workers}x{each}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_split_among_workers_in_powers_of_two() {
        assert_eq!(splits(1), [[1, 1]]);
        assert_eq!(splits(2), [[1, 2], [1, 1], [2, 1]]);
        assert_eq!(splits(16).len(), 15);
        assert!(
            splits(12).contains(&[1, 12]) && splits(12).iter().all(|[workers, each]| workers * each <= 12)
        );
        assert_eq!(config("int8", [4, 2]), "int8 4x2");
    }

    #[test]
    fn the_fastest_type_is_found_with_the_fastest_split() {
        let seconds = |config: &str| match config {
            "float32 1x4" => 3.0,
            "int8 1x4" => 4.0,
            "float32 4x1" => 2.0,
            "int8 4x1" => 1.0,
            _ => 5.0,
        };
        let mut tried = Vec::new();
        let trial = |config: &str| {
            tried.push(config.to_owned());
            Ok(seconds(config))
        };
        let found = fastest_config(&["float32".to_owned(), "int8".to_owned()], 4, trial);
        assert_eq!(found.expect("a configuration"), "int8 4x1");
        let all = tried.len();
        tried.sort();
        tried.dedup();
        assert_eq!(tried.len(), all, "nothing is tried twice");
    }
}
