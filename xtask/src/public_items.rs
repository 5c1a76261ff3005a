//! Counts the documented public items of the library in the pages written by rustdoc.
//!
//! Items are the crate's entries of `all.html` (struct, enum, trait, function, macro, constant, type) and, on
//! their pages, inherent methods, associated functions and associated constants, and those that a trait
//! declares. Items of implemented traits, fields and variants do not count.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::caps::PUBLIC_ITEMS;
use crate::step;
use crate::workspace::root;

const ENTRY: &str = "<li><a href=\"";
const OWN: [&str; 2] = ["class=\"method\">", "class=\"associatedconstant\">"];

/// Compares the number of items with its cap.
pub(crate) fn check() -> Result<()> {
    step::timed("public items", || {
        let count = count(&root().join("target/doc/heedful"))?;
        eprintln!("  {count} documented public items of at most {PUBLIC_ITEMS}");
        if count > PUBLIC_ITEMS {
            bail!("hide what users do not need, or raise the cap in xtask/src/caps.rs and say why");
        }
        Ok(())
    })
}

fn count(folder: &Path) -> Result<usize> {
    let read = |path: &Path| {
        fs::read_to_string(path)
            .with_context(|| format!("cannot read {}: run cargo doc first", path.display()))
    };
    let all = read(&folder.join("all.html"))?;
    // Links that begin with # are the page's own table of contents.
    let pages = all.split(ENTRY).skip(1).filter_map(|rest| rest.split('"').next());
    let pages = pages.filter(|page| !page.starts_with('#'));
    let mut count = 0;
    for page in pages {
        count += 1 + own_items(&read(&folder.join(page))?);
    }
    Ok(count)
}

fn own_items(page: &str) -> usize {
    OWN.iter().map(|class| page.matches(class).count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_implemented_traits_do_not_count() {
        let page = "<section id=\"method.open\" class=\"method\"><section id=\"method.clone\" class=\"method trait-impl\">\
                    <section id=\"associatedconstant.PAPER\" class=\"associatedconstant\">";
        assert_eq!(own_items(page), 2);
    }
}
