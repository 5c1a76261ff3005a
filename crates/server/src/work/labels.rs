//! The worker of a classifier: texts of all clients side by side.

use heedful::tasks::classify::Classifier;

use super::desk::Desk;
use super::queue::Queue;
use super::worker::Tuning;
use super::{Answer, Failure};

/// Texts that are read together, at most.
const TOGETHER: usize = 64;

/// Works until the queue is closed and all is done.
pub(super) fn work(classifier: &Classifier, queue: &Queue, tuning: &Tuning, desk: &mut Desk<'_>) {
    let mut company = 1;
    while let Some(task) = queue.wait() {
        queue.wait_for(company - 1, tuning.batch_wait);
        let mut numbers = vec![desk.add(task)];
        while numbers.len() < TOGETHER
            && let Some(task) = queue.take()
        {
            numbers.push(desk.add(task));
        }
        desk.remove_abandoned();
        numbers.retain(|&number| desk.get(number).is_some());
        company = numbers.len().max(1);
        desk.metrics.steps.add(1);
        desk.metrics.step_sentences.add(numbers.len() as u64);
        let texts: Vec<&str> = numbers
            .iter()
            .filter_map(|&number| desk.get(number))
            .map(|at_work| at_work.task.content.text.as_str())
            .collect();
        let together = if texts.is_empty() {
            Ok(Vec::new())
        } else {
            classifier.classify(&texts, tuning.options.compute)
        };
        match together {
            Ok(found) => {
                for (number, found) in numbers.into_iter().zip(found) {
                    answer(number, Ok(found), desk);
                }
            }
            // One of them cannot be read: each for itself, and only that one fails.
            Err(_) => {
                for number in numbers {
                    let Some(at_work) = desk.get(number) else { continue };
                    let found = classifier.classify(&[&at_work.task.content.text], tuning.options.compute);
                    let found = found.map(|mut found| found.remove(0)).map_err(|error| error.to_string());
                    answer(number, found, desk);
                }
            }
        }
    }
}

fn answer(number: usize, found: Result<heedful::tasks::classify::Classified, String>, desk: &mut Desk<'_>) {
    let Some(at_work) = desk.get(number) else { return };
    desk.metrics.sentences.add(1);
    desk.metrics.source_tokens.add(at_work.task.content.tokens.len() as u64);
    match found {
        Ok(found) => desk.done(number, Answer::Labelled(found)),
        Err(sentence) => desk.fail(number, Failure::Unreadable(sentence)),
    }
}
