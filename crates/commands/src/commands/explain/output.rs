//! Output files: the extension of the name decides the format.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use heedful::store::output::OutputFile;

/// Format of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Format {
    Html,
    Svg,
    Png,
    Json,
    Csv,
    Text,
}

/// Formats of a single picture.
pub(in crate::commands) const PICTURES: [Format; 2] = [Format::Svg, Format::Png];

impl Format {
    /// The format of the name's extension, if it is one of `allowed`.
    pub(in crate::commands) fn of(path: &Path, allowed: &[Format]) -> Result<Format> {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_lowercase);
        let found = allowed.iter().find(|format| extension.as_deref() == Some(format.extension()));
        match found {
            Some(Format::Png) if !cfg!(feature = "png") => Err(no_png(path)),
            Some(&format) => Ok(format),
            None => {
                let extensions: Vec<String> =
                    allowed.iter().map(|format| format!(".{}", format.extension())).collect();
                bail!("{}: the file name must end in {}", path.display(), extensions.join(" or "))
            }
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Text => "txt",
        }
    }
}

/// Pixels of a .png per SVG unit.
#[cfg(feature = "png")]
const PIXELS_PER_UNIT: f32 = 2.0;

/// Writes a picture as SVG or PNG.
pub(in crate::commands) fn write_picture(file: OutputFile, svg: &str) -> Result<()> {
    if Format::of(file.path(), &PICTURES)? == Format::Svg {
        return Ok(file.finish_with(svg.as_bytes())?);
    }
    write_png(file, svg)
}

#[cfg(feature = "png")]
fn write_png(file: OutputFile, svg: &str) -> Result<()> {
    let picture = heedful::plot::png(svg, PIXELS_PER_UNIT)?;
    for warning in &picture.warnings {
        eprintln!("heedful: {warning}");
    }
    Ok(file.finish_with(&picture.bytes)?)
}

#[cfg(not(feature = "png"))]
fn write_png(file: OutputFile, _svg: &str) -> Result<()> {
    Err(no_png(file.path()))
}

fn no_png(path: &Path) -> anyhow::Error {
    anyhow!(
        "{}: this heedful was built without PNG: write an .svg file, or build with `cargo install --path crates/cli \
         --features png`",
        path.display()
    )
}
