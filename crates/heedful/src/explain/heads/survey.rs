//! Collects statistics of every head over a corpus, one sentence pair at a time.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::agreement::Matches;
use super::examples::{Examples, KeyTokens, Pair};
use super::links::ReferenceAlignment;
use super::report::{HeadReport, HeadRow, LayerRow};
use super::statistics::Tally;
use crate::data::SpecialTokens;
use crate::data::tokenizer::Tokenizer;
use crate::decode::{SearchOptions, align_by};
use crate::layers::{AttentionMap, AttentionRole, LayerName};
use crate::models::HeadName;
use crate::tasks::translate::Translator;
use crate::{Error, Result};

/// Running statistics of every head.
pub struct HeadSurvey<'t> {
    translator: &'t Translator,
    options: SearchOptions,
    sentences: u64,
    heads: Vec<SurveyedHead>,
    /// Alignment counts of the mean over heads, for each cross attention layer.
    layers: Vec<(LayerName, Matches)>,
    has_references: bool,
}

struct SurveyedHead {
    name: HeadName,
    tally: Tally,
    matches: Matches,
    examples: Examples,
}

impl<'t> HeadSurvey<'t> {
    /// An empty survey. It uses only `compute` and `without_heads` of the options.
    pub fn new(translator: &'t Translator, options: &SearchOptions) -> HeadSurvey<'t> {
        HeadSurvey {
            translator,
            options: options.clone(),
            sentences: 0,
            heads: Vec::new(),
            layers: Vec::new(),
            has_references: false,
        }
    }

    /// Adds a sentence pair without blank sides, with its line number (from 1) and, if there is one, its
    /// reference alignment.
    pub fn add(
        &mut self,
        line: u64,
        source: &str,
        target: &str,
        links: Option<&ReferenceAlignment>,
    ) -> Result<()> {
        let tokenizers = self.translator.tokenizers();
        let (source_ids, target_ids) = (self.translator.encode(source), tokenizers.target.encode(target));
        let words = [tokenizers.source.words(&source_ids), tokenizers.target.words(&target_ids)];
        if let Some(links) = links {
            check_links(links, &words)?;
            self.has_references = true;
        }
        let maps = self.translator.attend(&source_ids, &target_ids, &self.options)?;
        let special = self.translator.model().special_tokens();
        let inputs: Vec<u32> = [special.bos].into_iter().chain(target_ids.iter().copied()).collect();
        let predicted: Vec<u32> = target_ids.into_iter().chain([special.eos]).collect();
        let source_tokens =
            (pieces(&tokenizers.source, &source_ids), separators(&tokenizers.source, &source_ids, &special));
        let target_inputs =
            (pieces(&tokenizers.target, &inputs), separators(&tokenizers.target, &inputs, &special));
        let predicted = pieces(&tokenizers.target, &predicted);
        let pair = Pair { line, texts: [source, target] };
        for map in maps.iter().filter(|map| map.site.role != AttentionRole::Pooling) {
            let role = map.site.role;
            let queries = if role == AttentionRole::EncoderSelf { &source_tokens.0 } else { &predicted };
            let (pieces, is_separator) =
                if role == AttentionRole::DecoderSelf { &target_inputs } else { &source_tokens };
            self.add_map(map, &pair, queries, KeyTokens { pieces, is_separator });
            if let Some(links) = links.filter(|_| role == AttentionRole::Cross) {
                self.match_map(map, &words, links);
            }
        }
        self.sentences += 1;
        Ok(())
    }

    fn add_map(&mut self, map: &AttentionMap, pair: &Pair<'_>, queries: &[String], keys: KeyTokens<'_>) {
        for (head, weights) in map.weights[0].iter().enumerate() {
            let surveyed = self.head(HeadName { role: map.site.role, layer: map.site.layer, head });
            surveyed.tally.add(map.site.role, weights, keys.is_separator);
            surveyed.examples.add(pair, queries, keys, weights);
        }
    }

    /// The entry of this head, created if missing.
    fn head(&mut self, name: HeadName) -> &mut SurveyedHead {
        let index = self.heads.iter().position(|known| known.name == name).unwrap_or_else(|| {
            let (tally, matches, examples) = Default::default();
            self.heads.push(SurveyedHead { name, tally, matches, examples });
            self.heads.len() - 1
        });
        &mut self.heads[index]
    }

    /// Compares a cross attention layer with a reference alignment: each head, and the mean over heads.
    fn match_map(
        &mut self,
        map: &AttentionMap,
        [source_words, target_words]: &[Vec<Option<usize>>; 2],
        links: &ReferenceAlignment,
    ) {
        let (role, layer) = (map.site.role, map.site.layer);
        for (head, weights) in map.weights[0].iter().enumerate() {
            let predicted = align_by(weights, source_words, target_words);
            self.head(HeadName { role, layer, head }).matches.add(&predicted, links);
        }
        let name = map.site.layer_name();
        let index = self.layers.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.layers.push((name, Matches::default()));
            self.layers.len() - 1
        });
        let predicted = align_by(&map.mean_over_heads(0), source_words, target_words);
        self.layers[index].1.add(&predicted, links);
    }

    /// The report on all pairs so far.
    pub fn report(&self) -> HeadReport {
        let row = |head: &SurveyedHead| HeadRow {
            name: head.name,
            statistics: head.tally.mean(),
            agreement: (self.has_references && head.name.role == AttentionRole::Cross)
                .then(|| head.matches.agreement()),
            examples: head.examples.sharpest(),
        };
        let layer = |(layer, matches): &(LayerName, Matches)| LayerRow {
            layer: *layer,
            agreement: matches.agreement(),
        };
        let mut heads: Vec<HeadRow> = self.heads.iter().map(row).collect();
        // Decoder layers alternate between self and cross attention; the table groups heads by kind.
        heads.sort_by_key(|row| (row.name.role as u8, row.name.layer, row.name.head));
        HeadReport { sentences: self.sentences, heads, layers: self.layers.iter().map(layer).collect() }
    }
}

