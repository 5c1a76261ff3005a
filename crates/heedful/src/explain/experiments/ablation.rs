//! Head ablation: sets the output of heads to zero and counts how often one word of the translations changes.
//!
//! Attention weights show where a head looks, but not whether that matters. Ablation is an intervention:
//! whatever changes depended on the removed heads.

use heedful_tensor::random::Stream;
use serde_json::{Value, json};

use super::Experiment;
use crate::Result;
use crate::decode::{Limits, SearchOptions};
use crate::layers::HeadName;
use crate::plot::{HeatMapOptions, Table, heat_map_svg, with_colour_scale};
use crate::tasks::translate::{Terms, Translator};

/// The number of random sets of heads that are removed for comparison.
const RANDOM_SETS: usize = 20;

/// A model, and the word of its translations that is watched for changes.
pub struct Ablation<'a> {
    /// The model.
    pub translator: &'a Translator,
    /// The search options.
    pub options: &'a SearchOptions,
    /// The forced prefix of every translation: everything before the word, so that only the word can differ.
    pub prefix: &'a str,
    /// Extracts the word from a translation; `None` if there is no word of its kind at its position.
    pub word: &'a dyn Fn(&str) -> Option<String>,
}

/// The effect of removing heads on translations.
#[derive(Clone, Debug, PartialEq)]
pub struct AblationResults {
    /// The number of translations.
    pub phrases: usize,
    /// Each head of the model removed alone, in the model's order.
    pub heads: Vec<(HeadName, ChangeCounts)>,
    /// The heads that are tested for deciding the word.
    pub named: Vec<HeadName>,
    /// All named heads removed together.
    pub together: ChangeCounts,
    /// Random sets of the same number of other heads, one entry per set.
    pub random: Vec<ChangeCounts>,
}

/// The number of translations that change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Translations in which the word becomes another one of its kind.
    pub word: usize,
    /// Translations that differ in any way.
    pub output: usize,
}

impl Ablation<'_> {
    /// All heads of the model.
    pub(super) fn heads(&self) -> Vec<HeadName> {
        self.translator.model().heads()
    }

    /// Translates without some heads.
    pub fn translate_without(&self, sources: &[&str], without: &[HeadName]) -> Result<Vec<String>> {
        let options = SearchOptions { without_heads: without.to_vec(), ..self.options.clone() };
        let input = |source: &&str| self.translator.input(source, self.prefix, &Terms::default());
        let inputs = sources.iter().map(input).collect();
        let translations = self.translator.translate_inputs(inputs, &options, &Limits::default())?;
        Ok(translations.iter().map(|translation| translation.best().to_owned()).collect())
    }

    /// Compares the original translations with those after the removal.
    pub(super) fn count_changes(&self, before: &[String], after: &[String]) -> ChangeCounts {
        let pairs = || before.iter().zip(after);
        let is_word_changed = |before: &str, after: &str| {
            let words = (self.word)(before).zip((self.word)(after));
            words.is_some_and(|(before, after)| before != after)
        };
        ChangeCounts {
            word: pairs().filter(|(before, after)| is_word_changed(before, after)).count(),
            output: pairs().filter(|(before, after)| before != after).count(),
        }
    }

    /// Removes each head alone, the named heads together, and random sets of as many other heads. `progress`
    /// is called with the heads of each trial.
    pub fn run(
        &self,
        sources: &[&str],
        named: &[HeadName],
        mut progress: impl FnMut(&[HeadName]),
    ) -> Result<AblationResults> {
        let all = self.heads();
        let random = random_sets(&all, named);
        let alone = all.iter().map(|&head| vec![head]);
        let trials: Vec<Vec<HeadName>> = alone.chain([named.to_vec()]).chain(random).collect();
        let original = self.translate_without(sources, &[])?;
        let mut changes = Vec::new();
        for removed in &trials {
            progress(removed);
            changes.push(self.count_changes(&original, &self.translate_without(sources, removed)?));
        }
        let random = changes.split_off(all.len() + 1);
        let together = changes[all.len()];
        let heads = all.into_iter().zip(changes).collect();
        Ok(AblationResults { phrases: sources.len(), heads, named: named.to_vec(), together, random })
    }
}

