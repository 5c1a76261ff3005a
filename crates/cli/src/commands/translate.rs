//! `heedful translate`: text in, translations out, line by line and in order.

mod arguments;
mod attention;
mod lines;
mod output;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, TryRecvError};

use anyhow::{Context, Result};
use heedful::decode::SearchOptions;
use heedful::tasks::translate::{Translation, Translator};
use heedful::tensor::cpu::threads;

pub(crate) use self::arguments::{Arguments, compute};
use self::attention::AttentionFile;
use self::lines::Line;
use self::output::Sink;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let options = arguments.search_options();
    options.check()?;
    let translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    let lines = lines::read(arguments)?;
    let mut sink = Sink::open(arguments)?;
    let mut attention = arguments.attention.as_deref().map(AttentionFile::create).transpose()?;
    translate(&translator, &options, &lines, |line, translation| {
        let maps = |target: &[u32]| translator.attend(&translation.source, target, &options);
        if let (Some(file), Some(best)) = (&mut attention, translation.outputs.first()) {
            file.add(line, &translator, &translation, &maps(&best.hypothesis.tokens)?)?;
        }
        let align = |target: &[u32]| -> Result<_> {
            Ok(translator.align(&maps(target)?, &translation.source, target))
        };
        sink.write(line, &translation, align)
    })?;
    if let Some(file) = attention {
        file.finish()?;
    }
    sink.finish()
}

/// Translates lines as they come and hands the translations out in their order, each as soon as it and all before it
/// are there. A producer that waits for an answer before it sends its next line gets one.
fn translate(
    translator: &Translator,
    options: &SearchOptions,
    lines: &Receiver<Result<Line>>,
    mut take: impl FnMut(usize, Translation) -> Result<()>,
) -> Result<()> {
    let mut search = translator.search(options)?;
    let mut sources = BTreeMap::new();
    let mut done: BTreeMap<usize, Translation> = BTreeMap::new();
    let (mut next, mut is_over) = (0, false);
    loop {
        while !is_over && search.has_room() {
            let line = if search.is_idle() {
                lines.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                lines.try_recv()
            };
            match line {
                Ok(line) => {
                    let Line { number, text, place } = line?;
                    let source = translator.encode(&text);
                    if source.is_empty() {
                        done.insert(number, Translation::default());
                    } else {
                        search.push(number, source.clone()).with_context(|| place.to_string())?;
                        sources.insert(number, source);
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => is_over = true,
            }
            while let Some(translation) = done.remove(&next) {
                take(next, translation)?;
                next += 1;
            }
        }
        if search.is_idle() && is_over {
            return Ok(());
        }
        for (number, hypotheses) in search.step() {
            let source = sources.remove(&number).expect("what was found was pushed");
            done.insert(number, Translation { source, outputs: translator.outputs(hypotheses?) });
        }
        while let Some(translation) = done.remove(&next) {
            take(next, translation)?;
            next += 1;
        }
    }
}
