//! `heedful train` on disks that are too small or become full during training.

use std::fs;

use crate::support::{Bounded, Workplace, names, text, with_default_signals};

/// The size of the model trained by [`Workplace::training`].
fn model_size(place: &Workplace) -> u64 {
    place.good(&Workplace::training("sized", "--steps 1"));
    fs::metadata(place.path("sized/model.safetensors")).expect("a model").len()
}

/// Runs a script in the workplace.
fn script(place: &Workplace, words: &[&str], script: &str) -> (bool, String) {
    let mut command = with_default_signals(words[0]);
    command.args(&words[1..]).arg(script).current_dir(place.path(""));
    let output = command.env("HEEDFUL", env!("CARGO_BIN_EXE_heedful")).finish();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
#[cfg_attr(not(unix), ignore = "it limits the size of files")]
fn checkpoints_that_cannot_be_written_do_not_cost_the_model() {
    let place = Workplace::new(400);
    // In units of 512 bytes: enough for the model, but not for a checkpoint, which is three times as large.
    let blocks = 2 * model_size(&place) / 512;
    for (out, valid) in [("run", true), ("unvalidated", false)] {
        let mut training = Workplace::training(out, "--steps 20");
        if !valid {
            training = training
                .replace("--valid-src valid.zh --valid-tgt valid.en", "")
                .replace("--validation-every 20", "");
        }
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$HEEDFUL\" {training}");
        let (has_trained, output) = script(&place, &["sh", "-c"], &limited);
        assert!(has_trained, "{output}");
        assert!(output.contains("the run continues without this checkpoint"), "{output}");
        assert!(
            names(&place.path(&format!("{out}/checkpoints"))).iter().all(|name| !name.starts_with("step"))
        );
        assert_eq!(place.good(&format!("translate {out} valid.zh")).lines().count(), 40);
        assert!(names(&place.path(out)).iter().all(|name| !name.ends_with(".tmp")), "nothing is left");
    }
}

