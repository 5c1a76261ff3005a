//! A profile of the GPU's time: with `HEEDFUL_CUDA_PROFILE=1` every launch and product is timed on the GPU by
//! two events. This slows the host down, so measure nothing else in such a run.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex};

use cudarc::driver::sys::{self as driver, CUevent};

use super::gpu::{active_gpu, expect};

/// The events around one command.
struct Timed {
    name: String,
    events: [CUevent; 2],
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Timed {}

static IS_ON: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("HEEDFUL_CUDA_PROFILE").is_some_and(|value| value == "1"));
static TIMED: Mutex<Vec<Timed>> = Mutex::new(Vec::new());

/// Whether profiling is on.
pub(super) fn is_on() -> bool {
    *IS_ON
}

/// Runs `work`, which submits a command, and times it if profiling is on.
pub(super) fn around(name: impl FnOnce() -> String, work: impl FnOnce()) {
    if !*IS_ON {
        return work();
    }
    let events = [event(), event()];
    record(events[0]);
    work();
    record(events[1]);
    TIMED.lock().expect("profile lock").push(Timed { name: name(), events });
}

/// Timings since the last call, longest first: name, count, total milliseconds.
pub fn take_profile() -> Vec<(String, usize, f64)> {
    let timed = std::mem::take(&mut *TIMED.lock().expect("profile lock"));
    if timed.is_empty() {
        return Vec::new();
    }
    active_gpu().wait();
    let mut totals: HashMap<String, (usize, f64)> = HashMap::new();
    for Timed { name, events: [before, after] } in timed {
        let mut milliseconds = 0.0;
        // SAFETY: both events were recorded, and all work is done.
        unsafe {
            expect("cuEventElapsedTime", driver::cuEventElapsedTime_v2(&mut milliseconds, before, after));
            driver::cuEventDestroy_v2(before);
            driver::cuEventDestroy_v2(after);
        }
        let total = totals.entry(name).or_default();
        *total = (total.0 + 1, total.1 + f64::from(milliseconds));
    }
    let mut totals: Vec<_> = totals.into_iter().map(|(name, (count, total))| (name, count, total)).collect();
    totals.sort_by(|a, b| b.2.total_cmp(&a.2));
    totals
}

fn event() -> CUevent {
    let mut event = ptr::null_mut();
    // SAFETY: the pointer is to a local.
    expect("cuEventCreate", unsafe { driver::cuEventCreate(&mut event, 0) });
    event
}

fn record(event: CUevent) {
    // SAFETY: the event was just created.
    expect("cuEventRecord", unsafe { driver::cuEventRecord(event, active_gpu().stream) });
}
