//! Runs the program with a time limit.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any run here takes on a busy machine; a deadlocked run is killed.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn is_good(&self) -> bool {
        self.status == Some(0)
    }

    /// The fault of a run that ended in a way that is never allowed; `None` for results and for error
    /// messages.
    pub(crate) fn fault(&self) -> Option<String> {
        let last = || self.stderr.lines().last().unwrap_or_default().to_owned();
        match self.status {
            None => Some(format!("no end within {} s, or killed by a signal: {}", LIMIT.as_secs(), last())),
            _ if self.stderr.contains("panicked at") => Some(format!("panicked: {}", self.stderr.trim())),
            Some(0) => None,
            Some(1 | 2) if !self.stderr.trim().is_empty() => None,
            Some(status) => Some(format!("status {status} without a reason: {}", last())),
        }
    }
}

/// A folder, and the program that runs in it.
pub(crate) struct Workplace {
    pub(crate) folder: PathBuf,
    program: PathBuf,
}

impl Workplace {
    /// Uses the program of this build, or the one named by `HEEDFUL_MATRIX_OF`.
    pub(crate) fn new(folder: PathBuf) -> Workplace {
        let named = std::env::var_os("HEEDFUL_MATRIX_OF").map(PathBuf::from);
        Workplace::of(folder, named.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_heedful"))))
    }

    pub(crate) fn of(folder: PathBuf, program: PathBuf) -> Workplace {
        Workplace { folder, program }
    }

    /// The program with these arguments, on one thread.
    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args(arguments).env("HEEDFUL_THREADS", "1").stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, or to the limit.
    pub(crate) fn run(&self, arguments: &[String]) -> Ended {
        self.limited(&mut self.command(arguments))
    }

    /// Runs a command to its end, or to the limit.
    pub(crate) fn limited(&self, command: &mut Command) -> Ended {
        let paths = ["stdout", "stderr"].map(|name| self.folder.join(format!(".{name}")));
        let [stdout, stderr] =
            [&paths[0], &paths[1]].map(|path| File::create(path).expect("room on the disk"));
        let mut child = command.stdout(stdout).stderr(stderr).spawn().expect("the program starts");
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status.code();
            }
            if begin.elapsed() > LIMIT {
                child.kill().expect("a child");
                child.wait().expect("a child");
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] =
            paths.map(|path| String::from_utf8_lossy(&fs::read(path).expect("the output")).into_owned());
        Ended { status, stdout, stderr }
    }
}
