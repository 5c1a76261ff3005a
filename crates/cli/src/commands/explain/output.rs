//! In which form a file is written: its name tells.

use std::path::Path;

use anyhow::{Result, bail};
use heedful::plot::png;
use heedful::store::durable;

/// Forms of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Html,
    Svg,
    Png,
    Json,
    Csv,
}

impl Format {
    /// The form that the name asks for, if it is one of `allowed`.
    pub(super) fn of(path: &Path, allowed: &[Format]) -> Result<Format> {
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        let found = allowed.iter().find(|format| ending.as_deref() == Some(format.ending()));
        match found {
            Some(&format) => Ok(format),
            None => {
                let endings: Vec<String> =
                    allowed.iter().map(|format| format!(".{}", format.ending())).collect();
                bail!("{}: the name of the file must end in {}", path.display(), endings.join(" or "))
            }
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Json => "json",
            Format::Csv => "csv",
        }
    }
}

/// Writes a picture as it is or as pixels.
pub(super) fn write_picture(path: &Path, svg: &str, scale: f32) -> Result<()> {
    if Format::of(path, &[Format::Svg, Format::Png])? == Format::Svg {
        return Ok(durable::write_bytes(path, svg.as_bytes())?);
    }
    let picture = png(svg, scale)?;
    for warning in &picture.warnings {
        eprintln!("heedful: {warning}");
    }
    Ok(durable::write_bytes(path, &picture.bytes)?)
}

/// Pixels for each unit of a picture, as people may ask for them.
pub(super) fn scale(text: &str) -> Result<f32, String> {
    let scale: f32 = text.parse().map_err(|_| "it is a number such as 2".to_owned())?;
    if (0.1..=16.0).contains(&scale) { Ok(scale) } else { Err("it is between 0.1 and 16".to_owned()) }
}
