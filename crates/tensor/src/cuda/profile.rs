//! Where the GPU's time goes: with `HEEDFUL_CUDA_PROFILE=1` every launch and product is timed on the GPU by two events.
//! Costs time on the host, so nothing else is to be measured in such a run.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex};

use cudarc::driver::sys::{self as driver, CUevent};

use super::gpu::{expect, present};

/// The events of one piece of work.
struct Timed {
    name: String,
    events: [CUevent; 2],
}

// SAFETY: events may be used by any thread.
unsafe impl Send for Timed {}

static IS_ON: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os("HEEDFUL_CUDA_PROFILE").is_some_and(|value| value == "1"));
static TIMED: Mutex<Vec<Timed>> = Mutex::new(Vec::new());

/// Whether a profile is wanted.
pub(super) fn is_on() -> bool {
    *IS_ON
}

/// Does `work`, which queues something, and times it if a profile is wanted.
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

/// What was timed since the last call: name, how often, and milliseconds in all, the longest first.
pub fn take_profile() -> Vec<(String, usize, f64)> {
    let timed = std::mem::take(&mut *TIMED.lock().expect("profile lock"));
    if timed.is_empty() {
        return Vec::new();
    }
    present().wait();
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
    expect("cuEventRecord", unsafe { driver::cuEventRecord(event, present().stream) });
}
