//! Teams: the threads divided among independent computations.
//!
//! A decoding step of few sentences cannot use all cores of a server: it has dozens of parallel regions, and
//! each costs a synchronization of all threads. [`in_teams`] runs several computations at once, each on
//! threads of its own, whose parallel regions synchronize only the threads of their team. A team has a pool
//! of workers and a share of the buffer pool, so teams wait for nobody.

use std::cell::Cell;
use std::sync::OnceLock;

use super::pool::Pool;
use super::{
    IN_COMPUTATION, INSIDE_TASK, MAX_THREADS, TaskKind, configured_threads, is_inside_task, priority,
};

/// Runs `computation(0) … computation(count - 1)`, as many at once as there are threads, each on
/// `thread_count() / count` threads, at least one: parallel regions inside a computation use these. Inside a
/// task or a team, and while another thread uses the pool, they run one after the other.
///
/// # Panics
/// If a computation panics: the panic reaches the caller after the other computations have finished.
pub fn in_teams(count: usize, computation: impl Fn(usize) + Sync) {
    let size = (available_threads() / count.max(1)).max(1);
    let task = |number| {
        let team = Team { number: number + 1, size };
        let _restore = Restore {
            team: TEAM.replace(Some(team)),
            is_computation: IN_COMPUTATION.replace(size == 1),
            // A task of a team with workers may have parallel regions.
            inside: if size == 1 { INSIDE_TASK.get() } else { INSIDE_TASK.replace(None) },
        };
        computation(number);
    };
    let can_divide = !is_inside_task() && TEAM.get().is_none() && count <= MAX_THREADS;
    if !can_divide || !super::spread(count, &task, TaskKind::Computation) {
        (0..count).for_each(computation);
    }
}

/// How many threads [`in_teams`] can divide: one inside a task or a team, and one for work with a
/// [priority](super::with_priority) that yields, since it yields between tasks.
pub fn available_threads() -> usize {
    let is_divided = is_inside_task() || TEAM.get().is_some();
    if is_divided || priority::priority().is_some() { 1 } else { configured_threads() }
}

/// The number of this thread's team; 0 for threads in no team.
pub(crate) fn team_number() -> usize {
    TEAM.get().map_or(0, |team| team.number)
}

/// The number of threads of this thread's team, if it is in one.
pub(super) fn team_size() -> Option<usize> {
    TEAM.get().map(|team| team.size)
}

/// Makes this worker a member of a team.
pub(super) fn join(number: usize) {
    if number > 0 {
        TEAM.set(Some(Team { number, size: 1 }));
    }
}

/// The pool of this thread's team, or of the process.
pub(super) fn pool() -> &'static Pool {
    static POOL: Pool = Pool::new(0);
    static OF_TEAMS: [OnceLock<&'static Pool>; MAX_THREADS] = [const { OnceLock::new() }; MAX_THREADS];
    match TEAM.get() {
        None => &POOL,
        // Workers use a pool for ever.
        Some(team) => OF_TEAMS[team.number - 1].get_or_init(|| Box::leak(Box::new(Pool::new(team.number)))),
    }
}

#[derive(Clone, Copy)]
struct Team {
    /// Counted from 1.
    number: usize,
    size: usize,
}

/// What a thread was before it computed for a team.
struct Restore {
    team: Option<Team>,
    is_computation: bool,
    inside: Option<usize>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        TEAM.set(self.team);
        IN_COMPUTATION.set(self.is_computation);
        INSIDE_TASK.set(self.inside);
    }
}

thread_local! {
    static TEAM: Cell<Option<Team>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{parallel, set_thread_count, thread_count};
    use super::*;

    #[test]
    fn every_task_of_every_team_runs_once() {
        for (threads, teams) in [(1, 3), (2, 2), (4, 2), (5, 3), (6, 1), (2, 7)] {
            set_thread_count(threads);
            let counts: Vec<AtomicUsize> = (0..teams * 50).map(|_| AtomicUsize::new(0)).collect();
            in_teams(teams, |team| {
                for _ in 0..20 {
                    parallel(50, |task| _ = counts[team * 50 + task].fetch_add(1, Ordering::Relaxed));
                }
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 20), "{threads}, {teams}");
            assert_eq!((team_number(), is_inside_task()), (0, false));
        }
    }

    #[test]
    fn a_panic_of_one_team_reaches_the_caller_and_teams_still_work() {
        set_thread_count(4);
        let failed = std::panic::catch_unwind(|| {
            in_teams(2, |team| parallel(8, |task| assert!(team != 1 || task != 5, "on purpose")));
        });
        assert!(failed.is_err() && team_number() == 0);
        let done = AtomicUsize::new(0);
        in_teams(2, |_| parallel(8, |_| _ = done.fetch_add(1, Ordering::Relaxed)));
        assert_eq!(done.into_inner(), 16);
        assert!(thread_count() >= 1);
    }
}
