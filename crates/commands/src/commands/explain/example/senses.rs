//! One word, several senses: which words decide whether a *solution* is 解决方案, 解 or 溶液.
//!
//! Each word of a phrase is replaced by others of its class, so that the phrase stays grammatical. If the
//! translated noun changes, that word decides the sense.

use std::io::Write;

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::plot::Table;
use heedful::tasks::translate::Translator;
use heedful_grammar::{SENSES, Sense};

/// The word with several senses.
const WORD: &str = "solution";

/// Interchangeable words. Those that may follow “an” begin with a vowel.
const KINDS: [&[&str]; 5] = [
    &["an", "this", "that"],
    &["a", "this", "that"],
    &["autonomous driving", "approximate", "acidic"],
    &["calculated", "diluted"],
    &["She", "He"],
];

/// A phrase with one of its words replaced.
#[derive(Debug, PartialEq)]
struct Replaced<'a> {
    word: &'a str,
    by: &'static str,
    text: String,
}

/// Shows each sense, and which words decided it.
pub(super) fn show(translator: &Translator, options: &SearchOptions, out: &mut impl Write) -> Result<()> {
    writeln!(out, "\nOne word, three senses: what “{WORD}” becomes when another word is replaced\n")?;
    for sense in SENSES {
        let replaced = replacements(sense.english);
        let texts: Vec<&str> = [sense.english]
            .into_iter()
            .chain(replaced.iter().map(|replaced| replaced.text.as_str()))
            .collect();
        let found = translator.translate(&texts, options)?;
        let outputs: Vec<&str> = found.iter().map(|translation| translation.best()).collect();
        if noun(outputs[0]) != Some(sense.noun) {
            writeln!(
                out,
                "“{}” is {}, not {}: the model is trained too little.\n",
                sense.english, outputs[0], sense.noun
            )?;
            continue;
        }
        writeln!(
            out,
            "{}\n{}",
            verdict(&sense, &replaced, &outputs[1..]),
            table(&sense, &texts, &outputs).to_markdown()
        )?;
    }
    Ok(())
}

/// Every phrase that differs in one word.
fn replacements(phrase: &str) -> Vec<Replaced<'_>> {
    let kinds = KINDS.iter().flat_map(|kind| kind.iter().map(move |word| (*kind, *word)));
    let mut found: Vec<(usize, Replaced<'_>)> = Vec::new();
    for (kind, word) in kinds {
        let Some(begin) = position(phrase, word) else { continue };
        let (before, after) = (&phrase[..begin], &phrase[begin + word.len()..]);
        for &by in kind.iter().filter(|&&by| by != word) {
            let text = format!("{before}{by}{after}");
            found.push((begin, Replaced { word: &phrase[begin..begin + word.len()], by, text }));
        }
    }
    // In the order of the phrase.
    found.sort_by_key(|(begin, _)| *begin);
    found.into_iter().map(|(_, replaced)| replaced).collect()
}

/// Byte position of a word in a phrase.
fn position(phrase: &str, word: &str) -> Option<usize> {
    format!(" {phrase} ").find(&format!(" {word} "))
}

/// Which words decided.
fn verdict(sense: &Sense, replaced: &[Replaced<'_>], outputs: &[&str]) -> String {
    let changes = |replaced: &Replaced<'_>, output: &str| {
        let became = noun(output).unwrap_or("something else");
        format!("with “{}” for “{}” it is {became}", replaced.by, replaced.word)
    };
    let decided: Vec<String> = replaced
        .iter()
        .zip(outputs)
        .filter(|(_, output)| noun(output) != Some(sense.noun))
        .map(|(replaced, output)| changes(replaced, output))
        .collect();
    let english = sense.english;
    if decided.is_empty() {
        return format!("“{english}”: {}, regardless of which word is replaced.", sense.noun);
    }
    format!("“{english}”: {}; {}.", sense.noun, decided.join(", "))
}

fn table(sense: &Sense, sources: &[&str], outputs: &[&str]) -> Table {
    let row = |(source, output): (&&str, &&str)| {
        let note = if noun(output) == Some(sense.noun) { "" } else { "another sense" };
        vec![(*source).to_owned(), (*output).to_owned(), note.to_owned()]
    };
    Table {
        title: format!("{} → {}", sense.english, outputs[0]),
        columns: ["source", "translation", ""].map(str::to_owned).to_vec(),
        rows: sources.iter().zip(outputs).map(row).collect(),
    }
}

/// The translation of “solution”. 解决方案 is tested first because it contains 解.
fn noun(output: &str) -> Option<&'static str> {
    ["解决方案", "溶液", "解"].into_iter().find(|noun| output.contains(noun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_is_distinguished_from_its_parts() {
        assert_eq!(noun("一套自动驾驶解决方案"), Some("解决方案"));
        assert_eq!((noun("一个近似解"), noun("一种溶液"), noun("一辆车")), (Some("解"), Some("溶液"), None));
    }

    #[test]
    fn a_phrase_stays_grammatical_when_a_word_is_replaced() {
        let texts =
            |phrase| replacements(phrase).into_iter().map(|replaced| replaced.text).collect::<Vec<_>>();
        assert_eq!(
            texts("an acidic solution"),
            [
                "this acidic solution",
                "that acidic solution",
                "an autonomous driving solution",
                "an approximate solution"
            ]
        );
        assert_eq!(
            texts("She diluted a solution."),
            [
                "He diluted a solution.",
                "She calculated a solution.",
                "She diluted this solution.",
                "She diluted that solution."
            ]
        );
    }

    #[test]
    fn the_words_that_change_the_sense_have_decided() {
        let sense = SENSES[2];
        let replaced = replacements(sense.english);
        let outputs = ["这种酸性溶液", "那种酸性溶液", "一套自动驾驶解决方案", "一个近似解"];
        assert_eq!(
            verdict(&sense, &replaced, &outputs),
            "“an acidic solution”: 溶液; with “autonomous driving” for “acidic” it is 解决方案, with “approximate” for “acidic” it is 解."
        );
        assert!(verdict(&sense, &replaced[..1], &["这种溶液"]).contains("regardless"));
    }
}
