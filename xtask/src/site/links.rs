//! Checks that every link within a site has a target: a file, and an element in it if the link has an anchor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

/// Returns the number of links between the files of a folder; an error lists those without a target.
pub(super) fn check(site: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    read(site, &mut pages)?;
    let ids: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), values(text, "id=\"").collect())).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for (page, text) in &pages {
        // A template for scripts, and the 404 page, whose links have another base.
        if page.ends_with("404.html") || page.ends_with("toc.html") {
            continue;
        }
        let body = text.find("<main>").map_or(text.as_str(), |start| &text[start..]);
        let targets =
            ["href=\"", "src=\"", "srcset=\""].into_iter().flat_map(|attribute| values(body, attribute));
        for target in targets {
            if target.contains(':') || target.is_empty() {
                continue;
            }
            checked += 1;
            if let Some(complaint) = complaint(site, page, target, &ids) {
                wrong.push(format!("{}: {complaint}", page.strip_prefix(site).unwrap_or(page).display()));
            }
        }
    }
    if !wrong.is_empty() {
        wrong.dedup();
        bail!("links of the site that lead nowhere:\n  {}", wrong.join("\n  "));
    }
    Ok(checked)
}

fn complaint(
    site: &Path,
    page: &Path,
    target: &str,
    ids: &BTreeMap<&Path, BTreeSet<&str>>,
) -> Option<String> {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = page.parent().expect("a page lies in a folder");
    let path = if file.is_empty() { page.to_owned() } else { normal(&folder.join(decoded(file))) };
    let path = if path.is_dir() { path.join("index.html") } else { path };
    if !path.starts_with(site) || !path.is_file() {
        return Some(format!("`{target}` leads to no file"));
    }
    let anchor = decoded(anchor.filter(|anchor| !anchor.is_empty())?);
    let known = ids.get(path.as_path())?;
    (!known.contains(anchor.as_str())).then(|| format!("`{target}` leads to no element"))
}

fn read(folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.insert(path.clone(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(attribute).filter_map(|(start, _)| {
        let rest = &text[start + attribute.len()..];
        // `data-id="…"` is another attribute.
        let is_whole = text[..start].ends_with([' ', '\n']);
        rest.find('"').filter(|_| is_whole).map(|end| &rest[..end])
    })
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// Decodes percent encoding: `%E4%B8%80` as `一`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let hex = others.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() -> Result<()> {
        let folder = std::env::temp_dir().join(format!("heedful-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("a"))?;
        let page = |links: &str| format!("<html><main>\n<h1 id=\"一\">x</h1>{links}</main>");
        fs::write(folder.join("index.html"), page(""))?;
        let write = |links: &str| fs::write(folder.join("a/b.html"), page(links));
        write("<a href=\"../index.html#%E4%B8%80\"> <a href=\"https://x.org/\"> <a href=\"#一\">")?;
        assert_eq!(check(&folder)?, 2);
        write("<a href=\"../index.html#two\">")?;
        assert!(
            format!("{:#}", check(&folder).unwrap_err())
                .contains("a/b.html: `../index.html#two` leads to no element")
        );
        write("<a href=\"c.html\">")?;
        assert!(format!("{:#}", check(&folder).unwrap_err()).contains("`c.html` leads to no file"));
        fs::remove_dir_all(folder)?;
        Ok(())
    }
}
