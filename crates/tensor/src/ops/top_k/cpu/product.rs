//! Scores that are looked through while they are computed: a segment of columns is a task.

use super::super::{NOTHING, Scored, TopK};
use super::uniform::{SEGMENT, STRIP, Segment, join, normalizer};
use crate::cpu::gemm::int8::{self, Int8Rows, Product};
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::Orientation;
use crate::{DType, Param, Tensor};

/// Strips of a segment.
const STRIPS: usize = SEGMENT / int8::STRIP;
const _: () = assert!(STRIP == int8::STRIP);

pub(in crate::ops::top_k) fn find_in_product(x: &Tensor, weight: &Param, found: &mut TopK) {
    let rows = Int8Rows::new(x.array_as(DType::F32).f32(), x.width());
    let matrix = weight.quantized(Orientation::Transposed);
    let (product, width, count) = (Product::new(&rows, &matrix), matrix.n(), found.count);
    let segments = product.strips().div_ceil(STRIPS);
    let mut states = vec![Segment::EMPTY; segments * rows.len()];
    let mut candidates = vec![NOTHING; segments * rows.len() * count];
    let (all_states, all_best) = (SharedMut::new(&mut states), SharedMut::new(&mut candidates));
    parallel(segments, |segment| {
        // SAFETY: every segment belongs to one task, here and below.
        let states = unsafe { all_states.slice(segment * rows.len()..(segment + 1) * rows.len()) };
        // SAFETY: as above.
        let best =
            unsafe { all_best.slice(segment * rows.len() * count..(segment + 1) * rows.len() * count) };
        let strips = segment * STRIPS..((segment + 1) * STRIPS).min(product.strips());
        product.blocks(0..rows.len(), strips, |scaled, row, height, column| {
            let columns = int8::STRIP.min(width - column);
            let best = &mut best[row * count..(row + height) * count];
            add_block(&scaled.0, columns, column, &mut states[row..row + height], best);
        });
    });
    for row in 0..rows.len() {
        let of_row = (0..segments).map(|segment| segment * rows.len() + row);
        found.normalizers[row] = normalizer(of_row.clone().map(|place| states[place]));
        let best = &mut found.best[row * count..(row + 1) * count];
        of_row.for_each(|place| join(best, &candidates[place * count..(place + 1) * count]));
    }
    for (row, column, score) in &mut found.others {
        *score = product.element(*row, *column as usize);
    }
}

kernel! {
    fn add_block(scores: &[f32], columns: usize, first: usize, states: &mut [Segment], best: &mut [Scored]) {
        let count = best.len() / states.len().max(1);
        for (row, state) in states.iter_mut().enumerate() {
            let scores = &scores[row * int8::STRIP..row * int8::STRIP + columns];
            state.add(scores, first, &mut best[row * count..(row + 1) * count]);
        }
    }
}
