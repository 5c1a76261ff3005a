//! What a head is for: remove each head in turn, and see how often one word of the translations changes.
//!
//! A picture of attention shows where a head looks, and not whether it matters. A removed head, whose output is zero, is an
//! intervention: what changes depended on it.

use serde_json::{Value, json};

use super::Experiment;
use crate::decode::{DecodeError, SearchOptions};
use crate::layers::{AttentionRole, HeadName};
use crate::plot::{HeatMapOptions, Table, heat_map_svg};
use crate::tasks::translate::Translator;

/// What the removal of each head does to translations.
#[derive(Clone, Debug, PartialEq)]
pub struct Removals {
    /// How many translations there are.
    pub phrases: usize,
    /// One for each head of the model, in its order.
    pub heads: Vec<Removal>,
}

/// What the removal of one head does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The head.
    pub head: HeadName,
    /// Translations in which the word is another.
    pub word: usize,
    /// Translations that are different at all.
    pub output: usize,
}

/// Removes every head of a model in turn. `word` finds the word in a translation; `progress` hears how many heads are done.
pub fn removals(
    translator: &Translator,
    sources: &[&str],
    options: &SearchOptions,
    word: impl Fn(&str) -> String,
    mut progress: impl FnMut(usize, HeadName),
) -> Result<Removals, DecodeError> {
    let translated = |without_heads: Vec<HeadName>| -> Result<Vec<String>, DecodeError> {
        let options = SearchOptions { without_heads, ..options.clone() };
        let found = translator.translate(sources, &options)?;
        Ok(found.iter().map(|translation| translation.best().to_owned()).collect())
    };
    let whole = translated(Vec::new())?;
    let mut heads = Vec::new();
    for (number, head) in translator.model().heads().into_iter().enumerate() {
        progress(number, head);
        let without = translated(vec![head])?;
        let changed = |is_changed: &dyn Fn(&str, &str) -> bool| {
            whole.iter().zip(&without).filter(|(whole, without)| is_changed(whole, without)).count()
        };
        heads.push(Removal {
            head,
            word: changed(&|whole, without| word(whole) != word(without)),
            output: changed(&|whole, without| whole != without),
        });
    }
    Ok(Removals { phrases: sources.len(), heads })
}

impl Removals {
    /// What the removal of a head does.
    pub fn of(&self, head: HeadName) -> Option<Removal> {
        self.heads.iter().copied().find(|removal| removal.head == head)
    }

    /// The share of translations in which the word is another without a head.
    pub fn share(&self, removal: Removal) -> f64 {
        removal.word as f64 / self.phrases.max(1) as f64
    }

    /// The same for a head that is drawn from all but one.
    pub fn share_of_random(&self, but: HeadName) -> f64 {
        let others: Vec<f64> = self
            .heads
            .iter()
            .filter(|removal| removal.head != but)
            .map(|removal| self.share(*removal))
            .collect();
        others.iter().sum::<f64>() / others.len().max(1) as f64
    }

    /// The experiment for the head that a picture points at; `word` is what may change: "the article".
    pub fn experiment(&self, named: HeadName, word: &str, model: &str) -> Experiment {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let strongest =
            self.heads.iter().copied().max_by_key(|removal| (removal.word, removal.head == named));
        let mut findings = vec![format!(
            "Without {named}, {word} changes in {} of {} phrases; without a random other head in {}.",
            percent(self.of(named).map_or(0.0, |removal| self.share(removal))),
            self.phrases,
            percent(self.share_of_random(named))
        )];
        if let Some(other) = strongest.filter(|strongest| strongest.head != named && strongest.word > 0) {
            let share = percent(self.share(other));
            findings.push(format!(
                "The head that matters most is another: without {}, {word} changes in {share}.",
                other.head
            ));
        }
        Experiment {
            title: format!("Which head decides {word}?"),
            setting: format!("{model}: each head is removed in turn, its output set to zero"),
            findings,
            tables: vec![self.table(named, word)],
            curves: Vec::new(),
            pictures: vec![self.picture(word)],
            json: self.json(named),
        }
    }

    fn table(&self, named: HeadName, word: &str) -> Table {
        let mut heads = self.heads.clone();
        heads.sort_by_key(|removal| (removal.head != named, std::cmp::Reverse(removal.word)));
        let row = |removal: &Removal| {
            vec![
                removal.head.to_string(),
                removal.word.to_string(),
                format!("{:.1}", 100.0 * self.share(*removal)),
                removal.output.to_string(),
            ]
        };
        Table {
            title: format!(
                "{} phrases; first the head of the picture, then the others by what they change",
                self.phrases
            ),
            columns: ["without", &format!("{word} changes"), "%", "anything changes"]
                .map(str::to_owned)
                .to_vec(),
            rows: heads.iter().map(row).collect(),
        }
    }

    /// One cell for each head: layers × heads.
    fn picture(&self, word: &str) -> String {
        let width = self.heads.iter().map(|removal| removal.head.head + 1).max().unwrap_or(0);
        let layers: Vec<&[Removal]> =
            self.heads.chunk_by(|a, b| (a.head.role, a.head.layer) == (b.head.role, b.head.layer)).collect();
        let mut shares = vec![0.0; width * layers.len()];
        for (layer, heads) in layers.iter().enumerate() {
            for removal in *heads {
                shares[layer * width + removal.head.head] = self.share(*removal) as f32;
            }
        }
        let rows: Vec<String> = layers.iter().map(|heads| layer_name(heads[0].head)).collect();
        let columns: Vec<String> = (0..width).map(|head| head.to_string()).collect();
        let title = format!("how often {word} changes without a head");
        heat_map_svg(&shares, &rows, &columns, &HeatMapOptions { title, ..HeatMapOptions::default() })
    }

    fn json(&self, named: HeadName) -> Value {
        let head = |removal: &Removal| json!({ "head": removal.head.to_string(), "word_changes": removal.word, "output_changes": removal.output });
        json!({
            "phrases": self.phrases,
            "named": named.to_string(),
            "share_without_named": self.of(named).map(|removal| self.share(removal)),
            "share_without_random_other": self.share_of_random(named),
            "heads": self.heads.iter().map(head).collect::<Vec<_>>(),
        })
    }
}

fn layer_name(head: HeadName) -> String {
    let stack = match head.role {
        AttentionRole::EncoderSelf => "encoder",
        AttentionRole::DecoderSelf => "decoder",
        AttentionRole::Cross => "cross",
        AttentionRole::Pooling => "pooling",
    };
    format!("{stack} {}", head.layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_head_is_the_mean_of_the_others() {
        let head = |name: &str| name.parse::<HeadName>().expect("a head's name");
        let removal = |name, word| Removal { head: head(name), word, output: word };
        let heads = vec![removal("enc.0.0", 1), removal("cross.0.0", 8), removal("cross.0.1", 3)];
        let removals = Removals { phrases: 10, heads };
        assert!((removals.share_of_random(head("cross.0.0")) - 0.2).abs() < 1e-12);
        let found = removals.experiment(head("cross.0.0"), "the article", "a model");
        assert!(found.findings[0].contains("80.0 % of 10 phrases") && found.findings[0].contains("20.0 %"));
        assert_eq!((found.findings.len(), found.tables[0].rows[0][0].as_str()), (1, "cross.0.0"));
        // A picture that points at the wrong head is said to be wrong.
        let wrong = removals.experiment(head("cross.0.1"), "the article", "a model");
        assert!(wrong.findings[1].contains("without cross.0.0"), "{:?}", wrong.findings);
        assert!(found.to_svg().contains("cross 0") && found.to_text().contains("enc.0.0"));
    }
}
