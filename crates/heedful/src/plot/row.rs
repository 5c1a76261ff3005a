//! Places several pictures side by side.

use std::fmt::Write;

use super::markup::length;

const GAP: f64 = 24.0;

/// Combines pictures of this module into one, side by side.
///
/// # Panics
/// If one of them is not a picture of this module.
pub(crate) fn row_svg(pictures: &[String]) -> String {
    if let [only] = pictures {
        return only.clone();
    }
    let sizes: Vec<[f64; 2]> = pictures.iter().map(|svg| [size(svg, "width"), size(svg, "height")]).collect();
    let width = sizes.iter().map(|[width, _]| width + GAP).sum::<f64>() - GAP;
    let height = sizes.iter().map(|[_, height]| *height).fold(0.0, f64::max);
    let (width, height) = (length(width.max(0.0)), length(height));
    let mut row = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">"#
    );
    let mut left = 0.0;
    for (svg, [width, _]) in pictures.iter().zip(sizes) {
        let inner = svg.strip_prefix("<svg").expect("a picture of this module");
        let _ = write!(row, r#"<svg x="{}"{inner}"#, length(left));
        left += width + GAP;
    }
    row + "</svg>"
}

/// The width or height of a picture, from its first element.
fn size(svg: &str, name: &str) -> f64 {
    let head = &svg[..svg.find('>').expect("a picture of this module")];
    let (_, rest) = head.split_once(&format!(" {name}=\"")).expect("a picture has a size");
    rest[..rest.find('"').expect("a quoted size")].parse().expect("a size is a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_placed_side_by_side_and_a_single_one_is_unchanged() {
        let one = r#"<svg xmlns="x" viewBox="0 0 10 20" width="10" height="20"><g/></svg>"#.to_owned();
        let other = r#"<svg xmlns="x" viewBox="0 0 30 5" width="30" height="5"><g/></svg>"#.to_owned();
        assert_eq!(row_svg(std::slice::from_ref(&one)), one);
        let both = row_svg(&[one, other]);
        assert!(both.contains(r#"viewBox="0 0 64 20""#) && both.contains(r#"<svg x="34" xmlns"#), "{both}");
        assert_eq!(both.matches("</svg>").count(), 3);
    }
}
