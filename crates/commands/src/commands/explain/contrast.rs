//! The answers of a clean and of a corrupted text, between which patches move a prediction.

use anyhow::{Context, Result, anyhow, bail};
use heedful::decode::SearchOptions;
use heedful::explain::inspect::Inspected;
use heedful::explain::patching::Contrast;
use heedful::tasks::translate::Translator;

use super::inspected::Opened;
use super::model::Model;

impl Opened {
    /// Both texts, and the prediction in which their answers differ. `answers` are the given ones.
    pub(super) fn contrast(
        &self,
        texts: [&str; 2],
        answers: [Option<&str>; 2],
    ) -> Result<([Inspected<'_>; 2], Contrast)> {
        if let Model::Translator(translator) = &self.model {
            return self.translations(translator, texts, answers);
        }
        let [clean, corrupted] = [self.text(texts[0], None)?, self.text(texts[1], None)?];
        // A language model predicts the token after the text, others their only or first prediction.
        let prediction = match self.model {
            Model::Generator(_) => clean.predictions().len().min(corrupted.predictions().len()) - 1,
            _ => 0,
        };
        let [answer, wrong] =
            [(&clean, answers[0]), (&corrupted, answers[1])].map(|(text, given)| match given {
                Some(given) => self.class(given),
                None => Ok(text.best(prediction)?),
            });
        let contrast = Contrast { prediction, answer: answer?, wrong: wrong? };
        check(contrast, &clean)?;
        Ok(([clean, corrupted], contrast))
    }

    /// The index of a label or token.
    fn class(&self, name: &str) -> Result<u32> {
        let only = |ids: Vec<u32>| match ids.as_slice() {
            [only] => Ok(*only),
            ids => Err(anyhow!("“{name}” has {} tokens: an answer is one token", ids.len())),
        };
        match &self.model {
            Model::Classifier(classifier) => classifier.labels().index(name).with_context(|| {
                format!("the model has no label “{name}”: it has {}", classifier.labels().names().join(", "))
            }),
            Model::Generator(generator) => only(generator.tokenizer().encode(name)),
            Model::Filler(filler) => only(filler.encode(name)),
            Model::Translator(_) => unreachable!("translations are compared as a whole"),
        }
    }

    fn translations<'o>(
        &'o self,
        translator: &'o Translator,
        texts: [&str; 2],
        answers: [Option<&str>; 2],
    ) -> Result<([Inspected<'o>; 2], Contrast)> {
        let options = SearchOptions { compute: self.precision, ..SearchOptions::default() };
        let eos = translator.model().special_tokens().eos;
        let target = |number: usize| -> Result<Vec<u32>> {
            let tokens = match answers[number] {
                Some(answer) => translator.encode_target(answer),
                None => {
                    let outputs = translator.translate([texts[number]], &options)?.swap_remove(0).outputs;
                    let best = outputs.into_iter().next().context("the text is blank: give two texts")?;
                    best.hypothesis.tokens
                }
            };
            Ok(tokens.into_iter().chain([eos]).collect())
        };
        let [clean, corrupted] = [target(0)?, target(1)?];
        let prediction = clean.iter().zip(&corrupted).take_while(|(a, b)| a == b).count();
        let (Some(&answer), Some(&wrong)) = (clean.get(prediction), corrupted.get(prediction)) else {
            bail!("both texts have the same translation: give texts, or --answer and --wrong, that differ");
        };
        let prefix = &clean[..prediction];
        let text = |text: &str| {
            Inspected::of_translation(translator, &translator.encode(text), prefix, self.precision)
        };
        Ok(([text(texts[0])?, text(texts[1])?], Contrast { prediction, answer, wrong }))
    }
}

fn check(contrast: Contrast, text: &Inspected<'_>) -> Result<()> {
    if contrast.answer == contrast.wrong {
        let answer = text.piece(contrast.answer);
        bail!("the answer of both texts is {answer}: give texts, or --answer and --wrong, that differ");
    }
    Ok(())
}
