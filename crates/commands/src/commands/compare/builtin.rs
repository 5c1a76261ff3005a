//! Training text for variations when the user names none: phrases of the built-in grammar, with a small
//! recipe.
//!
//! ```text
//! translators    Chinese phrases of all lengths to English
//! classifiers    concatenated English phrases; one of them, at a random position, names a thing that is the label
//! ```
//!
//! The longer such a text is, the more a single vector has to store; attention finds the thing at any
//! position.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::compare::variations::VariationGroup;
use heedful::data::tokenizer::VocabularyKind;
use heedful::recipe::{Averaging, BestBy, Family, Preset, Recipe, ScheduleKind, Task};
use heedful::tensor::DType;
use heedful::tensor::cpu::isa::{self, Isa};
use heedful::tensor::ops::Cell;
use heedful::tensor::random::Stream;
use heedful_grammar::{Grammar, Phrase};

/// Phrases for training and for validation.
const PHRASES: [usize; 2] = [30_000, 400];
/// Labelled texts for training and for validation.
const TEXTS: [usize; 2] = [4_000, 400];
/// Maximum number of phrases in a labelled text, not counting the one that names the label.
const MAX_PHRASES: u32 = 24;
/// Things that the labelled texts name.
const LABELS: [&str; 4] = ["book", "car", "dog", "song"];
const SEED: u64 = 1;
/// Seeds per variation: a difference with one seed may be chance.
pub(super) const SEEDS: u16 = 3;
/// After 300 steps, the BLEU of translators differed by 14 between seeds, and a classifier that pools the
/// last state was still near chance.
const STEPS: u64 = 1000;

/// The default folder of a comparison.
pub(super) fn folder(groups: &[VariationGroup]) -> PathBuf {
    let names: Vec<&str> = groups.iter().map(|group| group.name()).collect();
    PathBuf::from(format!("heedful-compare-{}", names.join("-")))
}

/// A recipe for the built-in text, which is written to a subfolder of the comparison.
pub(super) fn recipe(groups: &[VariationGroup], folder: &Path) -> Result<Recipe> {
    let text = folder.join("text");
    match groups {
        [VariationGroup::Pooling] => classifier(&text),
        _ if groups.contains(&VariationGroup::Pooling) => bail!(
            "the group pooling trains classifiers and the other groups translators: compare the group pooling by itself, or name your own text"
        ),
        _ => translator(groups, &text),
    }
}

fn translator(groups: &[VariationGroup], folder: &Path) -> Result<Recipe> {
    let split = Grammar::new().split(SEED, PHRASES[0], PHRASES[1]);
    let mut recipe = small();
    let data = &mut recipe.data;
    for (name, phrases, files) in [
        ("train", &split.train, [&mut data.src, &mut data.tgt]),
        ("valid", &split.test, [&mut data.valid_src, &mut data.valid_tgt]),
    ] {
        #[allow(clippy::type_complexity, reason = "a table of names and functions")]
        let sides: [(&str, fn(&Phrase) -> &str); 2] =
            [("zh", |phrase| &phrase.chinese), ("en", |phrase| &phrase.english)];
        for ((extension, side), files) in sides.into_iter().zip(files) {
            let lines = phrases.iter().map(|phrase| format!("{}\n", side(phrase)));
            *files = vec![write(folder, &format!("{name}.{extension}"), lines.collect())?];
        }
    }
    if groups == [VariationGroup::Score] {
        // A recurrent decoder supports all score functions, a Transformer only dot products.
        recurrent(&mut recipe);
    }
    Ok(recipe)
}

fn classifier(folder: &Path) -> Result<Recipe> {
    let split = Grammar::new().split(SEED, PHRASES[0], PHRASES[0] / 10);
    let mut recipe = small();
    recipe.data.task = Task::Classify;
    recipe.validation.best_by = BestBy::Accuracy;
    recurrent(&mut recipe);
    let train = labelled(&split.train, TEXTS[0], 0);
    recipe.data.label_text = vec![write(folder, "train.tsv", train)?];
    recipe.data.valid_label_text = vec![write(folder, "valid.tsv", labelled(&split.test, TEXTS[1], 1))?];
    // Texts are up to ten times as long as phrases.
    recipe.training.batch_tokens = 2048;
    Ok(recipe)
}

