//! What heads are for: remove them, and see how often one word of the translations changes.
//!
//! A picture of attention shows where a head looks, and not whether it matters. A removed head, whose output is zero, is an
//! intervention: what changes depended on it.

use heedful_tensor::random::Stream;
use serde_json::{Value, json};

use super::Experiment;
use crate::Result;
use crate::decode::{Limits, SearchOptions};
use crate::layers::HeadName;
use crate::plot::{HeatMapOptions, Table, heat_map_svg, with_colour_scale};
use crate::tasks::translate::{Terms, Translator};

/// How many sets of random heads are removed, to compare with.
const DRAWS: usize = 20;

/// A model, and the word of its translations that may change.
pub struct Probe<'a> {
    /// The model.
    pub translator: &'a Translator,
    /// How it translates.
    pub options: &'a SearchOptions,
    /// What every translation begins with: whatever comes before the word, so that nothing but the word is asked for.
    pub prefix: &'a str,
    /// Finds the word in a translation; `None` where nothing of its kind is in its place.
    pub word: &'a dyn Fn(&str) -> Option<String>,
}

/// What the removal of heads does to translations.
#[derive(Clone, Debug, PartialEq)]
pub struct Removals {
    /// How many translations there are.
    pub phrases: usize,
    /// Each head of the model alone, in its order.
    pub heads: Vec<(HeadName, Changed)>,
    /// The heads that are said to decide.
    pub named: Vec<HeadName>,
    /// All of them together.
    pub together: Changed,
    /// As many other heads, drawn at random: one for each draw.
    pub random: Vec<Changed>,
}

/// How many translations change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Those in which the word is another of its kind.
    pub word: usize,
    /// Those that are different at all.
    pub output: usize,
}

impl Probe<'_> {
    /// All heads of the model.
    pub(super) fn heads(&self) -> Vec<HeadName> {
        self.translator.model().heads()
    }

    /// The translations of the model without some heads.
    pub fn translated(&self, sources: &[&str], without: &[HeadName]) -> Result<Vec<String>> {
        let options = SearchOptions { without_heads: without.to_vec(), ..self.options.clone() };
        let input = |source: &&str| self.translator.input(source, self.prefix, &Terms::default());
        let inputs = sources.iter().map(input).collect();
        let found = self.translator.translate_inputs(inputs, &options, &Limits::default())?;
        Ok(found.iter().map(|translation| translation.best().to_owned()).collect())
    }

    pub(super) fn changed(&self, whole: &[String], without: &[String]) -> Changed {
        let both = || whole.iter().zip(without);
        let is_another = |whole: &str, without: &str| {
            let both = (self.word)(whole).zip((self.word)(without));
            both.is_some_and(|(whole, without)| whole != without)
        };
        Changed {
            word: both().filter(|(whole, without)| is_another(whole, without)).count(),
            output: both().filter(|(whole, without)| whole != without).count(),
        }
    }

    /// Removes every head of the model alone, the named ones together, and as many others. `progress` hears which are
    /// removed now.
    pub fn removals(
        &self,
        sources: &[&str],
        named: &[HeadName],
        mut progress: impl FnMut(&[HeadName]),
    ) -> Result<Removals> {
        let all = self.heads();
        let draws = random_sets(&all, named);
        let singles = all.iter().map(|&head| vec![head]);
        let trials: Vec<Vec<HeadName>> = singles.chain([named.to_vec()]).chain(draws).collect();
        let whole = self.translated(sources, &[])?;
        let mut changes = Vec::new();
        for removed in &trials {
            progress(removed);
            changes.push(self.changed(&whole, &self.translated(sources, removed)?));
        }
        let random = changes.split_off(all.len() + 1);
        let together = changes[all.len()];
        let heads = all.into_iter().zip(changes).collect();
        Ok(Removals { phrases: sources.len(), heads, named: named.to_vec(), together, random })
    }
}

/// Sets of as many heads as are named, and none of those; every other head once if one is named.
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
    (0..DRAWS).map(draw).collect()
}

/// `decoder.1.cross.1 and decoder.1.cross.2`.
pub fn listed(heads: &[HeadName]) -> String {
    let names: Vec<String> = heads.iter().map(HeadName::to_string).collect();
    match names.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        names => names.concat(),
    }
}

impl Removals {
    /// The share of translations in which the word is another.
    pub fn share(&self, changed: Changed) -> f64 {
        changed.word as f64 / self.phrases.max(1) as f64
    }

