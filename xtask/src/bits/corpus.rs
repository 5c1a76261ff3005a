//! A small corpus that is the same on every machine: sentences of number words, and the same words in reverse
//! order.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

const SOURCE: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "红色", "汽车"];
const TARGET: [&str; 12] =
    ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "rot", "auto"];

/// Writes training and validation files into the folder.
pub(crate) fn write(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (name, lines, seed) in [("train", 400, 1), ("valid", 12, 2)] {
        let (mut source, mut target, mut labels) = (String::new(), String::new(), String::new());
        let mut state: u64 = seed;
        for _ in 0..lines {
            // Knuth's generator; it must never change.
            let mut draw = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % below
            };
            let length = 1 + draw(14);
            let words: Vec<usize> = (0..length).map(|_| draw(SOURCE.len())).collect();
            let joined = |side: &[&str], order: &mut dyn Iterator<Item = &usize>| {
                order.map(|&word| side[word]).collect::<Vec<_>>().join(" ")
            };
            let text = joined(&SOURCE, &mut words.iter());
            writeln!(source, "{text}")?;
            writeln!(target, "{}", joined(&TARGET, &mut words.iter().rev()))?;
            writeln!(labels, "{}\t{text}", ["low", "high"][usize::from(words[0] > 5)])?;
        }
        for (side, text) in [("src", source), ("tgt", target), ("labels", labels)] {
            fs::write(folder.join(format!("{name}.{side}")), text)?;
        }
    }
    Ok(())
}
