//! Runs the program as a process with a time limit.

use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use heedful::system::Signal;

/// Long enough for the slowest machine; only failing tests wait so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(5);

/// The program, with piped output and without input. Signal actions are reset to their defaults, because the
/// tests may have been started with some signals ignored, as shells do for background jobs.
pub(crate) fn program() -> Command {
    with_default_signals(env!("CARGO_BIN_EXE_heedful"))
}

/// As [`program`], for another program.
pub(crate) fn with_default_signals(program: &str) -> Command {
    let ignored = Signal::ALL.into_iter().any(Signal::is_ignored);
    let mut command = if ignored { Command::new("env") } else { Command::new(program) };
    if ignored {
        static CAN_RESET: OnceLock<bool> = OnceLock::new();
        let try_it = || Command::new("env").args([RESET, "true"]).finish().status.success();
        assert!(
            *CAN_RESET.get_or_init(try_it),
            "the tests were started with signals ignored, and `env {RESET}` does not work here: install GNU coreutils 8.31 or newer, \
             or start the tests in the foreground"
        );
        command.args([RESET, program]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const RESET: &str = "--default-signal=HUP,INT,QUIT,TERM";

/// A process that is killed if it takes longer than [`PATIENCE`], or when the test ends.
pub(crate) struct Running {
    what: String,
    child: Arc<Mutex<Child>>,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    started: Instant,
    /// Dropping it stops the watchdog thread.
    _watch: Sender<()>,
}

impl Running {
    fn start(command: &mut Command) -> Running {
        let words = command.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
        let what = format!("{} {}", command.get_program().display(), words.join(" "));
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{what} does not start: {error}"));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let (watch, over) = channel();
        let (watched, name) = (child.clone(), what.clone());
        thread::spawn(move || {
            if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // This also ends the threads that read its output.
                eprintln!("killed, because it did not end within {PATIENCE:?}: {name}");
                let _ = locked(&watched).kill();
            }
        });
        Running { what, child, stdin, stdout, stderr, started: Instant::now(), _watch: watch }
    }

    pub(crate) fn id(&self) -> u32 {
        locked(&self.child).id()
    }

    pub(crate) fn kill(&mut self) {
        locked(&self.child).kill().expect("a process to kill");
    }

    /// The exit status, if it has ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        locked(&self.child).try_wait().expect("a process")
    }

    /// Closes its input and waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        drop(self.stdin.take());
        loop {
            if let Some(status) = self.status() {
                assert!(self.started.elapsed() < PATIENCE, "it took too long: {}", self.what);
                return status;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits for its end, and returns its output.
    pub(crate) fn output(mut self) -> Output {
        drop(self.stdin.take());
        let (stdout, stderr) = (read(self.stdout.take()), read(self.stderr.take()));
        let status = self.ended();
        let written = |reader: thread::JoinHandle<Vec<u8>>| reader.join().expect("its output ends with it");
        Output { status, stdout: written(stdout), stderr: written(stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = locked(&self.child);
        let _ = child.kill();
        // A killed process ends.
        let _ = child.wait();
    }
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Runs a command with a time limit.
pub(crate) trait Bounded {
    /// Starts it.
    fn running(&mut self) -> Running;

    /// Runs it to its end.
    fn finish(&mut self) -> Output {
        self.running().output()
    }
}

impl Bounded for Command {
    fn running(&mut self) -> Running {
        Running::start(self)
    }
}

/// Sends a signal to a process.
pub(crate) fn send(running: &Running, signal: i32) {
    let kill = Command::new("kill").args([format!("-{signal}"), running.id().to_string()]).finish();
    assert!(kill.status.success(), "kill is there");
}
