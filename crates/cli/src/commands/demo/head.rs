//! One head out of many: the one that shows best how a translation was found.

use super::direction::Lesson;
use super::trace::Traced;

/// A head and what it does.
pub(super) struct Chosen {
    /// Counted from 0.
    pub(super) layer: usize,
    pub(super) head: usize,
    pub(super) weights: Vec<f32>,
    /// How much of its attention the lesson's word gives to what it depends on, if both are there.
    pub(super) share: Option<f32>,
}

impl Chosen {
    /// The head in which the lesson's word looks most at what it depends on; without a lesson, or if the model did not
    /// say the word, the head that looks most sharply.
    pub(super) fn of(traced: &Traced<'_>, lesson: Option<&Lesson>) -> Option<Chosen> {
        let places = lesson.and_then(|lesson| {
            let row = traced.rows.iter().position(|row| row == lesson.word)?;
            Some((row, columns(&traced.columns, lesson.looks_at)?))
        });
        let width = traced.columns.len();
        let heads = traced.maps.iter().flat_map(|map| {
            map.weights[0].iter().enumerate().map(|(head, weights)| (map.place.layer, head, weights))
        });
        let rated = heads.map(|(layer, head, weights)| {
            let share = places.as_ref().map(|(row, columns)| {
                weights[row * width..(row + 1) * width][columns.clone()].iter().sum::<f32>()
            });
            let chosen = Chosen { layer, head, weights: weights.clone(), share };
            (share.unwrap_or_else(|| sharpness(weights)), chosen)
        });
        rated.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, chosen)| chosen)
    }
}

/// The mean over all heads of all layers.
pub(super) fn mean(traced: &Traced<'_>) -> Vec<f32> {
    let layers = traced.maps.len() as f32;
    let mut sum = vec![0.0; traced.rows.len() * traced.columns.len()];
    for map in &traced.maps {
        for (sum, weight) in sum.iter_mut().zip(map.mean_over_heads(0)) {
            *sum += weight / layers;
        }
    }
    sum
}

/// Sum of squares: the more it is in few places, the larger.
fn sharpness(weights: &[f32]) -> f32 {
    weights.iter().map(|weight| weight * weight).sum()
}

/// Where `word` stands, which may be several tokens.
fn columns(tokens: &[String], word: &str) -> Option<std::ops::Range<usize>> {
    let starts = 0..tokens.len();
    let ends = |start| (start + 1..=tokens.len()).map(move |end| start..end);
    starts.flat_map(ends).find(|range| tokens[range.clone()].concat() == word)
}

#[cfg(test)]
mod tests {
    use heedful::layers::{AttentionMap, Kind, Place};
    use heedful::tensor::Ragged;

    use super::*;

    fn traced() -> Traced<'static> {
        let text = |tokens: &[&str]| tokens.iter().map(|token| (*token).to_owned()).collect();
        let map = |layer, heads: &[[f32; 6]]| AttentionMap {
            place: Place::new("decoder", layer, Kind::Cross),
            queries: Ragged::from_lengths([2]),
            keys: Ragged::from_lengths([3]),
            weights: vec![heads.iter().map(|head| head.to_vec()).collect()],
        };
        Traced {
            source: "一自动",
            output: "an".to_owned(),
            columns: text(&["一", "自", "动"]),
            rows: text(&["an", "<eos>"]),
            maps: vec![
                map(0, &[[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]]),
                map(1, &[[0.3, 0.4, 0.3, 0.3, 0.4, 0.3], [0.5, 0.25, 0.25, 0.5, 0.25, 0.25]]),
            ],
        }
    }

    #[test]
    fn the_head_that_teaches_is_found() {
        let lesson = Lesson { source: "一自动", word: "an", looks_at: "自动", why: "" };
        let chosen = Chosen::of(&traced(), Some(&lesson)).expect("there are heads");
        assert_eq!((chosen.layer, chosen.head), (1, 0));
        assert!((chosen.share.expect("both words are there") - 0.7).abs() < 1e-6);
    }

    #[test]
    fn without_a_lesson_the_sharpest_head_is_shown() {
        let missing = Lesson { source: "一自动", word: "a", looks_at: "自动", why: "" };
        for lesson in [None, Some(&missing)] {
            let chosen = Chosen::of(&traced(), lesson).expect("there are heads");
            assert_eq!((chosen.layer, chosen.head, chosen.share), (0, 0, None));
        }
    }

    #[test]
    fn the_mean_is_over_layers_and_heads() {
        let mean = mean(&traced());
        assert!((mean[0] - 0.7).abs() < 1e-6 && (mean[1] - 0.1625).abs() < 1e-6, "{mean:?}");
    }
}
