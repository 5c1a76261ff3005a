//! A heat map of the sinusoidal position encoding.

use heedful_tensor::ops::sinusoid;

use crate::plot::{ColourScale, HeatMapOptions, heat_map_svg};

/// Draws `positions` rows of the sinusoidal encoding of width `d_model`, in [−1, 1].
pub fn position_table_svg(positions: usize, d_model: usize) -> String {
    let mut table = vec![0.0; positions * d_model];
    for (position, row) in table.chunks_mut(d_model.max(1)).enumerate() {
        sinusoid(position, row);
    }
    let label =
        |every: usize| move |i: usize| if i.is_multiple_of(every) { i.to_string() } else { String::new() };
    let rows: Vec<String> = (0..positions).map(label(10)).collect();
    let columns: Vec<String> = (0..d_model).map(label(16)).collect();
    let title = format!("PE(pos, i): {positions} positions × {d_model} dimensions");
    heat_map_svg(
        &table,
        &rows,
        &columns,
        &HeatMapOptions { title, full: 1.0, colours: ColourScale::Diverging },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_table_is_drawn_with_a_diverging_scale() {
        let svg = position_table_svg(50, 128);
        assert!(svg.contains("--heat-below") && svg.contains("50 positions × 128 dimensions"));
    }
}
