//! The explanation of a translation.

use super::explanation::{
    ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, WeightForm,
};
use super::options::ExplainOptions;
use crate::Result;
use crate::data::tokenizer::Tokenizer;
use crate::decode::{AlignmentLayer, SearchOptions, align, attend_in};
use crate::layers::AttentionMap;
use crate::tasks::translate::{Output, Translation, Translator};

impl Explanation {
    /// Runs the model again over a sentence and its outputs, recording probabilities, alignment and
    /// attention.
    pub fn new(
        translator: &Translator,
        text: &str,
        translation: &Translation,
        form: WeightForm,
        options: &SearchOptions,
    ) -> Result<Explanation> {
        Explanation::of_translation(translator, text, translation, &ExplainOptions::new(form, options))
    }

    /// Like [`Explanation::new`], but also supports scores and masks.
    #[doc(hidden)]
    pub fn of_translation(
        translator: &Translator,
        text: &str,
        translation: &Translation,
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        let tokens = tokens(&translator.tokenizers().source, &translation.source, &[]);
        let source = ExplainedSource { text: text.to_owned(), tokens };
        let outputs = translation.outputs.iter();
        let outputs = outputs
            .map(|output| explain(translator, &source, &translation.source, output, options))
            .collect::<Result<_, _>>()?;
        Ok(Explanation { source, outputs })
    }
}

fn explain(
    translator: &Translator,
    source: &ExplainedSource,
    source_ids: &[u32],
    output: &Output,
    options: &ExplainOptions,
) -> Result<ExplainedOutput> {
    let generated = &output.hypothesis.tokens;
    translator.model().check_heads(&options.search.without_heads)?;
    let (maps, masked) = attend_in(
        &mut options.aligning_pass(translator.compute()),
        translator.model(),
        source_ids,
        generated,
    )?;
    let (log_probabilities, score, log_probability) = if options.masks.is_empty() {
        let unmasked = translator.token_scores(source_ids, generated, &options.search)?.tokens;
        (unmasked, output.hypothesis.score, output.hypothesis.log_probability)
    } else {
        let sum: f64 = masked.iter().sum();
        (masked, sum / options.search.penalty(generated.len() + 1), sum)
    };
    let mut tokens = tokens(&translator.tokenizers().target, generated, &log_probabilities);
    let words = |tokens: &[ExplainedToken]| tokens.iter().map(|token| token.word).collect::<Vec<_>>();
    let alignment = align(&maps, AlignmentLayer::default(), &words(&source.tokens), &words(&tokens));
    tokens.push(end(log_probabilities.last().copied()));
    Ok(ExplainedOutput {
        text: output.text.clone(),
        score,
        log_probability,
        tokens,
        alignment,
        attention: layers(&maps, options.form),
    })
}

/// `<eos>` with its log-probability.
pub(super) fn end(log_probability: Option<f64>) -> ExplainedToken {
    ExplainedToken { piece: "<eos>".to_owned(), word: None, log_probability, alternatives: Vec::new() }
}

/// The recorded layers; empty if no weights were requested.
pub(super) fn layers(maps: &[AttentionMap], form: WeightForm) -> Vec<ExplainedLayer> {
    match form {
        WeightForm::None => Vec::new(),
        form => maps.iter().map(|map| ExplainedLayer::new(map, form)).collect(),
    }
}

pub(super) fn tokens(tokenizer: &Tokenizer, ids: &[u32], log_probabilities: &[f64]) -> Vec<ExplainedToken> {
    let words = tokenizer.display_words(ids);
    let token = |(i, (&id, word))| ExplainedToken {
        piece: tokenizer.piece(id),
        word,
        log_probability: log_probabilities.get(i).copied(),
        alternatives: Vec::new(),
    };
    ids.iter().zip(words).enumerate().map(token).collect()
}
