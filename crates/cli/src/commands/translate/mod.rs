//! `heedful translate`: text in, translations out, line by line and in order.

mod arguments;

mod lines;
mod prefixes;
mod read_ahead;
mod window;

mod joined;
mod missing_terms;
mod output;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, Result, anyhow};
use heedful::data::shortlist::Shortlist;
use heedful::data::text_limit::Part;
use heedful::decode::{Constraints, SearchInput, SearchOptions, UniqueSearch, attend_in};
use heedful::tasks::translate::{JoinError, Terms, Translator};

pub(crate) use self::arguments::Arguments;
use self::joined::{OpenLine, TranslatedLine};
use self::lines::{Line, Location};
use self::missing_terms::MissingTerms;
use self::output::OutputWriter;
use self::window::{Waiting, Window};
use crate::attention_file::AttendedTokens;
use crate::long_text::{Long, LongTexts, refused};
use crate::progress::{Bar, Verbosity, line_count};
use crate::results::Results;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up("searching", verbosity)?;
    let mut options = arguments.search_options();
    options.check()?;
    arguments.check()?;
    let long = arguments.long()?;
    let begun = arguments.shard.begin(|| arguments.work())?;
    let results = Results::open(begun, arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let Some(results) = results else { return Ok(()) };
    let mut attention =
        arguments.attention.create(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let terms = arguments.terms.as_deref().map(Terms::open).transpose()?.unwrap_or_default();
    let mut translator = open(arguments)?;
    if arguments.shortlist {
        options.shortlist = Some(shortlist(arguments, &translator)?);
    }
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let lines = lines::read(arguments, &results, long, translator.source_limit())?;
    let count = match results.shard() {
        Some(shard) => shard.lines(),
        None if arguments.text.is_empty() => line_count(arguments.file()),
        None => arguments.text.len(),
    };
    let mut writer = OutputWriter::new(arguments, results, &translator, &options)?;
    let mut reader = LineReader::new(&translator, long, &terms, verbosity);
    let bar = Bar::beside_results(verbosity, count, arguments.output.as_deref());
    let source = LineSource::new(arguments, &lines);
    translate(&mut reader, &options, &source, |line, translated| {
        bar.show(line + 1, 0.0, || format!("{} lines translated", line + 1));
        if let Some(file) = &mut attention
            && let Some(whole) = translated.whole()
            && let Some(best) = whole.outputs.first()
        {
            let mut pass = arguments.attention.pass(options.compute).without_heads(&options.without_heads);
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

/// The model, or the ensemble of all models that are named.
fn open(arguments: &Arguments) -> Result<Translator> {
    let models = arguments.models();
    let open = |folder: &&Path| Translator::open(folder);
    let translators = models.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    translators[0].model().check_heads(&arguments.without_head)?;
    Translator::join(translators).map_err(|error| match error {
        JoinError::Vocabulary { number, .. } => anyhow!("{}: {error}", models[number - 1].display()),
        JoinError::Empty => error.into(),
    })
}

/// The shortlist of the model.
fn shortlist(arguments: &Arguments, translator: &Translator) -> Result<Arc<Shortlist>> {
    let name = arguments.models()[0].display();
    translator.shortlist().cloned().with_context(|| {
        format!("{name} has no shortlist: learn one with heedful shortlist {name} --src FILE --tgt FILE")
    })
}

/// From lines to what the model reads of them.
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

    /// What is searched for: the parts, the first of which has the prefix of the line.
    fn inputs(&self, line: &Line, parts: &[Part]) -> Result<Vec<SearchInput>> {
        let mut prefix = self.prefix(line)?;
        let input = |part: &Part| {
            let mut constraints = Constraints { prefix: std::mem::take(&mut prefix), phrases: Vec::new() };
            if !self.terms.is_empty() {
                let text = self.translator.tokenizers().source.decode(&part.tokens);
                constraints.phrases = self.translator.constraints(&text, "", self.terms).phrases;
            }
            SearchInput { source: part.tokens.clone(), constraints }
        };
        Ok(parts.iter().map(input).collect())
    }

    /// The tokens that the translation of a line begins with.
    fn prefix(&self, line: &Line) -> Result<Vec<u32>> {
        let Some(prefix) = line.prefix.as_ref().filter(|prefix| !prefix.text.trim().is_empty()) else {
            return Ok(Vec::new());
        };
        let encode = |text: &str| self.translator.encode_target(text);
        let tokens = self.translator.target_limit().encode(&prefix.text, encode);
        tokens.map_err(|error| refused(&prefix.location, error, "--max-tokens N"))
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

/// Where lines come from.
struct LineSource<'l> {
    lines: &'l Receiver<Result<Line>>,
    /// Whether nobody waits for an answer before the next line comes, so that it may be waited for.
    is_complete: bool,
}

impl<'l> LineSource<'l> {
    fn new(arguments: &Arguments, lines: &'l Receiver<Result<Line>>) -> LineSource<'l> {
        let is_complete = !arguments.text.is_empty() || arguments.file().is_some_and(Path::is_file);
        LineSource { lines, is_complete }
    }

    /// The next line, if it is there or nothing else is to be done.
    fn next(&self, is_idle: bool) -> Result<Result<Line>, TryRecvError> {
        if is_idle || self.is_complete {
            self.lines.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.lines.try_recv()
        }
    }
}

/// Translates lines as they arrive and passes the translations to `write` in the order of the lines, each as soon as it
/// and all lines before it are done. Lines that are equal are decoded once, and long ones first.
///
/// While sentences are being decoded, input is polled and never waited for: a producer that waits for a translation before
/// it sends its next line gets it.
fn translate(
    reader: &mut LineReader<'_>,
    options: &SearchOptions,
    lines: &LineSource<'_>,
    mut write: impl FnMut(usize, TranslatedLine) -> Result<()>,
) -> Result<()> {
    let translator = reader.translator;
    let mut search = UniqueSearch::new(&translator.ensemble(), options)?;
    let mut window = Window::default();
    // What is searched for, by its ticket.
    let mut searched: BTreeMap<usize, ((usize, usize), Location, Constraints)> = BTreeMap::new();
    let mut open: BTreeMap<usize, OpenLine> = BTreeMap::new();
    let mut done: BTreeMap<usize, TranslatedLine> = BTreeMap::new();
    let (mut tickets, mut next, mut has_ended) = (0.., 0, false);
    loop {
        if window.is_empty() && search.has_capacity() {
            while !has_ended && !window.is_full() {
                match lines.next(search.is_idle() && window.is_empty()) {
                    Ok(line) => {
                        let line = line?;
                        let parts = reader.parts(&line)?;
                        if parts.is_empty() {
                            done.insert(line.number, TranslatedLine::default());
                            continue_writing(&mut done, &mut next, &mut write)?;
                            continue;
                        }
                        for (part, input) in reader.inputs(&line, &parts)?.into_iter().enumerate() {
                            let (place, location) = ((line.number, part), line.location.clone());
                            window.add(Waiting { place, location, input });
                        }
                        open.insert(line.number, OpenLine::new(parts));
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => has_ended = true,
                }
            }
            window.order();
        }
        while search.has_capacity()
            && let Some(Waiting { place, location, input }) = window.take()
            && let Some(ticket) = tickets.next()
        {
            let constraints = input.constraints.clone();
            search.push(ticket, input).with_context(|| location.to_string())?;
            searched.insert(ticket, (place, location, constraints));
        }
        if search.is_idle() && window.is_empty() && has_ended {
            return Ok(());
        }
        for (ticket, hypotheses) in search.step() {
            let ((number, part), location, constraints) =
                searched.remove(&ticket).expect("every result belongs to a part that was pushed");
            let hypotheses = hypotheses?;
            reader.missing_terms.look_for(translator, &constraints, &hypotheses, &location);
            let line = open.get_mut(&number).expect("a line is open until its last part is done");
            if let Some(translated) = line.add(part, translator.outputs(hypotheses)) {
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
