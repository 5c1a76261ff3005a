//! Output files: the extension of the name decides the format.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use heedful::store::output::Output;

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

/// Writes a picture as SVG, or as PNG with `scale` pixels for each of its units.
pub(in crate::commands) fn write_picture(file: Output, svg: &str, scale: f32) -> Result<()> {
    if Format::of(file.path(), &PICTURES)? == Format::Svg {
        return Ok(file.finish_with(svg.as_bytes())?);
    }
    write_png(file, svg, scale)
}

#[cfg(feature = "png")]
fn write_png(file: Output, svg: &str, scale: f32) -> Result<()> {
    let picture = heedful::plot::png(svg, scale)?;
    for warning in &picture.warnings {
        eprintln!("heedful: {warning}");
    }
    Ok(file.finish_with(&picture.bytes)?)
}

#[cfg(not(feature = "png"))]
fn write_png(file: Output, _svg: &str, _scale: f32) -> Result<()> {
    Err(no_png(file.path()))
}

fn no_png(path: &Path) -> anyhow::Error {
    anyhow!(
        "{}: this heedful was built without PNG: write an .svg file, or build with `cargo install --path crates/cli \
         --features png`",
        path.display()
    )
}

/// Parses `--scale`.
pub(in crate::commands) fn scale(text: &str) -> Result<f32, String> {
    let scale: f32 = text.parse().map_err(|_| "must be a number such as 2".to_owned())?;
    if (0.1..=16.0).contains(&scale) { Ok(scale) } else { Err("must be between 0.1 and 16".to_owned()) }
}