/// Runs a script with a separate disk of this size mounted at `disk`; `None` if no disk can be mounted.
fn on_a_disk(place: &Workplace, bytes: u64, commands: &str) -> Option<(bool, String)> {
    fs::create_dir_all(place.path("disk")).expect("a new name");
    let mount = format!("mount -t tmpfs -o size={bytes} none disk");
    let unshared = ["unshare", "--map-root-user", "--mount", "sh", "-c"];
    let can_mount = script(place, &["sh", "-c"], &format!("{} '{mount}'", unshared.join(" ")));
    if !can_mount.0 {
        eprintln!("not tested on a small disk, because none can be mounted here: {}", can_mount.1.trim());
        return None;
    }
    Some(script(place, &unshared, &format!("{mount} && {commands}")))
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it mounts a small disk")]
fn a_disk_that_is_too_small_is_detected_before_the_first_step() {
    let place = Workplace::new(400);
    let size = 4 * model_size(&place) + 2_000_000;
    let training = Workplace::training("disk/run", "--steps 1000");
    let commands =
        format!("\"$HEEDFUL\" {training}; status=$?; ls disk/run disk/run/checkpoints; exit $status");
    let Some((has_trained, output)) = on_a_disk(&place, size, &commands) else { return };
    assert!(!has_trained && output.contains("the run needs"), "{output}");
    assert!(
        output.contains("a model of") && output.contains("checkpoints of") && output.contains("--out"),
        "{output}"
    );
    assert!(!output.contains("step-") && !output.contains("model.safetensors"), "{output}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it mounts a small disk")]
fn a_disk_that_fills_up_while_a_run_trains_costs_checkpoints_and_not_the_model() {
    let place = Workplace::new(400);
    let size = 40 * model_size(&place) + 20_000_000;
    let training = Workplace::training("disk/run", "--steps 100000");
    // The disk is full after some checkpoint, and the model still improves. The run is stopped while the disk
    // is filled, so that the test does not depend on a race for free blocks.
    let commands = format!(
        r#"
        "$HEEDFUL" {training} 2> output & run=$!
        waits() {{ for i in $(seq 6000); do "$@" && return; kill -0 $run || return; sleep 0.1; done; echo "never: $*"; kill $run; }}
        has_checkpoints() {{ test $(ls disk/run/checkpoints/step-*.safetensors 2> /dev/null | wc -l) -ge 3; }}
        waits has_checkpoints
        kill -STOP $run; cat /dev/zero > disk/filler 2> /dev/null; kill -CONT $run
        waits grep -q "continues without this checkpoint" output
        sleep 1; touch reference
        waits test disk/run/model.safetensors -nt reference
        kill -TERM $run; wait $run; echo "status $?"
        df disk | tail -n 1; cat output
        rm disk/filler; "$HEEDFUL" translate disk/run valid.zh -o translated; "$HEEDFUL" train --resume disk/run --steps 1 && echo resumed
        "#
    );
    let Some((_, output)) = on_a_disk(&place, size, &commands) else { return };
    assert!(output.contains("status 143") && !output.contains("never: "), "{output}");
    assert!(
        output.contains("the disk is full") && output.contains("continues without this checkpoint"),
        "{output}"
    );
    assert_eq!(place.lines("translated").len(), 40, "{output}");
    assert!(output.contains("resumed"), "{output}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it mounts a small disk")]
fn a_disk_that_is_full_before_the_first_checkpoint_does_not_cost_the_model() {
    let place = Workplace::new(400);
    let size = 40 * model_size(&place) + 20_000_000;
    let training = Workplace::training("disk/run", "--steps 100000")
        .replace("--checkpoint-every 7", "--checkpoint-every 90000")
        .replace("--valid-src valid.zh --valid-tgt valid.en", "")
        .replace("--validation-every 20", "");
    let commands = format!(
        r#"
        "$HEEDFUL" {training} 2> output & run=$!
        for i in $(seq 6000); do grep -q "^step" output && break; kill -0 $run || break; sleep 0.1; done
        kill -STOP $run; cat /dev/zero > disk/filler 2> /dev/null; kill -CONT $run
        kill -TERM $run; wait $run; echo "status $?"
        cat output; "$HEEDFUL" translate disk/run valid.zh -o translated
        "#
    );
    let Some((_, output)) = on_a_disk(&place, size, &commands) else { return };
    assert!(output.contains("status 143") && output.contains("the disk is full"), "{output}");
    assert_eq!(place.lines("translated").len(), 40, "{output}");
}

#[test]
fn a_finished_run_keeps_what_resuming_and_averaging_need() {
    let place = Workplace::new(400);
    let kept = |run: &str| -> Vec<u64> {
        let folder = place.path(&format!("{run}/checkpoints"));
        let files = names(&folder).into_iter().filter(|name| name.starts_with("step"));
        files.map(|name| fs::metadata(folder.join(name)).expect("a file").len()).collect()
    };
    place.good(&Workplace::training("run", "--steps 60"));
    let model = fs::metadata(place.path("run/model.safetensors")).expect("a model").len();
    let sizes = kept("run");
    let (newest, others) = sizes.split_last().expect("checkpoints");
    assert!(*newest > 29 * model / 10, "{newest} bytes, and {model} of the model");
    assert!(others.len() >= 3 && others.iter().all(|&size| size < 11 * model / 10), "{sizes:?} {model}");
    place.good("average run --last 2 --out last");
    place.good("average run --best 3 --out best");
    assert_eq!(place.good("translate best valid.zh").lines().count(), 40);
    place.good("train --resume run --steps 62");

    place.good(&Workplace::training("all", "--steps 60 --checkpoint-keep-state all"));
    assert!(kept("all").iter().all(|&size| size > 29 * model / 10), "{:?}", kept("all"));
    for count in ["--last 2", "--best 3"] {
        place.good(&format!("average all {count} --out again --force"));
        let other = if count == "--last 2" { "last" } else { "best" };
        let weights = |model: &str| place.read(&format!("{model}/model.safetensors"));
        assert!(weights("again") == weights(other), "{count}: other weights");
    }
}