/// Sets of as many heads as `named`, without the heads in it; if one head is named, every other head is a
/// set.
fn random_sets(all: &[HeadName], named: &[HeadName]) -> Vec<Vec<HeadName>> {
    let others: Vec<HeadName> = all.iter().copied().filter(|head| !named.contains(head)).collect();
    if named.len() == 1 {
        return others.into_iter().map(|head| vec![head]).collect();
    }
    if others.len() < named.len() {
        return Vec::new();
    }
    let draw = |number: usize| {
        let stream = Stream::new(0, 0, number as u64);
        let mut left = others.clone();
        (0..named.len() as u32)
            .map(|index| left.swap_remove(stream.bits(index) as usize % left.len()))
            .collect()
    };
    (0..RANDOM_SETS).map(draw).collect()
}

/// `decoder.1.cross.1 and decoder.1.cross.2`.
pub fn join_head_names(heads: &[HeadName]) -> String {
    let names: Vec<String> = heads.iter().map(HeadName::to_string).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

impl AblationResults {
    /// The share of translations in which the word changes.
    pub fn share(&self, changed: ChangeCounts) -> f64 {
        changed.word as f64 / self.phrases.max(1) as f64
    }

    /// The mean of that share over the random sets; `None` if the model has too few heads for one.
    pub(crate) fn share_of_random(&self) -> Option<f64> {
        let sum: f64 = self.random.iter().map(|changed| self.share(*changed)).sum();
        (!self.random.is_empty()).then(|| sum / self.random.len() as f64)
    }

    /// The results as an experiment; `word` describes the word that may change: "the article".
    pub fn experiment(&self, word: &str, model: &str) -> Experiment {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let (together, others) = match self.named.len() {
            1 => ("", "a random other head".to_owned()),
            number => (" together", format!("{number} random other heads")),
        };
        let random = self.share_of_random().map(|share| format!("; without {others} in {}", percent(share)));
        let mut findings = vec![format!(
            "Without {}{together}, {word} changes in {} of {} phrases{}.",
            join_head_names(&self.named),
            percent(self.share(self.together)),
            self.phrases,
            random.unwrap_or_default()
        )];
        let alone: Vec<ChangeCounts> = self.named.iter().filter_map(|head| self.alone(*head)).collect();
        let most = alone.iter().map(|changed| self.share(*changed)).fold(0.0, f64::max);
        if alone.len() > 1 {
            findings.push(format!(
                "Alone none of them changes it in more than {}: they stand in for each other.",
                percent(most)
            ));
        }
        Experiment {
            title: format!("Which heads decide {word}?"),
            setting: format!("{model}: heads are removed, their output set to zero"),
            findings,
            tables: vec![self.table(word)],
            curves: Vec::new(),
            pictures: vec![self.picture(word)],
            json: self.json(),
        }
    }

    /// The effect of removing one head.
    pub fn alone(&self, head: HeadName) -> Option<ChangeCounts> {
        self.heads.iter().find(|(known, _)| *known == head).map(|(_, changed)| *changed)
    }

    fn table(&self, word: &str) -> Table {
        let row = |name: String, changed: ChangeCounts| {
            let share = format!("{:.1}", 100.0 * self.share(changed));
            vec![name, changed.word.to_string(), share, changed.output.to_string()]
        };
        let mut heads = self.heads.clone();
        heads.sort_by_key(|(head, changed)| (!self.named.contains(head), std::cmp::Reverse(changed.word)));
        let together = (self.named.len() > 1).then(|| row(join_head_names(&self.named), self.together));
        let alone = heads.iter().map(|(head, changed)| row(head.to_string(), *changed));
        Table {
            title: format!("{} phrases; the heads that decide come first", self.phrases),
            columns: ["without", &format!("{word} changes"), "%", "anything changes"]
                .map(str::to_owned)
                .to_vec(),
            rows: together.into_iter().chain(alone).collect(),
        }
    }

    /// A heat map of layers × heads.
    fn picture(&self, word: &str) -> String {
        let width = self.heads.iter().map(|(head, _)| head.head + 1).max().unwrap_or(0);
        let same_layer = |a: &HeadName, b: &HeadName| (a.role, a.layer) == (b.role, b.layer);
        let layers: Vec<_> = self.heads.chunk_by(|(a, _), (b, _)| same_layer(a, b)).collect();
        let mut shares = vec![0.0; width * layers.len()];
        for (layer, heads) in layers.iter().enumerate() {
            for (head, changed) in *heads {
                shares[layer * width + head.head] = self.share(*changed) as f32;
            }
        }
        let rows: Vec<String> = layers.iter().map(|heads| heads[0].0.layer_name().to_string()).collect();
        let columns: Vec<String> = (0..width).map(|head| head.to_string()).collect();
        let full = shares.iter().copied().fold(0.01, f32::max);
        let title = format!("{word} changes without one head");
        let options = HeatMapOptions { title, full, ..HeatMapOptions::default() };
        with_colour_scale(&heat_map_svg(&shares, &rows, &columns, &options), &options)
    }

    fn json(&self) -> Value {
        let changes =
            |changed: ChangeCounts| json!({ "word_changes": changed.word, "output_changes": changed.output });
        let head = |(head, changed): &(HeadName, ChangeCounts)| json!({ "head": head.to_string(), "alone": changes(*changed) });
        json!({
            "phrases": self.phrases,
            "named": self.named.iter().map(HeadName::to_string).collect::<Vec<_>>(),
            "named_together": changes(self.together),
            "share_without_named": self.share(self.together),
            "share_without_random_others": self.share_of_random(),
            "heads": self.heads.iter().map(head).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str) -> HeadName {
        name.parse().expect("a head's name")
    }

    #[test]
    fn named_heads_are_compared_with_random_sets_of_the_same_size() {
        let changed = |word| ChangeCounts { word, output: word };
        let heads = vec![
            (head("enc.0.0"), changed(1)),
            (head("cross.0.0"), changed(2)),
            (head("cross.0.1"), changed(3)),
        ];
        let named = vec![head("cross.0.0"), head("cross.0.1")];
        let random = vec![changed(1), changed(3)];
        let results = AblationResults { phrases: 10, heads, named, together: changed(8), random };
        assert!((results.share_of_random().expect("two draws") - 0.2).abs() < 1e-12);
        let found = results.experiment("the article", "a model");
        assert_eq!(
            found.findings,
            [
                "Without decoder.0.cross.0 and decoder.0.cross.1 together, the article changes in 80.0 % of 10 phrases; without 2 random other \
                 heads in 20.0 %.",
                "Alone none of them changes it in more than 30.0 %: they stand in for each other."
            ]
        );
        let names: Vec<&str> = found.tables[0].rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            names,
            [
                "decoder.0.cross.0 and decoder.0.cross.1",
                "decoder.0.cross.1",
                "decoder.0.cross.0",
                "encoder.0.self.0"
            ]
        );
        assert!(found.to_svg().contains(">decoder.0.cross<"));
        let without_random = AblationResults { random: Vec::new(), ..results };
        assert_eq!(without_random.share_of_random(), None);
        assert!(
            without_random.experiment("the article", "a model").findings[0]
                .ends_with("80.0 % of 10 phrases.")
        );
    }

    #[test]
    fn random_sets_have_as_many_heads_and_none_of_the_named() {
        let all = ["enc.0.0", "enc.0.1", "dec.0.0", "cross.0.0", "cross.0.1"].map(head);
        let one = random_sets(&all, &all[..1]);
        assert_eq!(one, all[1..].iter().map(|&head| vec![head]).collect::<Vec<_>>());
        let two = random_sets(&all, &all[3..]);
        assert_eq!((two.len(), two.clone()), (RANDOM_SETS, random_sets(&all, &all[3..])));
        assert!(
            two.iter().all(|set| set.len() == 2
                && set[0] != set[1]
                && set.iter().all(|head| all[..3].contains(head)))
        );
        assert!(two.iter().any(|set| *set != two[0]), "{two:?}");
        assert!(random_sets(&all, &all[1..]).is_empty());
    }
}
