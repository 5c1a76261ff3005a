//! `heedful translate`: text in, translations out, line by line and in order.

mod arguments;

mod lines;

mod attention;
mod output;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::tasks::translate::{Translation, Translator};

pub(crate) use self::arguments::Arguments;
use self::attention::AttentionFile;
use self::lines::Line;
use self::output::OutputWriter;
use crate::progress::Verbosity;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up("searching", Verbosity::Normal)?;
    let options = arguments.search_options();
    options.check()?;
    if arguments.output.is_some() && arguments.output == arguments.attention {
        bail!("--output and --attention name the same file: give each its own");
    }
    let mut writer = OutputWriter::open(arguments)?;
    let mut attention =
        arguments.attention.as_deref().map(|path| AttentionFile::create(path, arguments)).transpose()?;
    let translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    let lines = lines::read(arguments)?;
    translate(&translator, &options, &lines, |line, translation| {
        let maps = |target: &[u32]| translator.attend(&translation.source, target, &options);
        if let (Some(file), Some(best)) = (&mut attention, translation.outputs.first()) {
            file.add(line, &translator, &translation, &maps(&best.hypothesis.tokens)?);
        }
        let align = |target: &[u32]| -> Result<_> {
            Ok(translator.align(&maps(target)?, &translation.source, target))
        };
        writer.write(line, &translation, align)
    })?;
    if let Some(file) = attention {
        file.finish()?;
    }
    writer.finish()
}

/// Translates lines as they arrive and passes the translations to `write` in the order of the lines, each as soon as it
/// and all lines before it are done.
///
/// While sentences are being decoded, input is polled and never waited for: a producer that waits for a translation before
/// it sends its next line gets it.
fn translate(
    translator: &Translator,
    options: &SearchOptions,
    lines: &Receiver<Result<Line>>,
    mut write: impl FnMut(usize, Translation) -> Result<()>,
) -> Result<()> {
    let mut search = translator.search(options)?;
    let mut sources = BTreeMap::new();
    let mut done: BTreeMap<usize, Translation> = BTreeMap::new();
    let (mut next, mut has_ended) = (0, false);
    loop {
        while !has_ended && search.has_capacity() {
            let line = if search.is_idle() {
                lines.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                lines.try_recv()
            };
            match line {
                Ok(line) => {
                    let Line { number, text, location } = line?;
                    let source = translator.encode(&text);
                    if source.is_empty() {
                        done.insert(number, Translation::default());
                    } else {
                        search.push(number, source.clone()).with_context(|| location.to_string())?;
                        sources.insert(number, source);
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => has_ended = true,
            }
            while let Some(translation) = done.remove(&next) {
                write(next, translation)?;
                next += 1;
            }
        }
        if search.is_idle() && has_ended {
            return Ok(());
        }
        for (number, hypotheses) in search.step() {
            let source = sources.remove(&number).expect("every result belongs to a source that was pushed");
            done.insert(number, Translation { source, outputs: translator.outputs(hypotheses?) });
        }
        while let Some(translation) = done.remove(&next) {
            write(next, translation)?;
            next += 1;
        }
    }
}
