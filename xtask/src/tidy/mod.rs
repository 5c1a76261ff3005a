//! `cargo xtask tidy`: the rules of STYLE.md that neither rustfmt nor clippy checks.

mod arrows;
mod rules;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::step;
use crate::workspace::{files, root};

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
    let library =
        fs::read_to_string(root().join(arrows::LIBRARY)).context("cannot read the library's contents")?;
    let order = arrows::order(&library);
    for path in files()? {
        let bytes = fs::read(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        if path.starts_with(GOLDEN_FOLDER) {
            golden_bytes += bytes.len() as u64;
        }
        // Binary files (goldens, pictures) have no lines to check.
        if let Ok(text) = String::from_utf8(bytes) {
            rules::check(&path, &text, &mut complaints);
            arrows::check(&path, &text, &order, &mut complaints);
        }
    }
    if golden_bytes > GOLDEN_BYTES {
        complaints.push(format!(
            "{GOLDEN_FOLDER}: {golden_bytes} bytes, over {GOLDEN_BYTES}: store fewer or smaller cases"
        ));
    }
    Ok(complaints)
}
