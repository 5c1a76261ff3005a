use heedful_tensor::{Init, Params};

use super::*;
use crate::recipe::BestBy;
use crate::store::weights::Weights;

const BOTH: Keep = Keep { last: 2, best: 1, full: 2 };

fn checkpoint(step: u64, bleu: Option<f64>) -> Checkpoint {
    let params = Params::new(step);
    params.add("a", 3, 5, Init::Normal(1.0));
    params.add("b", 1, 2, Init::Normal(1.0));
    let weights = Weights::of(&params);
    let trainer = TrainerState {
        step,
        parameters: weights.clone(),
        mean: weights.clone(),
        square: weights.clone(),
        average: Some(weights),
        norms: vec![0.1, 1.0 / 3.0, f32::MIN_POSITIVE],
    };
    let progress = Progress {
        data: serde_json::json!({"epoch": 2, "pair": [1, 2.5]}),
        score: bleu.map(|value| ValidationScore { metric: BestBy::Bleu, value }),
        seconds: 0.1 + 0.2,
        recipe: "0123".to_owned(),
        ..Progress::default()
    };
    Checkpoint { trainer, progress }
}

fn saved(steps: &[(u64, Option<f64>)], keep: Keep) -> (tempfile::TempDir, Checkpoints) {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::open(folder.path()).expect("nobody else is here");
    for &(step, bleu) in steps {
        checkpoints.save(&checkpoint(step, bleu), keep).expect("a writable disk");
    }
    (folder, checkpoints)
}

#[test]
fn a_checkpoint_round_trips() {
    let (_folder, checkpoints) = saved(&[(10, Some(20.125))], BOTH);
    let (found, warnings) = checkpoints.latest().expect("a good one");
    let found = found.expect("it was saved");
    assert_eq!((found.trainer.step, warnings.len()), (10, 0));
    let expected = checkpoint(10, Some(20.125));
    assert_eq!((&found.progress, &found.trainer.norms), (&expected.progress, &expected.trainer.norms));
    for name in ["a", "b"] {
        assert_eq!(found.trainer.parameters.get(name), expected.trainer.parameters.get(name));
    }
}

#[test]
fn a_score_of_nan_does_not_spoil_the_checkpoint() {
    let (_folder, checkpoints) =
        saved(&[(1, Some(f64::NAN)), (2, Some(3.0))], Keep { last: 2, best: 2, full: 2 });
    assert_eq!(checkpoints.best(2).expect("both were validated"), [2, 1]);
    assert!(read(&checkpoints.path(1)).is_ok());
}

#[test]
fn a_truncated_file_is_rejected_and_the_one_before_is_used() {
    let (_folder, checkpoints) = saved(&[(10, None), (20, None)], BOTH);
    let path = checkpoints.path(20);
    let whole = fs::read(&path).expect("it was saved");
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).expect("a writable disk");
        assert!(matches!(read(&path), Err(CheckpointError::Damaged { .. })), "cut at {length}");
    }
    let (found, warnings) = checkpoints.latest().expect("the one before is good");
    assert_eq!(found.expect("the one before").trainer.step, 10);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("step-00000020.safetensors is damaged"), "{}", warnings[0]);
    assert!(warnings[0].contains("the one before it is used"), "{}", warnings[0]);
    assert_eq!(checkpoints.steps().expect("a folder"), [10], "the damaged one was left out");
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let (_folder, checkpoints) = saved(&[(10, None)], BOTH);
    let path = checkpoints.path(10);
    let mut bytes = fs::read(&path).expect("it was saved");
    for byte in 0..bytes.len() {
        bytes[byte] ^= 1 << (byte % 8);
        fs::write(&path, &bytes).expect("a writable disk");
        assert!(matches!(read(&path), Err(CheckpointError::Damaged { .. })), "byte {byte}");
        bytes[byte] ^= 1 << (byte % 8);
    }
    fs::write(&path, &bytes).expect("a writable disk");
    assert!(read(&path).is_ok());
}

#[test]
fn if_no_checkpoint_is_usable_the_error_names_all_and_no_file_is_lost() {
    let (folder, checkpoints) = saved(&[(10, None), (20, None)], BOTH);
    for step in [10, 20] {
        fs::write(checkpoints.path(step), "noise").expect("a writable disk");
    }
    let message = checkpoints.latest().expect_err("both are noise").to_string();
    assert!(message.contains("step-00000010") && message.contains("step-00000020"), "{message}");
    let kept = fs::read_dir(folder.path()).expect("a folder");
    let damaged = kept.filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|end| end == "damaged"))
    });
    assert_eq!(damaged.count(), 2);
}

#[test]
fn the_last_and_the_best_are_kept() {
    let scores = [(1, Some(5.0)), (2, Some(9.0)), (3, Some(7.0)), (4, None), (5, Some(8.0)), (6, None)];
    let (_folder, checkpoints) = saved(&scores, Keep { last: 2, best: 2, full: 2 });
    assert_eq!(checkpoints.steps().expect("a folder"), [2, 5, 6]);
    assert_eq!(checkpoints.best(2).expect("two were validated"), [2, 5]);
    assert_eq!(checkpoints.last(3).expect("three are left"), [2, 5, 6]);
    let message = checkpoints.best(3).expect_err("only two").to_string();
    assert!(message.contains("has 2 checkpoints that were validated, not 3"), "{message}");
}

#[test]
fn the_newest_is_kept_in_any_case() {
    let (_folder, checkpoints) = saved(&[(1, None), (2, None)], Keep { last: 0, best: 0, full: 2 });
    assert_eq!(checkpoints.steps().expect("a folder"), [2]);
}

