//! The worker of a model that says texts: one search for the sentences of all clients.
//!
//! ```text
//! take      items from the orders in turn, while the search has room
//! give up   those whose clients have gone
//! step      one token for every hypothesis of every sentence
//! hand out  what is done, and how far the others are
//! explain   at most one sentence between two steps, so that nobody waits long for somebody else's weights
//! ```

use std::collections::VecDeque;
use std::time::Instant;

use heedful::decode::DecodeError;
use heedful::decode::{Hypothesis, Search};
use heedful::explain::{ExplainedSource, Explanation};
use heedful::models::Generate;
use heedful::tasks::translate::{Output, Translation};

use super::desk::{AtWork, Desk};
use super::queue::Queue;
use super::worker::{Tuning, surviving};
use super::{Answer, Detail, Failure, Task};
use crate::models::Engine;

/// Works until the queue is closed and all is done. What goes wrong with a sentence is the end of its order alone.
pub(super) fn work(
    (engine, model): (&Engine, &dyn Generate),
    queue: &Queue,
    tuning: &Tuning,
    desk: &mut Desk<'_>,
) -> Result<(), DecodeError> {
    let mut search = Search::new(model, &tuning.options)?;
    let mut to_explain: VecDeque<(usize, Vec<Hypothesis>)> = VecDeque::new();
    // Sentences that were at work in the last step.
    let mut company = 1;
    loop {
        if desk.is_empty() {
            let Some(task) = queue.wait() else { return Ok(()) };
            take_up(task, &mut search, desk);
            // Who was just answered may ask again at once: those who were together stay together.
            queue.wait_for(company - 1, tuning.batch_wait);
        }
        while search.has_room()
            && let Some(task) = queue.take()
        {
            take_up(task, &mut search, desk);
        }
        for number in desk.remove_abandoned() {
            search.cancel(number);
            to_explain.retain(|(explained, _)| *explained != number);
        }
        if !search.is_idle() {
            company = desk.len();
            desk.metrics.steps.add(1);
            desk.metrics.step_sentences.add(company as u64);
            for (number, hypotheses) in search.step() {
                match (hypotheses, desk.get(number).map(|at_work| at_work.task.ticket.detail)) {
                    (Err(error), _) => desk.fail(number, Failure::Broken(error.to_string())),
                    (Ok(hypotheses), Some(Detail::Explained(_))) => {
                        to_explain.push_back((number, hypotheses));
                    }
                    (Ok(hypotheses), Some(Detail::Text)) => say(engine, number, hypotheses, desk),
                    (Ok(_), None) => {}
                }
            }
            tell_progress(engine, &search, desk);
        }
        if let Some((number, hypotheses)) = to_explain.pop_front() {
            explain(engine, tuning, number, hypotheses, desk);
        }
    }
}

fn take_up(task: Task, search: &mut Search<'_>, desk: &mut Desk<'_>) {
    if task.content.tokens.is_empty() {
        let answer = unspoken(&task);
        task.ticket.done(task.item, answer, Instant::now());
        return;
    }
    let (tokens, options) = (task.content.tokens.clone(), task.ticket.options.clone());
    let number = desk.add(task);
    if let Err(error) = search.push_with(number, tokens, options) {
        desk.fail(number, Failure::Unreadable(error.to_string()));
    }
}

/// What has nothing to translate stays as it is.
fn unspoken(task: &Task) -> Answer {
    let text = task.content.text.clone();
    match task.ticket.detail {
        Detail::Text => {
            let hypothesis = Hypothesis { tokens: Vec::new(), score: 0.0, log_probability: 0.0 };
            Answer::Said(vec![Output { text, hypothesis }])
        }
        Detail::Explained(_) => {
            let source = ExplainedSource { text, tokens: Vec::new() };
            Answer::Explained(Box::new(Explanation { source, outputs: Vec::new() }))
        }
    }
}

fn say(engine: &Engine, number: usize, hypotheses: Vec<Hypothesis>, desk: &mut Desk<'_>) {
    let Some(at_work) = desk.get(number) else { return };
    count(at_work, &hypotheses, desk);
    let outputs = outputs(engine, at_work, hypotheses);
    desk.done(number, Answer::Said(outputs));
}

fn explain(
    engine: &Engine,
    tuning: &Tuning,
    number: usize,
    hypotheses: Vec<Hypothesis>,
    desk: &mut Desk<'_>,
) {
    let Some(at_work) = desk.get(number) else { return };
    count(at_work, &hypotheses, desk);
    let outputs = outputs(engine, at_work, hypotheses);
    let (Engine::Translator(translator), Detail::Explained(form)) = (engine, at_work.task.ticket.detail)
    else {
        return desk.done(number, Answer::Said(outputs));
    };
    let content = &at_work.task.content;
    let translation = Translation { source: content.tokens.clone(), outputs };
    let explain = || Explanation::new(translator, &content.text, &translation, form, &tuning.options);
    match surviving(desk.metrics, explain) {
        Ok(explanation) => desk.done(number, Answer::Explained(Box::new(explanation))),
        Err(failure) => desk.fail(number, failure),
    }
}

fn outputs(engine: &Engine, at_work: &AtWork, hypotheses: Vec<Hypothesis>) -> Vec<Output> {
    let source = &at_work.task.content.tokens;
    let output =
        |hypothesis: Hypothesis| Output { text: engine.decode(source, &hypothesis.tokens), hypothesis };
    hypotheses.into_iter().map(output).collect()
}

fn count(at_work: &AtWork, hypotheses: &[Hypothesis], desk: &Desk<'_>) {
    desk.metrics.sentences.add(1);
    desk.metrics.source_tokens.add(at_work.task.content.tokens.len() as u64);
    desk.metrics.target_tokens.add(hypotheses.first().map_or(0, |best| best.tokens.len() as u64));
}

fn tell_progress(engine: &Engine, search: &Search<'_>, desk: &Desk<'_>) {
    for (number, at_work) in desk.watched() {
        if let Some(said) = search.so_far(number) {
            let text = engine.decode(&at_work.task.content.tokens, &said);
            // Bytes of a character that is not complete yet.
            let text = text.trim_end_matches('\u{FFFD}').to_owned();
            at_work.task.ticket.partial(at_work.task.item, text);
        }
    }
}
