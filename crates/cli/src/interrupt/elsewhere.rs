//! Ctrl-C on systems that have no signals to wait for.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Calls `arrived` with the number of every signal that asks the process to end.
pub(super) fn listen(arrived: fn(i32)) -> io::Result<()> {
    let mut flags = Vec::new();
    for signal in [SIGINT, SIGTERM] {
        let flag = Arc::new(AtomicBool::new(false));
        flag::register(signal, flag.clone())?;
        flags.push((signal, flag));
    }
    let look = move || loop {
        for (signal, flag) in &flags {
            if flag.swap(false, Ordering::Relaxed) {
                arrived(*signal);
            }
        }
        thread::sleep(LOOK_EVERY);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(look)?;
    Ok(())
}