/// Lines of label, tab, text.
fn labelled(phrases: &[Phrase], count: usize, number: u64) -> String {
    let stream = Stream::new(SEED, number, 0);
    let words = |phrase: &Phrase| -> Vec<String> {
        phrase.english.split(|c: char| !c.is_alphabetic()).map(str::to_lowercase).collect()
    };
    let named = |phrase: &Phrase| -> Vec<usize> {
        let words = words(phrase);
        let is_named = |label: &str| words.iter().any(|word| word == label || *word == format!("{label}s"));
        (0..LABELS.len()).filter(|&label| is_named(LABELS[label])).collect()
    };
    let mut with_label: [Vec<&str>; LABELS.len()] = [const { Vec::new() }; LABELS.len()];
    let mut without_label: Vec<&str> = Vec::new();
    for phrase in phrases {
        match named(phrase).as_slice() {
            [] => without_label.push(&phrase.english),
            [label] => with_label[*label].push(&phrase.english),
            _ => {}
        }
    }
    let mut lines = String::new();
    let mut draws = (0..).map(|index| stream.bits(index) as usize);
    let mut draw = |below: usize| draws.next().expect("an endless iterator") % below.max(1);
    for text in 0..count {
        let label = text % LABELS.len();
        let mut parts: Vec<&str> =
            (0..draw(MAX_PHRASES as usize + 1)).map(|_| without_label[draw(without_label.len())]).collect();
        parts.insert(draw(parts.len() + 1), with_label[label][draw(with_label[label].len())]);
        lines += &format!("{}\t{}\n", LABELS[label], parts.join(" ; "));
    }
    lines
}

/// A recipe that trains in seconds.
fn small() -> Recipe {
    let mut recipe = Recipe::preset(Preset::Tiny);
    let Recipe { vocabulary, model, training, validation, checkpoint, output, .. } = &mut recipe;
    (vocabulary.kind, vocabulary.size) = (VocabularyKind::Word, 2000);
    model.heads = 4;
    training.compute = if isa::current() == Isa::Amx { DType::Bf16 } else { DType::F32 };
    training.batch_tokens = 1024;
    training.steps = Some(STEPS);
    training.schedule = ScheduleKind::Cosine;
    (training.lr, training.min_lr, training.warmup) = (5e-3, 1e-5, STEPS / 10);
    validation.every = STEPS / 5;
    validation.bleu_pairs = Some(100);
    checkpoint.every = STEPS;
    (checkpoint.keep_last, checkpoint.keep_best) = (1, 1);
    checkpoint.average = Averaging::None;
    output.log_every = STEPS / 20;
    output.tensorboard = false;
    recipe
}

fn recurrent(recipe: &mut Recipe) {
    recipe.start_from_family(Family::Recurrent);
    recipe.model.cell = Cell::Gru;
}

fn write(folder: &Path, name: &str, text: String) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_labelled_text_names_one_label_and_may_be_long() {
        let split = Grammar::new().split(SEED, 3000, 300);
        let text = labelled(&split.train, 400, 0);
        let mut lengths = Vec::new();
        for line in text.lines() {
            let (label, text) = line.split_once('\t').expect("label and text");
            let is_named = |name: &&&str| {
                text.to_lowercase()
                    .split(|c: char| !c.is_alphabetic())
                    .any(|word| word.trim_end_matches('s') == **name)
            };
            assert_eq!(LABELS.iter().filter(is_named).collect::<Vec<_>>(), [&label], "{text}");
            lengths.push(text.split_whitespace().count());
        }
        assert!(lengths.iter().any(|&length| length < 10) && lengths.iter().any(|&length| length > 80));
        assert_eq!(text, labelled(&split.train, 400, 0), "the same text every time");
    }
}
