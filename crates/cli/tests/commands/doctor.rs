//! `heedful doctor`, and `--device cuda` on a machine without a GPU.

use std::process::Output;

use crate::support::{Bounded, program};

fn heedful(arguments: &[&str]) -> Output {
    program().args(arguments).finish()
}

#[test]
fn the_machine_is_described_and_a_missing_gpu_is_an_error_without_output() {
    let doctor = heedful(&["doctor"]);
    let text = String::from_utf8(doctor.stdout).expect("UTF-8");
    assert!(doctor.status.success());
    for part in ["instruction sets", "threads", "GPU", "training", "inference"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    if !text.contains("none: ") {
        eprintln!("not tested without a GPU: there is one");
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let run = place.path().join("run");
    let run_name = run.to_str().expect("a plain name");
    let files: Vec<String> = ["a.en", "a.de"]
        .iter()
        .map(|name| {
            let file = place.path().join(name);
            std::fs::write(&file, "a b c\n").expect("a file");
            file.to_str().expect("a plain name").to_owned()
        })
        .collect();
    let failed =
        heedful(&["train", "--device", "cuda", "--src", &files[0], "--tgt", &files[1], "--out", run_name]);
    let complaint = String::from_utf8(failed.stderr).expect("UTF-8");
    assert!(!failed.status.success());
    assert!(complaint.contains("cannot train on a GPU") && complaint.contains("--device cpu"), "{complaint}");
    assert!(!run.exists());
}
