//! `heedful translate`: translates text line by line, in order.

mod arguments;

mod lines;
mod prefixes;
mod read_ahead;

mod missing_terms;
mod output;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, Result, anyhow};
use heedful::data::map_parallel;
use heedful::data::shortlist::Shortlist;
use heedful::data::text_limit::TextPart;
use heedful::decode::{SearchInput, SearchOptions, attend_in};
use heedful::tasks::translate::{JoinError, LongText, Terms, TranslatedText, TranslationQueue, Translator};

pub(crate) use self::arguments::Arguments;
use self::lines::{Line, Location};
use self::missing_terms::MissingTerms;
use self::output::OutputWriter;
use crate::attention_file::AttendedTokens;
use crate::long_text::{Long, LongTexts, refused};
use crate::progress::{Bar, Verbosity, line_count};
use crate::results::Results;
use crate::text_input;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up(arguments.quiet.verbosity())?;
    let mut options = arguments.search_options();
    options.check()?;
    arguments.check()?;
    if arguments.text.is_empty() {
        text_input::check(arguments.file(), verbosity)?;
    }
    let long = arguments.long()?;
    let results = Results::open(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let mut attention =
        arguments.attention.create(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let terms = arguments.terms.as_deref().map(Terms::open).transpose()?.unwrap_or_default();
    let mut translator = open(arguments)?;
    if arguments.shortlist {
        options.shortlist = Some(shortlist(arguments, &translator)?);
    }
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let lines = lines::read(arguments, long, translator.source_limit())?;
    let count = if arguments.text.is_empty() { line_count(arguments.file()) } else { arguments.text.len() };
    let mut writer = OutputWriter { arguments, translator: &translator, options: &options, results };
    let mut reader = LineReader::new(&translator, long, &terms, verbosity);
    let bar = Bar::for_streamed_results(verbosity, count, arguments.output.as_deref());
    let source = LineSource::new(arguments, &lines);
    translate(&mut reader, &options, &source, |line, translated| {
        bar.show(line + 1, 0.0, || format!("{} lines translated", line + 1));
        if let Some(file) = &mut attention
            && let Some(whole) = translated.whole()
            && let Some(best) = whole.outputs.first()
        {
            let mut pass =
                arguments.attention.pass(translator.compute()).without_heads(&options.without_heads);
            let tokens = &best.hypothesis.tokens;
            let (maps, _) = attend_in(&mut pass, translator.model(), &whole.source, tokens)?;
            file.add(line, &AttendedTokens::of_translation(&translator, &whole), &maps)?;
        }
        writer.write(line, &translated)
    })?;
    bar.finish();
    reader.long_texts.finish();
    reader.missing_terms.finish();
    if let Some(file) = attention {
        file.finish()?;
    }
    writer.finish()
}

/// The model, or the ensemble of several models.
fn open(arguments: &Arguments) -> Result<Translator> {
    let models = arguments.models();
    let open = |folder: &&Path| {
        let translator = Translator::open_with(folder, &arguments.machine.opening())?;
        Ok(translator)
    };
    let translators = models.iter().map(open).collect::<Result<Vec<_>>>()?;
    translators[0].model().check_heads(&arguments.without_head)?;
    Translator::join(translators).map_err(|error| match error.cause() {
        Some(JoinError::Vocabulary { number, .. }) => anyhow!("{}: {error}", models[number - 1].display()),
        _ => error.into(),
    })
}

/// The shortlist of the model.
fn shortlist(arguments: &Arguments, translator: &Translator) -> Result<Arc<Shortlist>> {
    let name = arguments.models()[0].display();
    translator.shortlist().cloned().with_context(|| {
        format!("{name} has no shortlist: learn one with heedful shortlist {name} --src FILE --tgt FILE")
    })
}

/// Encodes lines to tokens, cut or split to the model's limit.
struct LineReader<'t> {
    translator: &'t Translator,
    terms: &'t Terms,
    long: Long,
    long_texts: LongTexts,
    missing_terms: MissingTerms,
}

impl<'t> LineReader<'t> {
    fn new(translator: &'t Translator, long: Long, terms: &'t Terms, verbosity: Verbosity) -> LineReader<'t> {
        let what = if long == Long::Cut { "cut" } else { "split" };
        let long_texts = LongTexts::new(what, translator.source_limit());
        LineReader { translator, terms, long, long_texts, missing_terms: MissingTerms::new(verbosity) }
    }

    /// The tokens of a line's prefix.
    fn prefix(&self, line: &Line) -> Result<Vec<u32>> {
        let Some(prefix) = line.prefix.as_ref().filter(|prefix| !prefix.text.trim().is_empty()) else {
            return Ok(Vec::new());
        };
        let encode = |text: &str| self.translator.encode_target(text);
        let tokens = self.translator.target_limit().encode(&prefix.text, encode);
        tokens.map_err(|error| refused(&prefix.location, error, "--max-tokens N"))
    }

    /// The parts of a line: one unless it is split; none if it is blank. Also whether the line was too long.
    fn parts(&self, line: &Line) -> Result<(Vec<TextPart>, bool)> {
        let long = match self.translator.parts(&line.text, LongText::Refused) {
            Ok(parts) => return Ok((parts, false)),
            Err(error) => match self.long {
                Long::Error => {
                    return Err(refused(&line.location, error, "--long split, --long cut or --max-tokens N"));
                }
                Long::Cut => LongText::Cut,
                Long::Split => LongText::Split,
            },
        };
        Ok((self.translator.parts(&line.text, long)?, true))
    }

    /// A line as inputs of the search.
    fn encode(&self, line: Line) -> Result<EncodedLine> {
        let ((parts, is_long), prefix) = (self.parts(&line)?, self.prefix(&line)?);
        let parts = self.translator.part_inputs(parts, prefix, self.terms);
        Ok(EncodedLine { parts, is_long, location: line.location })
    }
}