    /// The same without as many heads that are drawn at random: the mean over all draws; `None` for a model that has too few.
    pub(crate) fn share_of_random(&self) -> Option<f64> {
        let sum: f64 = self.random.iter().map(|changed| self.share(*changed)).sum();
        (!self.random.is_empty()).then(|| sum / self.random.len() as f64)
    }

    /// The experiment; `word` is what may change: "the article".
    pub fn experiment(&self, word: &str, model: &str) -> Experiment {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let (together, others) = match self.named.len() {
            1 => ("", "a random other head".to_owned()),
            number => (" together", format!("{number} random other heads")),
        };
        let random = self.share_of_random().map(|share| format!("; without {others} in {}", percent(share)));
        let mut findings = vec![format!(
            "Without {}{together}, {word} changes in {} of {} phrases{}.",
            listed(&self.named),
            percent(self.share(self.together)),
            self.phrases,
            random.unwrap_or_default()
        )];
        let alone: Vec<Changed> = self.named.iter().filter_map(|head| self.alone(*head)).collect();
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

    /// What the removal of one head does.
    pub fn alone(&self, head: HeadName) -> Option<Changed> {
        self.heads.iter().find(|(known, _)| *known == head).map(|(_, changed)| *changed)
    }

    fn table(&self, word: &str) -> Table {
        let row = |name: String, changed: Changed| {
            let share = format!("{:.1}", 100.0 * self.share(changed));
            vec![name, changed.word.to_string(), share, changed.output.to_string()]
        };
        let mut heads = self.heads.clone();
        heads.sort_by_key(|(head, changed)| (!self.named.contains(head), std::cmp::Reverse(changed.word)));
        let together = (self.named.len() > 1).then(|| row(listed(&self.named), self.together));
        let alone = heads.iter().map(|(head, changed)| row(head.to_string(), *changed));
        Table {
            title: format!("{} phrases; first the heads that decide, then the others", self.phrases),
            columns: ["without", &format!("{word} changes"), "%", "anything changes"]
                .map(str::to_owned)
                .to_vec(),
            rows: together.into_iter().chain(alone).collect(),
        }
    }

    /// One cell for each head: layers × heads.
    fn picture(&self, word: &str) -> String {
        let width = self.heads.iter().map(|(head, _)| head.head + 1).max().unwrap_or(0);
        let of_one_layer = |a: &HeadName, b: &HeadName| (a.role, a.layer) == (b.role, b.layer);
        let layers: Vec<_> = self.heads.chunk_by(|(a, _), (b, _)| of_one_layer(a, b)).collect();
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
            |changed: Changed| json!({ "word_changes": changed.word, "output_changes": changed.output });
        let head = |(head, changed): &(HeadName, Changed)| json!({ "head": head.to_string(), "alone": changes(*changed) });
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
    fn named_heads_are_compared_with_as_many_others() {
        let changed = |word| Changed { word, output: word };
        let heads = vec![
            (head("enc.0.0"), changed(1)),
            (head("cross.0.0"), changed(2)),
            (head("cross.0.1"), changed(3)),
        ];
        let named = vec![head("cross.0.0"), head("cross.0.1")];
        let random = vec![changed(1), changed(3)];
        let removals = Removals { phrases: 10, heads, named, together: changed(8), random };
        assert!((removals.share_of_random().expect("two draws") - 0.2).abs() < 1e-12);
        let found = removals.experiment("the article", "a model");
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
        let alone = Removals { random: Vec::new(), ..removals };
        assert_eq!(alone.share_of_random(), None);
        assert!(alone.experiment("the article", "a model").findings[0].ends_with("80.0 % of 10 phrases."));
    }

    #[test]
    fn random_heads_are_others_and_as_many() {
        let all = ["enc.0.0", "enc.0.1", "dec.0.0", "cross.0.0", "cross.0.1"].map(head);
        let one = random_sets(&all, &all[..1]);
        assert_eq!(one, all[1..].iter().map(|&head| vec![head]).collect::<Vec<_>>());
        let two = random_sets(&all, &all[3..]);
        assert_eq!((two.len(), two.clone()), (DRAWS, random_sets(&all, &all[3..])));
        assert!(
            two.iter().all(|set| set.len() == 2
                && set[0] != set[1]
                && set.iter().all(|head| all[..3].contains(head)))
        );
        assert!(two.iter().any(|set| *set != two[0]), "{two:?}");
        assert!(random_sets(&all, &all[1..]).is_empty());
    }
}
