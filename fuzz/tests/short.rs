//! A few inputs for every target, in this process. `cargo xtask fuzz` gives them many more.

use std::time::Duration;

use heedful_fuzz::campaign::scratch;
use heedful_fuzz::targets::{Verdict, all};
use heedful_fuzz::worker::{self, note_panics};

#[test]
fn every_target_takes_its_good_inputs_and_survives_the_others() {
    let mut complaints = Vec::new();
    for target in all() {
        let folder = tempfile::tempdir_in(scratch()).expect("a folder");
        let mut opened = (target.open)(folder.path());
        for (index, good) in opened.good.iter().enumerate() {
            if (opened.read)(good) == Verdict::Refused {
                complaints.push(format!("{}: its good input {index} is refused", target.name));
            }
        }
        drop(opened);
        note_panics();
        let folder = tempfile::tempdir_in(scratch()).expect("a folder");
        let done = worker::run(&target, folder.path(), 1, 0..target.short, Duration::MAX, |_| {});
        drop(std::panic::take_hook());
        complaints.extend(
            done.panics.iter().map(|(number, message)| format!("{} {number}: {message}", target.name)),
        );
        assert!(done.next == target.short || !done.panics.is_empty(), "{} stopped early", target.name);
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
