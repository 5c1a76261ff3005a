//! A few inputs for every target, in this process. `cargo xtask fuzz` runs many more.

use std::time::Duration;

use heedful_fuzz::campaign::scratch_folder;
use heedful_fuzz::targets::{Verdict, all};
use heedful_fuzz::worker::{self, record_panics};

#[test]
fn every_target_accepts_its_seed_inputs_and_survives_mutations() {
    let mut complaints = Vec::new();
    for target in all() {
        let folder = tempfile::tempdir_in(scratch_folder()).expect("a folder");
        let mut opened = (target.open)(folder.path());
        for (index, seed) in opened.seeds.iter().enumerate() {
            if (opened.read)(seed) == Verdict::Rejected {
                complaints.push(format!("{}: its seed input {index} is rejected", target.name));
            }
        }
        drop(opened);
        record_panics();
        let folder = tempfile::tempdir_in(scratch_folder()).expect("a folder");
        let outcome = worker::run(&target, folder.path(), 1, 0..target.short, Duration::MAX, |_| {});
        drop(std::panic::take_hook());
        complaints.extend(
            outcome.panics.iter().map(|(number, message)| format!("{} {number}: {message}", target.name)),
        );
        assert!(outcome.next == target.short || !outcome.panics.is_empty(), "{} stopped early", target.name);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