/// An error if a link names a word that the sentences do not have.
fn check_links(links: &ReferenceAlignment, [source, target]: &[Vec<Option<usize>>; 2]) -> Result<()> {
    let count = |words: &[Option<usize>]| words.iter().flatten().max().map_or(0, |last| last + 1);
    let (source_words, target_words) = (count(source), count(target));
    let beyond = links.possible.iter().find(|link| link.0 >= source_words || link.1 >= target_words);
    match beyond {
        Some(&(source_word, target_word)) => Err(Error::new(format!(
            "link {source_word}-{target_word} is out of range: the pair has {source_words} source words and {target_words} \
                 target words. Words are separated by white space and counted from 0"
        ))),
        None => Ok(()),
    }
}

fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|&id| tokenizer.piece(id)).collect()
}

fn separators(tokenizer: &Tokenizer, ids: &[u32], special: &SpecialTokens) -> Vec<bool> {
    ids.iter().map(|&id| special.contains(id) || is_punctuation(&tokenizer.piece(id))).collect()
}

fn is_punctuation(piece: &str) -> bool {
    let word = piece.trim_start_matches('▁');
    let is_punctuation_character = |c: char| c.general_category_group() == GeneralCategoryGroup::Punctuation;
    !word.is_empty() && word.chars().all(is_punctuation_character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_is_recognised_in_every_script() {
        for (piece, expected) in [
            ("▁.", true),
            ("。", true),
            ("!?", true),
            ("▁", false),
            ("▁a.", false),
            ("车", false),
            ("", false),
        ] {
            assert_eq!(is_punctuation(piece), expected, "{piece}");
        }
    }

    #[test]
    fn a_link_out_of_range_is_an_error() {
        let words = [vec![Some(0), Some(1)], vec![Some(0)]];
        assert!(check_links(&"1-0".parse().expect("links"), &words).is_ok());
        let error =
            check_links(&"0?1".parse().expect("links"), &words).expect_err("one target word").to_string();
        assert!(error.contains("2 source words and 1 target words"), "{error}");
    }
}