/// A line as inputs of the search.
struct EncodedLine {
    parts: Vec<(TextPart, SearchInput)>,
    /// Whether it was too long, and cut or split.
    is_long: bool,
    location: Location,
}

/// The source of lines.
struct LineSource<'l> {
    lines: &'l Receiver<Result<Line>>,
    /// Whether all lines are available without delay (a file or `--text`), so that the next one may be waited
    /// for.
    is_complete: bool,
}

impl<'l> LineSource<'l> {
    fn new(arguments: &Arguments, lines: &'l Receiver<Result<Line>>) -> LineSource<'l> {
        let is_complete = !arguments.text.is_empty() || arguments.file().is_some_and(Path::is_file);
        LineSource { lines, is_complete }
    }

    /// The next line, if one is available; waits for it if there is nothing else to do.
    fn next(&self, is_idle: bool) -> Result<Result<Line>, TryRecvError> {
        if is_idle || self.is_complete {
            self.lines.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.lines.try_recv()
        }
    }

    /// The next lines, to be encoded at once: those that are available, at most [`LINES_AT_ONCE`], and at
    /// least one if there is nothing else to do. Also why there are no more: none is available, or none will
    /// be.
    fn next_lines(&self, is_idle: bool) -> (Vec<Result<Line>>, Option<TryRecvError>) {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < LINES_AT_ONCE && bytes < BYTES_AT_ONCE {
            match self.next(is_idle && lines.is_empty()) {
                Ok(line) => {
                    bytes += line.as_ref().map_or(0, |line| line.text.len());
                    lines.push(line);
                }
                Err(reason) => return (lines, Some(reason)),
            }
        }
        (lines, None)
    }
}

/// Maximum number of lines that are encoded at once, and of their bytes, unless a line has more.
const LINES_AT_ONCE: usize = 2048;
const BYTES_AT_ONCE: usize = 1 << 17;

/// Translates lines as they arrive and passes the translations to `write` in the order of the lines, each as
/// soon as it and all lines before it are done.
///
/// While sentences are being decoded, input is polled without waiting, so that a producer can wait for a
/// translation before it sends the next line.
fn translate(
    reader: &mut LineReader<'_>,
    options: &SearchOptions,
    lines: &LineSource<'_>,
    mut write: impl FnMut(usize, TranslatedText) -> Result<()>,
) -> Result<()> {
    let translator = reader.translator;
    let mut queue = TranslationQueue::new(translator, options)?;
    // The lines in the queue, by their line numbers in the input.
    let mut open: BTreeMap<usize, Location> = BTreeMap::new();
    let mut has_ended = false;
    loop {
        while !has_ended && queue.wants_text() {
            let (next, no_more) = lines.next_lines(queue.is_idle());
            let encoder = &*reader;
            for line in map_parallel(next, |line| line.and_then(|line| encoder.encode(line))) {
                let EncodedLine { parts, is_long, location } = line?;
                if is_long {
                    reader.long_texts.add(&location);
                }
                open.insert(queue.push(parts), location);
            }
            // Blank lines are done at once, and the next line may take time to arrive.
            write_done(&mut queue, &mut open, reader, &mut write)?;
            match no_more {
                Some(TryRecvError::Empty) => break,
                Some(TryRecvError::Disconnected) => has_ended = true,
                None => {}
            }
        }
        if queue.is_idle() && has_ended {
            return Ok(());
        }
        queue.step().map_err(|failed| match open.get(&failed.text) {
            Some(location) => anyhow!(failed.error).context(location.to_string()),
            None => failed.error.into(),
        })?;
        write_done(&mut queue, &mut open, reader, &mut write)?;
    }
}

/// Writes finished lines, up to the first unfinished one.
fn write_done(
    queue: &mut TranslationQueue<'_>,
    open: &mut BTreeMap<usize, Location>,
    reader: &mut LineReader<'_>,
    write: &mut impl FnMut(usize, TranslatedText) -> Result<()>,
) -> Result<()> {
    while let Some((number, translated)) = queue.pop() {
        let location = open.remove(&number).expect("finished lines were in the queue");
        reader.missing_terms.look_for(reader.translator, &translated, &location);
        write(number, translated)?;
    }
    Ok(())
}
