//! Processes chunks on several threads, with results in the order of reading.

use std::panic;
use std::thread;

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

#[cfg(test)]
mod tests {
    use super::*;

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
