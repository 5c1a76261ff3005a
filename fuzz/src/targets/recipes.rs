//! Recipes: files, and `--set`.

use std::path::Path;

use heedful::recipe::{Overrides, Recipe};
use heedful::tasks::resolve;

use super::{Opened, Target, Verdict, target};

const WORDS: &[&str] = &[
    "[[",
    "]]",
    "\"\"\"",
    "'''",
    "=",
    ".",
    "#",
    "\n",
    "inf",
    "nan",
    "-inf",
    "0x",
    "1_000",
    "true",
    "[1, 2]",
    "1e308",
    "-1",
    "{ a = 1 }",
    "9h",
    "00:32:00Z",
    "\\u0000",
    "é",
];

pub(super) fn targets() -> Vec<Target> {
    vec![target("recipe", recipe, WORDS, 500), target("set", set, WORDS, 1000)]
}

fn recipe(_: &Path) -> Opened {
    let printed = Recipe::default().to_toml();
    let seeds = vec![
        "[data]\nsrc = \"train.en\"\ntgt = [\"a.de\"]\n\n[training]\ndropout = 0.3\nsteps = 100\n".to_owned(),
        "[data]\nsrc = \"a\"\ntgt = \"b\"\n[model]\nfamily = \"recurrent\"\nattention = \"soft\"\n"
            .to_owned(),
        "[data]\nsrc = \"a\"\ntgt = \"b\"\n[training]\ntime = \"20m\"\n[search]\nbeam = 5\n".to_owned(),
        printed,
    ];
    Opened { seeds: seeds.into_iter().map(String::into_bytes).collect(), read: Box::new(reads) }
}

fn reads(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else { return Verdict::Rejected };
    let mut overrides = Overrides::new();
    let read = overrides.text(text, Path::new("recipe.toml")).and_then(|()| resolve(overrides));
    if let Ok(recipe) = &read {
        recipe.fingerprint();
    }
    Verdict::of(read.map_err(|error| error.to_string()))
}

fn set(_: &Path) -> Opened {
    let seeds =
        ["training.dropout=0.3", "training.seed=3", "data.src=a,b", "time=20m", "model.family=recurrent"];
    let read = |bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return Verdict::Rejected };
        let mut overrides = Overrides::new();
        let files = ["data.src=a", "data.tgt=b"].into_iter().try_for_each(|text| overrides.set(text));
        let read = files.and_then(|()| overrides.set(text)).and_then(|()| resolve(overrides));
        Verdict::of(read.map_err(|error| error.to_string()))
    };
    Opened { seeds: seeds.map(|text| text.as_bytes().to_vec()).to_vec(), read: Box::new(read) }
}
