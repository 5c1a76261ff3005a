//! One word, several senses: which words decide whether a *solution* is 解决方案, 解 or 溶液.
//!
//! Each word of the phrase is left out in turn. Where the noun becomes another, that word has decided.

use std::io::Write;

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::plot::Table;
use heedful::tasks::translate::Translator;
use heedful_grammar::{SENSES, Sense};

/// The word with several senses.
const WORD: &str = "solution";

/// Shows each sense, and which words decided it.
pub(super) fn show(translator: &Translator, options: &SearchOptions, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nOne word, three senses: what “{WORD}” becomes when a word is left out\n")?;
    for sense in SENSES {
        let words: Vec<&str> = sense.english.split(' ').collect();
        let mut sources = vec![sense.english.to_owned()];
        let left_out = (0..words.len()).filter(|&left| !words[left].starts_with(WORD)).collect::<Vec<_>>();
        sources.extend(left_out.iter().map(|&left| without(&words, left)));
        let texts: Vec<&str> = sources.iter().map(String::as_str).collect();
        let found = translator.translate(&texts, options)?;
        let outputs: Vec<&str> = found.iter().map(|translation| translation.best()).collect();
        if noun(outputs[0]) != Some(sense.noun) {
            writeln!(
                out,
                "“{}” is {}, not {}: the model is too young.\n",
                sense.english, outputs[0], sense.noun
            )?;
            continue;
        }
        writeln!(
            out,
            "{}\n{}",
            verdict(&sense, &words, &left_out, &outputs[1..]),
            table(&sense, &sources, &outputs).to_markdown()
        )?;
    }
    Ok(())
}

/// Which words decided.
fn verdict(sense: &Sense, words: &[&str], left_out: &[usize], outputs: &[&str]) -> String {
    let decided: Vec<String> = left_out
        .iter()
        .zip(outputs)
        .filter(|(_, output)| noun(output) != Some(sense.noun))
        .map(|(&left, _)| format!("“{}”", words[left]))
        .collect();
    let english = sense.english;
    match decided.as_slice() {
        [] => format!("“{english}”: {}, whichever word is left out.", sense.noun),
        words => format!("“{english}”: {}, because of {}.", sense.noun, words.join(" and ")),
    }
}

fn table(sense: &Sense, sources: &[String], outputs: &[&str]) -> Table {
    let row = |(source, output): (&String, &&str)| {
        let mark = if noun(output) == Some(sense.noun) { "" } else { "another sense" };
        vec![source.clone(), (*output).to_owned(), mark.to_owned()]
    };
    Table {
        title: format!("{} → {}", sense.english, outputs[0]),
        columns: ["source", "translation", ""].map(str::to_owned).to_vec(),
        rows: sources.iter().zip(outputs).map(row).collect(),
    }
}

/// The sentence without one of its words. A first word keeps its capital, as the model has seen it.
fn without(words: &[&str], left: usize) -> String {
    let rest: Vec<&str> =
        words.iter().enumerate().filter(|(number, _)| *number != left).map(|(_, word)| *word).collect();
    let text = rest.join(" ");
    let was_capital = words[0].starts_with(|first: char| first.is_ascii_uppercase());
    let mut rest = text.chars();
    match rest.next() {
        Some(first) if was_capital => first.to_ascii_uppercase().to_string() + rest.as_str(),
        _ => text,
    }
}

/// What a solution is in a translation. 解决方案 has a 解 of its own.
fn noun(output: &str) -> Option<&'static str> {
    ["解决方案", "溶液", "解"].into_iter().find(|noun| output.contains(noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_is_told_from_its_parts() {
        assert_eq!(noun("一套自动驾驶解决方案"), Some("解决方案"));
        assert_eq!((noun("一个近似解"), noun("一种溶液"), noun("一辆车")), (Some("解"), Some("溶液"), None));
    }

    #[test]
    fn the_words_that_change_the_sense_have_decided() {
        let words = ["an", "acidic", "solution"];
        let sense = SENSES[2];
        let text = verdict(&sense, &words, &[0, 1], &["一种酸性溶液", "一套解决方案"]);
        assert!(text.contains("because of “acidic”."), "{text}");
        assert!(verdict(&sense, &words, &[0], &["一种溶液"]).contains("whichever"));
        assert_eq!(without(&["She", "diluted", "a", "solution."], 0), "Diluted a solution.");
        assert_eq!(without(&words, 0), "acidic solution");
    }
}