#[test]
fn a_new_checkpoint_outlives_damaged_ones_of_later_steps() {
    let (_folder, checkpoints) = saved(&[(10, None), (20, None)], BOTH);
    fs::write(checkpoints.path(20), "noise").expect("a writable disk");
    let (found, _) = checkpoints.latest().expect("the one before is good");
    assert_eq!(found.expect("the one before").trainer.step, 10);
    checkpoints.save(&checkpoint(15, None), Keep { last: 1, best: 0, full: 2 }).expect("a writable disk");
    let (found, warnings) = checkpoints.latest().expect("the new one is good");
    assert_eq!((found.expect("the new one").trainer.step, warnings.len()), (15, 0));
}

#[test]
fn leftovers_of_a_kill_are_removed_at_the_next_start() {
    let (folder, checkpoints) = saved(&[(10, None)], BOTH);
    let leftover = folder.path().join("step-00000020.safetensors.9-0.heedful.tmp");
    fs::write(&leftover, "half").expect("a writable disk");
    drop(checkpoints);
    let checkpoints = Checkpoints::open(folder.path()).expect("nobody else is here");
    assert!(!leftover.exists());
    assert_eq!(checkpoints.steps().expect("a folder"), [10]);
}

#[test]
fn two_runs_cannot_share_a_folder_but_others_can_read_it() {
    let (folder, checkpoints) = saved(&[(10, None)], BOTH);
    assert!(matches!(Checkpoints::open(folder.path()), Err(CheckpointError::Busy { .. })));
    assert_eq!(Checkpoints::read_only(folder.path()).steps().expect("a folder"), [10]);
    drop(checkpoints);
    assert!(Checkpoints::open(folder.path()).is_ok());
}

#[test]
fn other_versions_and_other_files_are_distinguished_from_damage() {
    let (_folder, checkpoints) = saved(&[], BOTH);
    let path = checkpoints.path(1);
    let weights = checkpoint(1, None).trainer.parameters;
    for (format, expected) in [(Some("2"), "has format 2"), (None, "is not a checkpoint")] {
        let metadata = format.map(|format| ("format".to_owned(), format.to_owned())).into_iter().collect();
        let contents = crate::store::weights::file::Contents {
            metadata,
            tensors: Vec::new(),
            sets: vec![("", &weights)],
            checksum: crate::store::weights::file::Checksum::Last,
        };
        crate::store::durable::write(&path, 0, |out| contents.write(out)).expect("a writable disk");
        let message = checkpoints.latest().expect_err("not a checkpoint").to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_background_writer_leaves_the_same_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::open(folder.path()).expect("nobody else is here");
    let mut writer = Writer::new(checkpoints, Keep { last: 2, best: 0, full: 2 });
    for step in 1..=5 {
        writer.save(checkpoint(step, None));
        writer.finish().expect("a writable disk");
    }
    assert_eq!(writer.checkpoints().steps().expect("a folder"), [4, 5]);
    fs::remove_dir_all(folder.path()).expect("the test's folder");
    writer.save(checkpoint(6, None));
    assert!(writer.finish().is_err(), "the failure is reported");
}

#[test]
fn checkpoint_averaging_computes_the_mean() {
    let (_folder, checkpoints) = saved(&[(1, None), (2, None)], BOTH);
    let paths = [checkpoints.path(1), checkpoints.path(2)];
    let mean = crate::train::average(&paths, crate::train::Averaged::Parameters).expect("good checkpoints");
    let [first, second] = [1, 2].map(|step| checkpoint(step, None).trainer.parameters);
    for (name, _, values) in mean.iter() {
        let (first, second) = (first.get(name).expect("there"), second.get(name).expect("there"));
        for (mean, (a, b)) in values.iter().zip(first.iter().zip(second)) {
            assert_eq!(*mean, ((f64::from(*a) + f64::from(*b)) / 2.0) as f32);
        }
    }
}

#[test]
fn older_checkpoints_keep_only_the_weights_for_averages() {
    let scores = [(1, Some(5.0)), (2, Some(9.0)), (3, None), (4, None)];
    let (_folder, checkpoints) = saved(&scores, Keep { last: 2, best: 2, full: 1 });
    assert_eq!(checkpoints.steps().expect("a folder"), [1, 2, 3, 4]);
    let size = |step| fs::metadata(checkpoints.path(step)).expect("a file").len();
    for step in [1, 2, 3] {
        assert!(size(step) < size(4), "{} bytes are left of {}", size(step), size(4));
        let message = read(&checkpoints.path(step)).expect_err("no state").to_string();
        assert!(message.contains("has the weights alone"), "{message}");
    }
    assert_eq!(checkpoints.best(2).expect("two were validated"), [2, 1]);
    for what in [crate::train::Averaged::Parameters, crate::train::Averaged::MovingAverage] {
        let mean = crate::train::average(&[checkpoints.path(2)], what).expect("it has the weights");
        let expected = checkpoint(2, None).trainer.parameters;
        // Both were saved with the same values.
        assert!(mean.iter().eq(expected.iter()), "{mean:?}");
    }
    let (found, _) = checkpoints.latest().expect("the newest is whole");
    assert_eq!(found.expect("the newest").trainer.step, 4);
    fs::write(checkpoints.path(4), "noise").expect("a writable disk");
    let message = checkpoints.latest().expect_err("no state is left").to_string();
    assert!(message.contains("step-00000004") && message.contains("keep_state"), "{message}");
}
