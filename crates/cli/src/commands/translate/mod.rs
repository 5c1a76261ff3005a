//! `heedful translate`: text in, translations out, line by line and in order.

mod arguments;

mod lines;
mod read_ahead;

mod attention;
mod joined;
mod output;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, Result, bail};
use heedful::data::text_limit::Part;
use heedful::decode::SearchOptions;
use heedful::tasks::translate::Translator;

pub(crate) use self::arguments::Arguments;
use self::attention::AttentionFile;
use self::joined::{OpenLine, TranslatedLine};
use self::lines::Line;
use self::output::{Destination, OutputWriter};
use crate::long_text::{Long, LongTexts, refused};
use crate::progress::{Bar, line_count};

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up("searching", verbosity)?;
    let options = arguments.search_options();
    options.check()?;
    if arguments.output.is_some() && arguments.output == arguments.attention {
        bail!("--output and --attention name the same file: give each its own");
    }
    let long = arguments.long()?;
    let destination = Destination::open(arguments)?;
    let mut attention =
        arguments.attention.as_deref().map(|path| AttentionFile::create(path, arguments)).transpose()?;
    let mut translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let lines = lines::read(arguments, long, translator.source_limit())?;
    let mut writer = OutputWriter::new(arguments, destination, &translator, &options);
    let mut reader = LineReader::new(&translator, long);
    let count =
        if arguments.text.is_empty() { line_count(arguments.file.as_deref()) } else { arguments.text.len() };
    let bar = Bar::beside_results(verbosity, count, arguments.output.as_deref());
    translate(&mut reader, &options, &lines, |line, translated| {
        bar.show(line + 1, 0.0, || format!("{} lines translated", line + 1));
        if let Some(file) = &mut attention
            && let Some(whole) = translated.whole()
            && let Some(best) = whole.outputs.first()
        {
            let maps = translator.attend(&whole.source, &best.hypothesis.tokens, &options)?;
            file.add(line, &translator, &whole, &maps)?;
        }
        writer.write(line, &translated)
    })?;
    bar.finish();
    reader.long_texts.finish();
    if let Some(file) = attention {
        file.finish()?;
    }
    writer.finish()
}

/// From lines to what the model reads of them.
struct LineReader<'t> {
    translator: &'t Translator,
    long: Long,
    long_texts: LongTexts,
}

impl<'t> LineReader<'t> {
    fn new(translator: &'t Translator, long: Long) -> LineReader<'t> {
        let what = if long == Long::Cut { "cut" } else { "split" };
        LineReader { translator, long, long_texts: LongTexts::new(what, translator.source_limit()) }
    }

    /// The parts of a line: one unless it is split; none if it is blank.
    fn parts(&mut self, line: &Line) -> Result<Vec<Part>> {
        let limit = self.translator.source_limit();
        let encode = |text: &str| self.translator.encode(text);
        let error = match limit.encode(&line.text, encode) {
            Ok(tokens) if tokens.is_empty() => return Ok(Vec::new()),
            Ok(tokens) => return Ok(vec![Part { tokens, begins_word: true }]),
            Err(error) => error,
        };
        let parts = match self.long {
            Long::Error => {
                return Err(refused(&line.location, error, "--long split, --long cut or --max-tokens N"));
            }
            Long::Cut => vec![Part { tokens: limit.first(&line.text, encode).tokens, begins_word: true }],
            Long::Split => limit.split(&line.text, encode),
        };
        self.long_texts.add(&line.location);
        // Of white space only, the first tokens are none.
        Ok(parts.into_iter().filter(|part| !part.tokens.is_empty()).collect())
    }
}

/// Translates lines as they arrive and passes the translations to `write` in the order of the lines, each as soon as it
/// and all lines before it are done.
///
/// While sentences are being decoded, input is polled and never waited for: a producer that waits for a translation before
/// it sends its next line gets it.
fn translate(
    reader: &mut LineReader<'_>,
    options: &SearchOptions,
    lines: &Receiver<Result<Line>>,
    mut write: impl FnMut(usize, TranslatedLine) -> Result<()>,
) -> Result<()> {
    let translator = reader.translator;
    let mut search = translator.search(options)?;
    // What is searched for, by its ticket: the number of the line and of the part in it.
    let mut places = BTreeMap::new();
    let mut open: BTreeMap<usize, OpenLine> = BTreeMap::new();
    let mut done: BTreeMap<usize, TranslatedLine> = BTreeMap::new();
    let (mut tickets, mut next, mut has_ended) = (0.., 0, false);
    loop {
        while !has_ended && search.has_capacity() {
            let line = if search.is_idle() {
                lines.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                lines.try_recv()
            };
            match line {
                Ok(line) => {
                    let line = line?;
                    let parts = reader.parts(&line)?;
                    if parts.is_empty() {
                        done.insert(line.number, TranslatedLine::default());
                        continue_writing(&mut done, &mut next, &mut write)?;
                        continue;
                    }
                    for ((part, Part { tokens, .. }), ticket) in parts.iter().enumerate().zip(&mut tickets) {
                        search.push(ticket, tokens.clone()).with_context(|| line.location.to_string())?;
                        places.insert(ticket, (line.number, part));
                    }
                    open.insert(line.number, OpenLine::new(parts));
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => has_ended = true,
            }
        }
        if search.is_idle() && has_ended {
            return Ok(());
        }
        for (ticket, hypotheses) in search.step() {
            let (number, part) =
                places.remove(&ticket).expect("every result belongs to a part that was pushed");
            let line = open.get_mut(&number).expect("a line is open until its last part is done");
            if let Some(translated) = line.add(part, translator.outputs(hypotheses?)) {
                open.remove(&number);
                done.insert(number, translated);
            }
        }
        continue_writing(&mut done, &mut next, &mut write)?;
    }
}

/// Writes what is done, up to the first line that is not.
fn continue_writing(
    done: &mut BTreeMap<usize, TranslatedLine>,
    next: &mut usize,
    write: &mut impl FnMut(usize, TranslatedLine) -> Result<()>,
) -> Result<()> {
    while let Some(translated) = done.remove(next) {
        write(*next, translated)?;
        *next += 1;
    }
    Ok(())
}
