//! The exercises of `heedful attend`.

use std::path::Path;

use heedful::explain::calculator::{EXAMPLES, Exercise};

use super::{JSON, Opened, Target, Verdict, target};

pub(super) fn targets() -> Vec<Target> {
    vec![target("exercise", exercise, JSON, 500)]
}

fn exercise(_folder: &Path) -> Opened {
    let read = |bytes: &[u8]| {
        let exercise =
            std::str::from_utf8(bytes).map_err(drop).and_then(|text| Exercise::parse(text).map_err(drop));
        Verdict::of(exercise.map(|exercise| {
            let solution = exercise.solve();
            solution.to_text(4);
            solution.report("numbers", 4).to_html()
        }))
    };
    Opened { seeds: EXAMPLES.iter().map(|(_, _, text)| (*text).into()).collect(), read: Box::new(read) }
}
