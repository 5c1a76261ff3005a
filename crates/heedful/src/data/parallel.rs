//! Processes items on several threads, with results in order.

use std::panic;
use std::sync::Mutex;
use std::thread;

use heedful_tensor::cpu::threads;

/// The number of pairs in a chunk. Fixed: results must not depend on the number of threads.
pub(crate) const CHUNK: usize = 8192;

/// Reads a chunk for each of `states`, processes them in parallel while the next ones are read, and consumes
/// the results in order. The number of threads is the number of states.
pub(crate) fn map_chunks<S: Send, T: Send, R: Send, E>(
    states: &mut [S],
    mut read: impl FnMut() -> Result<Option<T>, E>,
    work: impl Fn(&mut S, T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = states.len();
    let mut read_group = || -> Result<Vec<T>, E> {
        let mut group = Vec::with_capacity(threads);
        while group.len() < threads {
            match read()? {
                Some(chunk) => group.push(chunk),
                None => break,
            }
        }
        Ok(group)
    };
    let mut group = read_group()?;
    while !group.is_empty() {
        let work = &work;
        let (results, next_group) = thread::scope(|scope| {
            let running: Vec<_> = states
                .iter_mut()
                .zip(group)
                .map(|(state, chunk)| scope.spawn(move || work(state, chunk)))
                .collect();
            let next_group = read_group();
            let finished = running.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => panic::resume_unwind(panic),
            });
            (finished.collect::<Vec<R>>(), next_group)
        });
        for result in results {
            take(result)?;
        }
        group = next_group?;
    }
    Ok(())
}

/// The result of `work` for each item, computed by the threads of the pool.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    /// Items of a task.
    const TASK: usize = 16;
    let mut items = items.into_iter();
    let tasks: Vec<(Vec<T>, Vec<R>)> =
        (0..items.len().div_ceil(TASK)).map(|_| (items.by_ref().take(TASK).collect(), Vec::new())).collect();
    let tasks: Vec<_> = tasks.into_iter().map(Mutex::new).collect();
    threads::parallel(tasks.len(), |number| {
        let mut task = tasks[number].lock().expect("only one thread locks it");
        let items = std::mem::take(&mut task.0);
        task.1 = items.into_iter().map(&work).collect();
    });
    tasks.into_iter().flat_map(|task| task.into_inner().expect("no task has panicked").1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, 15, 16, 17, 1000] {
            let doubled = map((0..count).collect(), |number: i32| 2 * number);
            assert_eq!(doubled, (0..count).map(|number| 2 * number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_come_in_the_order_of_reading_for_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let mut numbers = 0..23;
            let mut squares = Vec::new();
            let mut states = vec![0; threads];
            map_chunks(
                &mut states,
                || Ok::<_, ()>(numbers.next()),
                |count, number| {
                    *count += 1;
                    number * number
                },
                |square| {
                    squares.push(square);
                    Ok(())
                },
            )
            .expect("nothing fails");
            assert_eq!(squares, (0..23).map(|number| number * number).collect::<Vec<_>>());
            assert_eq!(states.iter().sum::<i32>(), 23);
        }
    }
}
