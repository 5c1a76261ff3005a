//! Scores texts with a language model.

use std::borrow::Cow;
use std::collections::VecDeque;

use anyhow::Result;
use heedful::data::Input;
use heedful::data::corpus::{Lines, LongLines};
use heedful::decode::TargetScore;
use heedful::tasks::language::{Generator, TextScorer};

use super::Arguments;
use crate::attention_file::{AttendedTokens, AttentionFile};
use crate::long_text::{LONGEST_LINE, LongTexts, LongWhole, refused};
use crate::progress::{Bar, Verbosity, line_count};
use crate::results::Results;

pub(super) fn run(arguments: &Arguments, mut results: Results) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    let file = arguments.text.as_ref().expect("it was checked");
    let mut attention =
        arguments.attention.create(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let mut generator = Generator::open_with(&arguments.model, &arguments.machine.opening())?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| generator.set_max_tokens(tokens))?;
    let compute = generator.compute();
    let mut reader = TextReader::new(&generator, arguments);
    let input = Input::new(file);
    let mut lines = Lines::open(&input)?.bounded(LONGEST_LINE, LongLines::Refused);
    let count = line_count(Some(file));
    let bar = Bar::for_streamed_results(verbosity, count, arguments.output.as_deref());
    let mut scorer = TextScorer::new(&generator);
    // Tokens of lines without a score so far.
    let mut open: VecDeque<Vec<u32>> = VecDeque::new();
    let line_of = |score: &TargetScore, tokens: Option<Vec<u32>>| {
        arguments.line(score, generator.tokenizer(), &tokens.unwrap_or_default()) + "\n"
    };
    let mut number = 0;
    while let Some(line) = lines.next()? {
        let (read, tokens) = reader.read(line, &input, number as u64 + 1)?;
        if let Some(file) = attention.as_mut().filter(|_| !tokens.is_empty()) {
            let (_, maps) = generator.attend_in(&mut arguments.attention.pass(compute), &tokens)?;
            file.add(number, &AttendedTokens::of_line(&generator, &tokens), &maps)?;
        }
        number += 1;
        open.push_back(generator.predicted(&read, tokens.clone()));
        for score in scorer.push(&read, tokens)? {
            results.add(line_of(&score, open.pop_front()))?;
        }
        bar.show(number, 0.0, || format!("{number} lines scored"));
    }
    let (rest, perplexity) = scorer.finish()?;
    for score in rest {
        results.add(line_of(&score, open.pop_front()))?;
    }
    results.flush()?;
    bar.finish();
    reader.long_texts.finish();
    attention.map_or(Ok(()), AttentionFile::finish)?;
    results.finish("scores")?;
    if verbosity == Verbosity::Normal && perplexity.tokens > 0 {
        eprintln!(
            "heedful: {} tokens, perplexity {:.4} by token, {:.4} by word, {:.4} by byte, computed in {compute}",
            perplexity.tokens,
            perplexity.by_token(),
            perplexity.by_word(),
            perplexity.by_byte()
        );
    }
    Ok(())
}

/// Encodes lines to tokens, cut to the model's limit. Lines of continuous text may have any length: they are
/// split into blocks.
struct TextReader<'a> {
    generator: &'a Generator,
    arguments: &'a Arguments,
    long_texts: LongTexts,
}

impl<'a> TextReader<'a> {
    fn new(generator: &'a Generator, arguments: &'a Arguments) -> TextReader<'a> {
        TextReader { generator, arguments, long_texts: LongTexts::new("cut", generator.limit()) }
    }

    /// The part of a line that is scored, whose words and bytes are counted, and its tokens.
    fn read<'l>(&mut self, line: &'l str, input: &Input, number: u64) -> Result<(Cow<'l, str>, Vec<u32>)> {
        let encode = |text: &str| self.generator.encode(text);
        if !self.generator.ends_texts() && self.arguments.attention.file.is_none() {
            return Ok((line.into(), encode(line)));
        }
        let limit = self.generator.limit();
        match (limit.encode(line, encode), self.arguments.long) {
            (Ok(tokens), _) => Ok((line.into(), tokens)),
            (Err(error), LongWhole::Error) => {
                Err(refused(input.location(number), error, "--long cut or --max-tokens N"))
            }
            (Err(_), LongWhole::Cut) => {
                self.long_texts.add_at(|| input.location(number));
                let tokens = limit.first(line, encode).tokens;
                Ok((self.generator.decode(&[], &tokens).into(), tokens))
            }
        }
    }
}
