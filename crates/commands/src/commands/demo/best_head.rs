//! Selects the cross-attention head that best shows how a translation depends on its source.

use heedful::layers::AttentionRole;
use heedful::models::HeadName;

use super::direction::Dependency;
use super::trace::Trace;

/// A head and its attention weights.
pub(super) struct BestHead {
    /// Counted from 0.
    pub(super) layer: usize,
    pub(super) head: usize,
    pub(super) weights: Vec<f32>,
    /// Attention weight from the dependency's word to the word it depends on, if both occur.
    pub(super) share: Option<f32>,
}

impl BestHead {
    /// The head in which the dependency's word attends most to the word it depends on; without a dependency,
    /// or if the model did not generate the word, the head with the sharpest attention. Only the
    /// cross-attention heads of `among` are considered, or all heads if it contains none.
    pub(super) fn of(
        trace: &Trace<'_>,
        dependency: Option<&Dependency>,
        among: &[HeadName],
    ) -> Option<BestHead> {
        let positions = dependency.and_then(|dependency| {
            let row = trace.rows.iter().position(|row| row == dependency.word)?;
            Some((row, columns(&trace.columns, dependency.depends_on)?))
        });
        let width = trace.columns.len();
        let is_candidate = |layer: usize, head: usize| {
            let mut cross = among.iter().filter(|head| head.role == AttentionRole::Cross).peekable();
            cross.peek().is_none()
                || cross.any(|candidate| (candidate.layer, candidate.head) == (layer, head))
        };
        let heads = trace.maps.iter().flat_map(|map| {
            map.weights[0].iter().enumerate().map(|(head, weights)| (map.site.layer, head, weights))
        });
        let heads = heads.filter(|(layer, head, _)| is_candidate(*layer, *head));
        let rated = heads.map(|(layer, head, weights)| {
            let share = positions.as_ref().map(|(row, columns)| {
                weights[row * width..(row + 1) * width][columns.clone()].iter().sum::<f32>()
            });
            let best = BestHead { layer, head, weights: weights.clone(), share };
            (share.unwrap_or_else(|| sharpness(weights)), best)
        });
        rated.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, best)| best)
    }
}

/// Mean attention over all heads of all layers.
pub(super) fn mean(trace: &Trace<'_>) -> Vec<f32> {
    let layers = trace.maps.len() as f32;
    let mut sum = vec![0.0; trace.rows.len() * trace.columns.len()];
    for map in &trace.maps {
        for (sum, weight) in sum.iter_mut().zip(map.mean_over_heads(0)) {
            *sum += weight / layers;
        }
    }
    sum
}

/// Sum of squared weights: larger means sharper attention.
fn sharpness(weights: &[f32]) -> f32 {
    weights.iter().map(|weight| weight * weight).sum()
}

/// The range of tokens that form `word`.
fn columns(tokens: &[String], word: &str) -> Option<std::ops::Range<usize>> {
    let starts = 0..tokens.len();
    let ends = |start| (start + 1..=tokens.len()).map(move |end| start..end);
    starts.flat_map(ends).find(|range| tokens[range.clone()].concat() == word)
}

#[cfg(test)]
mod tests {
    use heedful::layers::{AttentionMap, AttentionRole, AttentionSite};
    use heedful::tensor::Ragged;

    use super::*;

    fn trace() -> Trace<'static> {
        let text = |tokens: &[&str]| tokens.iter().map(|token| (*token).to_owned()).collect();
        let map = |layer, heads: &[[f32; 6]]| AttentionMap {
            site: AttentionSite::new("decoder", layer, AttentionRole::Cross),
            queries: Ragged::from_lengths([2]),
            keys: Ragged::from_lengths([3]),
            weights: vec![heads.iter().map(|head| head.to_vec()).collect()],
            scores: None,
        };
        Trace {
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
    fn the_head_with_the_dependency_is_found() {
        let dependency = Dependency { source: "一自动", word: "an", depends_on: "自动", why: "" };
        let best = BestHead::of(&trace(), Some(&dependency), &[]).expect("there are heads");
        assert_eq!((best.layer, best.head), (1, 0));
        assert!((best.share.expect("both words are there") - 0.7).abs() < 1e-6);
        let among =
            ["decoder.0.self.0", "decoder.1.cross.1"].map(|name| name.parse().expect("a head's name"));
        let best = BestHead::of(&trace(), Some(&dependency), &among).expect("one of them is there");
        assert_eq!((best.layer, best.head), (1, 1));
    }

    #[test]
    fn without_a_dependency_the_sharpest_head_is_shown() {
        let missing = Dependency { source: "一自动", word: "a", depends_on: "自动", why: "" };
        for dependency in [None, Some(&missing)] {
            let best = BestHead::of(&trace(), dependency, &[]).expect("there are heads");
            assert_eq!((best.layer, best.head, best.share), (0, 0, None));
        }
    }

    #[test]
    fn the_mean_is_over_layers_and_heads() {
        let mean = mean(&trace());
        assert!((mean[0] - 0.7).abs() < 1e-6 && (mean[1] - 0.1625).abs() < 1e-6, "{mean:?}");
    }
}
