//! `cargo xtask tidy`: the rules of STYLE.md that neither rustfmt nor clippy checks.

mod arrows;
mod devices;
mod links;
mod rules;
mod words;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::workspace::{files, root};
use crate::{step, story};

const GOLDEN_FOLDER: &str = "crates/heedful/tests/golden/";
const GOLDEN_BYTES: u64 = 3 << 20;

pub(crate) fn run() -> Result<()> {
    step::timed("tidy", || {
        let complaints = complaints()?;
        for complaint in &complaints {
            eprintln!("  {complaint}");
        }
        match complaints.len() {
            0 => Ok(()),
            1 => bail!("tidy: one complaint"),
            count => bail!("tidy: {count} complaints"),
        }
    })
}

fn complaints() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut golden_bytes = 0;
    let orders = arrows::LIBRARIES.map(|sources| {
        let contents = fs::read_to_string(root().join(sources).join("lib.rs"));
        contents.map(|contents| (sources, arrows::order(&contents)))
    });
    let orders: Vec<_> =
        orders.into_iter().collect::<Result<_, _>>().context("cannot read a library's contents")?;
    let mut texts = Vec::new();
    for path in files()? {
        let bytes = fs::read(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        if path.starts_with(GOLDEN_FOLDER) {
            golden_bytes += bytes.len() as u64;
        }
        // Binary files (goldens, pictures) have no lines to check, but links may lead to them.
        texts.push((path, String::from_utf8(bytes).unwrap_or_default()));
    }
    let targets = links::LinkTargets::new(&texts);
    for (path, text) in &texts {
        rules::check(path, text, &mut complaints);
        words::check(path, text, &mut complaints);
        for (sources, order) in &orders {
            arrows::check(path, text, (sources, order), &mut complaints);
        }
        targets.check(path, text, &mut complaints);
    }
    words::check_types(&texts, &mut complaints);
    devices::check(&texts, &mut complaints);
    story::check(&texts, &mut complaints);
    if golden_bytes > GOLDEN_BYTES {
        complaints.push(format!(
            "{GOLDEN_FOLDER}: {golden_bytes} bytes, over {GOLDEN_BYTES}: store fewer or smaller cases"
        ));
    }
    Ok(complaints)
}
