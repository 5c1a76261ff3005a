//! `--device` in every command: refusals before anything is read or written, and messages.

use crate::support::{Workplace, names, text};
use heedful::tensor::cuda;
use heedful::train::checkpoint::{self, Checkpoints, Keep};

/// Commands that only run on the CPU; the files do not exist.
const CPU_COMMANDS: [&str; 7] = [
    "evaluate no-text --ref no-text",
    "explain no-model text -o out.html",
    "explain heads no-model --src no-text --tgt no-text -o out.html",
    "explain prune no-model --src no-text --ref no-text -o out.html",
    "explain example --model no-model -o out.html",
    "shortlist no-model --src no-text --tgt no-text",
    "compare layers --out out",
];

/// Commands that can run on a GPU; the files do not exist.
const GPU_COMMANDS: [&str; 7] = [
    "translate no-model no-text -o out",
    "generate no-model",
    "score no-model --src no-text --tgt no-text",
    "classify no-model no-text -o out",
    "fill no-model text",
    "serve no-model",
    "serve --runs no-runs --keys no-keys",
];

#[test]
fn a_cpu_only_command_refuses_gpus_before_anything_is_read_or_written() {
    let place = Workplace::empty();
    for command in CPU_COMMANDS {
        let error = place.bad(&format!("{command} --device cuda"));
        assert!(
            error.contains("runs on the CPU")
                && error.contains("--device cpu or auto")
                && error.lines().count() == 1,
            "{command}: {error}"
        );
        assert!(names(&place.path("")).is_empty(), "{command}");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_before_anything_is_read_or_written() {
    let place = Workplace::empty();
    for command in GPU_COMMANDS {
        let error = place.bad(&format!("{command} --device cuda"));
        if cuda::gpu().is_err() {
            assert!(
                error.contains(": use --device cpu or auto") && error.lines().count() == 1,
                "{command}: {error}"
            );
        }
        let error = place.bad(&format!("{command} --device cuda --compute int8"));
        assert!(error.contains("--compute bf16, or --device cpu"), "{command}: {error}");
        assert!(names(&place.path("")).is_empty(), "{command}");
    }
}

#[test]
fn a_perplexity_on_a_gpu_that_is_not_there_is_an_error_before_anything_is_read() {
    let place = Workplace::empty();
    let error = place.bad("evaluate no-text --model no-model --metric perplexity --device cuda");
    if cuda::gpu().is_err() {
        assert!(error.contains(": use --device cpu or auto") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn auto_reports_the_cpu_in_one_line_and_nothing_when_quiet() {
    let place = Workplace::empty();
    place.write("text", b"a b c d\n");
    let evaluate = |more: &str| {
        let output = place.run(&format!("evaluate text --ref text {more}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    assert_eq!(evaluate("--device auto"), "heedful: evaluation runs on the CPU\n");
    assert_eq!(evaluate("--device auto --quiet"), "");
    assert_eq!(evaluate("--device cpu"), "");
    assert_eq!(evaluate(""), "");
}

#[test]
fn auto_trains_and_translates_on_the_cpu_without_a_gpu_and_gives_the_reason() {
    if cuda::gpu().is_ok() {
        return;
    }
    let place = Workplace::new(50);
    for (more, expected) in [("", 1), (" --quiet", 0)] {
        let _ = std::fs::remove_dir_all(place.path("run"));
        let training = Workplace::training("run", &format!("--steps 1 --device auto{more}"));
        let translation = format!("translate run train.en -o out --force --device auto{more}");
        for command in [training, translation] {
            let output = place.run(&command);
            let stderr = text(&output.stderr);
            assert!(output.status.success(), "{stderr}");
            assert_eq!(stderr.matches("heedful: uses the CPU: ").count(), expected, "{command}: {stderr}");
        }
    }
}

#[test]
fn training_on_a_gpu_that_is_not_there_writes_nothing() {
    if cuda::gpu().is_ok() {
        return;
    }
    let place = Workplace::new(50);
    let before = names(&place.path(""));
    let training = |more: &str| Workplace::training("run", more);
    let commands = [
        training("--device cuda"),
        training("--family recurrent --device cuda"),
        training("--device cuda").replace("train --src", "compare variations --src"),
        "demo --quick --model transformer,rnn --out run --device cuda".to_owned(),
    ];
    for command in commands {
        let error = place.bad(&command);
        let (_, why) = error.split_once("cannot train on a GPU: ").expect("a reason");
        let why = why.split(';').next().expect("text before the remedy");
        assert_eq!(error.matches(why).count(), 1, "{command} says it twice: {error}");
        assert_eq!(names(&place.path("")), before, "{command}");
    }
}

#[test]
fn a_run_resumed_on_another_device_reports_it_once() {
    let place = Workplace::new(100);
    place.good(&Workplace::training("run", "--steps 7"));
    let resume = |steps: u64| {
        let output = place.run(&format!("train --resume run --steps {steps}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let warning = "the run resumes on another device";
    assert!(!resume(14).contains(warning));
    let pretend = |device: Option<&str>| {
        let checkpoints = Checkpoints::open(&place.path("run/checkpoints")).expect("nobody trains");
        let step = checkpoints.last(1).expect("a checkpoint")[0];
        let mut found = checkpoint::read(&checkpoints.path(step)).expect("a whole checkpoint");
        assert!(found.progress.device.is_some_and(|device| device.starts_with("cpu (")));
        found.progress.device = device.map(str::to_owned);
        checkpoints.save(&found, Keep { last: 9, best: 9, full: 2 }).expect("room on the disk");
    };
    pretend(Some("cuda (NVIDIA H200, sm_90a, driver 13.0, cuBLASLt 130100, NVRTC 13.0)"));
    let stderr = resume(21);
    assert!(
        stderr.contains(warning) && stderr.contains("NVIDIA H200") && stderr.contains("cpu ("),
        "{stderr}"
    );
    assert!(!resume(28).contains(warning));
    pretend(None);
    assert!(!resume(35).contains(warning));
}
