//! An overview: a grid with a small heat map for every head of every layer.

use std::fmt::Write;

use super::super::explanation::{ExplainedLayer, ExplainedOutput};
use super::choice::LayerChoice;
use crate::plot::markup::{FONT, escape, length, text_width};

/// The length of a map's longer side.
const SIDE: f64 = 112.0;
const GAP: f64 = 14.0;
const LEFT: f64 = 104.0;
const TOP: f64 = 44.0;
/// The maximum number of cells per side. Maps of longer sentences are max-pooled.
const MAX_CELLS: usize = 48;
/// Opacity levels. All cells of one level form a single path, which keeps a picture of 150 tokens small.
const OPACITY_LEVELS: usize = 12;

/// Draws the layers that `choice` includes, or all layers if it is `None`.
pub fn grid_svg(output: &ExplainedOutput, choice: Option<LayerChoice>, title: &str) -> String {
    let is_shown = |layer: &&ExplainedLayer| choice.is_none_or(|choice| choice.includes(layer));
    let mut layers: Vec<&ExplainedLayer> = output.attention.iter().filter(is_shown).collect();
    // Decoder layers alternate between self and cross attention; group them by kind so that they can be
    // compared.
    layers.sort_by_key(|layer| (layer.kind as u8, layer.name.layer));
    let heads = layers.iter().map(|layer| layer.head_count()).max().unwrap_or(0);
    let heights: Vec<f64> = layers.iter().map(|layer| size(layer).1).collect();
    let width = (LEFT + heads as f64 * (SIDE + GAP)).max(text_width(title) * 13.0);
    let height = TOP + heights.iter().map(|height| height + GAP).sum::<f64>();
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{title}" font-family="{FONT}" font-size="12"><text x="0" y="13" font-size="13" font-weight="600" fill="currentColor">{title}</text><g fill="currentColor" fill-opacity=".8">"#,
        w = length(width),
        h = length(height),
        title = escape(title),
    );
    for head in 0..heads {
        let x = length(LEFT + head as f64 * (SIDE + GAP));
        let _ = write!(svg, r#"<text x="{x}" y="36">head {head}</text>"#);
    }
    svg += "</g>";
    let mut top = TOP;
    for (layer, height) in layers.iter().zip(heights) {
        let _ = write!(
            svg,
            r#"<text x="0" y="{}" fill="currentColor" fill-opacity=".8">{}</text>"#,
            length(top + 11.0),
            layer.name
        );
        for head in 0..layer.head_count() {
            write_map(&mut svg, layer, head, [LEFT + head as f64 * (SIDE + GAP), top]);
        }
        top += height + GAP;
    }
    svg + "</svg>"
}

/// Width and height of a layer's maps.
fn size(layer: &ExplainedLayer) -> (f64, f64) {
    let cell = SIDE / layer.queries.max(layer.keys).max(1) as f64;
    (cell * layer.keys as f64, cell * layer.queries as f64)
}

fn write_map(svg: &mut String, layer: &ExplainedLayer, head: usize, [x, y]: [f64; 2]) {
    let (width, height) = size(layer);
    let Pooled { cells, columns, block } = Pooled::of(&layer.head(head), layer);
    let scale = width / layer.keys.max(1) as f64 * block as f64;
    let _ = write!(
        svg,
        r#"<g transform="translate({} {})"><title>{}.{head}</title><rect width="{}" height="{}" fill="currentColor" fill-opacity=".05"/><g transform="scale({scale:.3})" fill="var(--heat,#0b5c8a)">"#,
        length(x),
        length(y),
        layer.name,
        length(width),
        length(height),
    );
    for level in 1..=OPACITY_LEVELS {
        let has_level =
            |(_, weight): &(usize, &f32)| (**weight * OPACITY_LEVELS as f32).round() as usize == level;
        let mut path = String::new();
        for (index, _) in cells.iter().enumerate().filter(has_level) {
            let _ = write!(path, "M{} {}h1v1h-1z", index % columns, index / columns);
        }
        if !path.is_empty() {
            let opacity = level as f64 / OPACITY_LEVELS as f64;
            let _ = write!(svg, r#"<path fill-opacity="{opacity:.2}" d="{path}"/>"#);
        }
    }
    svg.push_str("</g></g>");
}

/// Weights max-pooled over squares of `block` × `block`.
struct Pooled {
    cells: Vec<f32>,
    columns: usize,
    block: usize,
}

impl Pooled {
    fn of(weights: &[f32], layer: &ExplainedLayer) -> Pooled {
        let (queries, keys) = (layer.queries, layer.keys);
        let block = queries.max(keys).div_ceil(MAX_CELLS).max(1);
        let [rows, columns] = [queries.div_ceil(block), keys.div_ceil(block)];
        let mut cells = vec![0.0_f32; rows * columns];
        for (index, &weight) in weights.iter().enumerate() {
            let cell = &mut cells[index / keys / block * columns + index % keys / block];
            *cell = cell.max(weight.min(1.0));
        }
        Pooled { cells, columns, block }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::explanation::{ExplainedKind, HeadWeights};
    use super::super::matrix::tests::example;
    use super::*;
    use crate::layers::{AttentionRole, LayerName};

    #[test]
    fn every_head_of_every_layer_has_a_map() {
        let output = &example().outputs[0];
        let svg = grid_svg(output, None, "a & b");
        for name in
            ["decoder.0.self.0", "decoder.0.cross.0", "decoder.0.cross.1", ">decoder.0.cross<", ">head 1<"]
        {
            assert!(svg.contains(name), "{name} in {svg}");
        }
        let cross = grid_svg(output, Some(LayerChoice::CROSS), "");
        assert!(!cross.contains("decoder.0.self") && cross.matches("<title>").count() == 2, "{cross}");
    }

    #[test]
    fn a_grid_of_150_tokens_stays_small() {
        let mut output = example().outputs.remove(0);
        let head = vec![vec![1.0 / 20.0_f32; 150]; 150];
        output.attention = (0..6)
            .map(|layer| ExplainedLayer {
                name: LayerName { role: AttentionRole::Cross, layer },
                kind: ExplainedKind::Cross,
                queries: 150,
                keys: 150,
                heads: HeadWeights::Rows(vec![head.clone(); 8]),
                scores: None,
            })
            .collect();
        let svg = grid_svg(&output, None, "long");
        assert!(svg.len() < 3_000_000, "{}", svg.len());
    }
}
