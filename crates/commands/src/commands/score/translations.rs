//! Scores translations with a translator.

use anyhow::{Context, Result};
use heedful::data::{CorpusFiles, Input, Pair, TextLimit};
use heedful::decode::{SearchOptions, attend_in};
use heedful::tasks::translate::Translator;

use super::Arguments;
use crate::attention_file::{AttendedTokens, AttentionFile};
use crate::long_text::{LongTexts, LongWhole};
use crate::progress::{Bar, line_count};
use crate::results::Results;

/// Maximum pairs of a chunk.
const CHUNK: usize = 1024;
/// A chunk ends with the pair that reaches this number of bytes.
const CHUNK_BYTES: usize = 4 << 20;

pub(super) fn run(arguments: &Arguments, mut results: Results) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    let [src, tgt] = [&arguments.src, &arguments.tgt].map(|file| file.as_ref().expect("it was checked"));
    let mut attention =
        arguments.attention.create(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let mut translator = Translator::open_with(&arguments.model, &arguments.machine.opening())?;
    translator.model().check_heads(&arguments.without_head)?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let options = SearchOptions {
        compute: arguments.machine.precision(),
        without_heads: arguments.without_head.clone(),
        ..SearchOptions::default()
    };
    let limits = [translator.source_limit(), translator.target_limit()];
    let inputs = [Input::new(src), Input::new(tgt)];
    let files = CorpusFiles::new(&inputs[..1], &inputs[1..], &[])?;
    let mut pairs = files.pairs().cut_at(limits.map(|limit| limit.bytes_to_read()));
    let mut reader = PairReader {
        translator: &translator,
        inputs: &inputs,
        long: arguments.long,
        line: 0,
        long_texts: limits.map(cut),
    };
    let bar = Bar::for_streamed_results(verbosity, line_count(Some(src)), arguments.output.as_deref());
    loop {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < CHUNK
            && bytes < CHUNK_BYTES
            && let Some(pair) = pairs.next().transpose()?
        {
            bytes += pair.source.len() + pair.target.len();
            chunk.push(reader.tokens(&pair)?);
        }
        if chunk.is_empty() {
            bar.finish();
            reader.long_texts.iter().for_each(LongTexts::finish);
            attention.map_or(Ok(()), AttentionFile::finish)?;
            return results.finish("scores");
        }
        let first = reader.line - chunk.len();
        for (index, score) in translator.score_tokens_or_blank(&chunk, &options)?.iter().enumerate() {
            let (source, target) = &chunk[index];
            let end = translator.model().special_tokens().eos;
            let tokens = if source.is_empty() { Vec::new() } else { [&target[..], &[end]].concat() };
            results.add(&(arguments.line(score, &translator.tokenizers().target, &tokens) + "\n"))?;
            if let Some(file) = attention.as_mut().filter(|_| !source.is_empty()) {
                let mut pass =
                    arguments.attention.pass(translator.compute()).without_heads(&options.without_heads);
                let (maps, _) = attend_in(&mut pass, translator.model(), source, target)
                    .with_context(|| format!("line {}", first + index + 1))?;
                file.add(first + index, &AttendedTokens::of_pair(&translator, source, target), &maps)?;
            }
        }
        // Results are available before the whole text is scored.
        results.flush()?;
        bar.show(reader.line, 0.0, || format!("{} pairs scored", reader.line));
    }
}

fn cut(limit: TextLimit) -> LongTexts {
    LongTexts::new("cut", limit)
}

/// Reads pairs of lines and encodes them to tokens, cut to the model's limits.
struct PairReader<'a> {
    translator: &'a Translator,
    /// For sources and for targets.
    inputs: &'a [Input; 2],
    long: LongWhole,
    /// Number of lines read.
    line: usize,
    long_texts: [LongTexts; 2],
}

impl PairReader<'_> {
    fn tokens(&mut self, pair: &Pair) -> Result<(Vec<u32>, Vec<u32>)> {
        self.line += 1;
        let PairReader { translator, inputs, long, line, long_texts: [sources, targets] } = self;
        let place = |side: usize| inputs[side].location(*line as u64);
        let source = sources.read(&pair.source, |text| translator.encode(text), *long, || place(0))?;
        let target = targets.read(&pair.target, |text| translator.encode_target(text), *long, || place(1))?;
        Ok((source, target))
    }
}
