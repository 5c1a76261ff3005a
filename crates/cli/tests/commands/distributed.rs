//! `heedful train --distributed mpi` under real launchers: the same bytes on any number of ranks with any
//! MPI.
//!
//! Ignored by default, because they need Open MPI and MPICH: `cargo xtask test` installs both and
//! names their folders.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Bounded, Running, Workplace, text, with_default_signals};

/// A launcher and its library.
#[derive(Clone, Copy)]
enum Mpi {
    Open,
    /// MPICH with its own ABI.
    Mpich,
    /// MPICH with the ABI of the MPI 5 standard.
    Standard,
}

impl Mpi {
    fn folder(self) -> PathBuf {
        let name = match self {
            Mpi::Open => "HEEDFUL_TEST_OPENMPI",
            Mpi::Mpich | Mpi::Standard => "HEEDFUL_TEST_MPICH",
        };
        env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask test`")).into()
    }

    /// The program with this number of ranks, in the folder of a workplace.
    fn command(self, place: &Workplace, ranks: usize, arguments: &str) -> Command {
        let launcher = self.folder().join("bin/mpirun");
        let mut command = with_default_signals(launcher.to_str().expect("a name in UTF-8"));
        command.current_dir(place.path("")).args(["-n", &ranks.to_string()]);
        match self {
            Mpi::Open => command.args(["--oversubscribe", "--bind-to", "none", "--allow-run-as-root"]),
            Mpi::Mpich => command.env("HEEDFUL_MPI", self.folder().join("lib/libmpi.so.12")),
            Mpi::Standard => command.env("HEEDFUL_MPI", self.folder().join("lib/libmpi_abi.so.1")),
        };
        command.arg(env!("CARGO_BIN_EXE_heedful")).args(arguments.split_whitespace());
        command
    }

    fn run(self, place: &Workplace, ranks: usize, arguments: &str) -> Output {
        self.command(place, ranks, arguments).finish()
    }
}

fn training(more: &str) -> String {
    let options = "--ema 0.9 --accumulate 8 --batch-tokens 128 --steps 20 --validation-every 10";
    Workplace::training("run", &format!("{options} {more}"))
}

/// The last checkpoint and the model, as bytes; the run's folder is removed.
fn taken(place: &Workplace) -> (Vec<u8>, Vec<u8>) {
    let files =
        (place.read("run/checkpoints/step-00000020.safetensors"), place.read("run/model.safetensors"));
    fs::remove_dir_all(place.path("run")).expect("a run");
    files
}

fn succeeded(output: &Output, what: &str) {
    assert!(output.status.success(), "{what}: {}\n{}", text(&output.stdout), text(&output.stderr));
}

#[test]
#[ignore = "it needs MPI"]
fn checkpoints_have_the_same_bytes_on_any_number_of_ranks_of_any_mpi() {
    let place = Workplace::new(400);
    place.good(&training(""));
    let alone = taken(&place);
    for (mpi, ranks, name) in [
        (Mpi::Open, 1, "Open MPI, 1 rank"),
        (Mpi::Open, 2, "Open MPI, 2 ranks"),
        (Mpi::Open, 4, "Open MPI, 4 ranks"),
        (Mpi::Mpich, 2, "MPICH, 2 ranks"),
        (Mpi::Standard, 2, "MPICH by the standard's ABI, 2 ranks"),
    ] {
        succeeded(&mpi.run(&place, ranks, &training("--distributed mpi -q")), name);
        let together = taken(&place);
        assert!(together.0 == alone.0, "{name}: other checkpoints");
        assert!(together.1 == alone.1, "{name}: other models");
    }
}

#[test]
#[ignore = "it needs MPI"]
fn a_run_that_loses_a_rank_ends_and_is_resumed_with_fewer() {
    let place = Workplace::new(400);
    place.good(&training(""));
    let alone = taken(&place);
    let more = "--distributed mpi -q --checkpoint-every 2";
    let mut job = Mpi::Open.command(&place, 4, &training(more)).running();
    let checkpoint = place.path("run/checkpoints/step-00000004.safetensors");
    while !checkpoint.exists() {
        assert!(job.status().is_none(), "it ended before it was killed");
        sleep(Duration::from_millis(2));
    }
    kill_one_rank(&job);
    let output = job.output();
    assert!(!output.status.success(), "a lost rank is no success");
    assert!(
        !place.path("run/checkpoints/step-00000020.safetensors").exists(),
        "it ended before it was killed"
    );
    let resumed = "train --resume run --distributed mpi -q";
    succeeded(&Mpi::Open.run(&place, 2, resumed), "resumed on 2 ranks");
    assert!(taken(&place) == alone, "a resumed run ends with other bytes");
}

/// Kills one of the processes started by mpirun, but not the first.
fn kill_one_rank(job: &Running) {
    let pids = |parent: u32| -> Vec<u32> {
        let children = Path::new("/proc").join(parent.to_string()).join("task").join(parent.to_string());
        let list = fs::read_to_string(children.join("children")).unwrap_or_default();
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    let mut ranks = Vec::new();
    let mut above = vec![job.id()];
    while let Some(process) = above.pop() {
        for child in pids(process) {
            let program = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
            if program == Path::new(env!("CARGO_BIN_EXE_heedful")) {
                ranks.push(child);
            } else {
                above.push(child);
            }
        }
    }
    let last = ranks.iter().max().expect("mpirun has started ranks");
    assert!(Command::new("kill").args(["-9", &last.to_string()]).finish().status.success());
}

#[test]
#[ignore = "it needs MPI"]
fn indivisible_batches_and_separate_jobs_are_refused() {
    let place = Workplace::new(100);
    let refused = |mpi: Mpi, ranks: usize, arguments: &str, library: Option<PathBuf>| {
        let mut command = mpi.command(&place, ranks, arguments);
        if let Some(library) = library {
            command.env("HEEDFUL_MPI", library);
        }
        let output = command.finish();
        assert!(!output.status.success(), "{arguments} succeeded");
        assert!(!place.path("run").exists(), "something was written");
        text(&output.stderr)
    };
    let error = refused(Mpi::Open, 3, &training("--distributed mpi"), None);
    assert!(
        error.contains("8 batches of a step (training.accumulate) cannot be divided among 3 ranks"),
        "{error}"
    );
    let error = refused(Mpi::Open, 2, &training(""), None);
    assert!(
        error.contains("OMPI_COMM_WORLD_SIZE says that 2 processes were started: add --distributed mpi"),
        "{error}"
    );
    // The launcher below Open MPI's, which does not set the number of processes.
    let prterun = Mpi::Open.folder().join("bin/prterun");
    let mut command = with_default_signals(prterun.to_str().expect("a name in UTF-8"));
    command.current_dir(place.path("")).args([
        "-n",
        "2",
        "--map-by",
        ":OVERSUBSCRIBE",
        "--allow-run-as-root",
    ]);
    command.arg(env!("CARGO_BIN_EXE_heedful")).args(training("").split_whitespace());
    let output = command.finish();
    assert!(!output.status.success() && !place.path("run").exists());
    assert!(text(&output.stderr).contains("PMIX_RANK says that a launcher"), "{}", text(&output.stderr));
    let others = Mpi::Mpich.folder().join("lib/libmpi.so.12");
    let error = refused(Mpi::Open, 2, &training("--distributed mpi"), Some(others));
    assert!(error.contains("OMPI_COMM_WORLD_SIZE says that 2 processes were started, but"), "{error}");
    let others = Mpi::Open.folder().join("lib/libmpi.so.40");
    let error = refused(Mpi::Mpich, 2, &training("--distributed mpi"), Some(others));
    assert!(error.contains("PMI_SIZE says that 2 processes were started, but"), "{error}");
    let error = refused(Mpi::Open, 2, &training("--distributed mpi"), Some("/nowhere/libmpi.so".into()));
    assert!(error.contains("/nowhere/libmpi.so is not a usable MPI library"), "{error}");
}

#[test]
fn a_process_of_a_launcher_trains_alone_only_if_it_is_the_only_one() {
    let place = Workplace::new(100);
    let train = |variables: &[(&str, &str)]| {
        let output = place.command(&training("--steps 1")).envs(variables.iter().copied()).finish();
        (output.status.success(), text(&output.stderr))
    };
    for (variables, says) in [
        (&[("PMIX_RANK", "1"), ("PRTE_LAUNCHED", "1")][..], "PMIX_RANK says that a launcher"),
        (&[("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_RANK", "0")], "OMPI_COMM_WORLD_SIZE says that 2 processes"),
        (&[("PMI_SIZE", "2"), ("PMI_RANK", "0")], "PMI_SIZE says that 2 processes"),
    ] {
        let (has_trained, error) = train(variables);
        assert!(!has_trained && error.contains(says) && error.contains("--distributed mpi"), "{error}");
        assert!(!place.path("run").exists(), "something was written");
    }
    let (has_trained, error) = train(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")]);
    assert!(has_trained, "{error}");
}
