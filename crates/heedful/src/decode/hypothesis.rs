//! Finished and open hypotheses of a search, and the prefix tree of their tokens.

use super::constraints::Progress;

/// A finished hypothesis: an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// Without `<bos>` and `<eos>`.
    pub tokens: Vec<u32>,
    /// `log_probability` with the length penalty: hypotheses are ordered by it.
    pub score: f64,
    /// Sum of `log p` over the tokens and `<eos>`.
    pub log_probability: f64,
}

/// An unfinished hypothesis: it has no `<eos>` yet.
#[derive(Clone, Debug)]
pub(super) struct OpenHypothesis {
    /// Its last token in the [`Tree`]; `None` before the first.
    pub(super) last: Option<usize>,
    pub(super) length: usize,
    pub(super) log_probability: f64,
    /// Tokens that must not come next, sorted.
    pub(super) banned: Vec<u32>,
    /// Matched tokens of each phrase.
    pub(super) progress: Progress,
}

/// The tokens of a sentence's hypotheses; hypotheses share their common prefixes.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

struct Node {
    parent: Option<usize>,
    token: u32,
}

impl OpenHypothesis {
    /// The empty hypothesis.
    pub(super) fn new(progress: Progress) -> OpenHypothesis {
        OpenHypothesis { last: None, length: 0, log_probability: 0.0, banned: Vec::new(), progress }
    }

    pub(super) fn allows(&self, token: u32) -> bool {
        self.banned.binary_search(&token).is_err()
    }
}

impl Tree {
    /// Adds `token` after the node `parent`.
    pub(super) fn add(&mut self, parent: Option<usize>, token: u32) -> usize {
        self.nodes.push(Node { parent, token });
        self.nodes.len() - 1
    }

    /// The tokens up to a node, last to first.
    fn backwards(&self, last: Option<usize>) -> impl Iterator<Item = u32> + '_ {
        let mut next = last;
        std::iter::from_fn(move || {
            let node = &self.nodes[next?];
            next = node.parent;
            Some(node.token)
        })
    }

    /// The tokens up to a node, first to last.
    pub(super) fn tokens(&self, last: Option<usize>) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.backwards(last).collect();
        tokens.reverse();
        tokens
    }

    /// The tokens that would repeat an n-gram, sorted.
    pub(super) fn repeats(&self, last: Option<usize>, n: usize) -> Vec<u32> {
        let tokens = self.tokens(last);
        if tokens.len() + 1 < n {
            return Vec::new();
        }
        let prefix = &tokens[tokens.len() + 1 - n..];
        let mut repeats: Vec<u32> =
            tokens.windows(n).filter(|gram| gram[..n - 1] == *prefix).map(|gram| gram[n - 1]).collect();
        repeats.sort_unstable();
        repeats.dedup();
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_n_grams_are_found() {
        let mut tree = Tree::default();
        let last = [5, 6, 7, 5, 6, 8, 5, 6].iter().fold(None, |last, &token| Some(tree.add(last, token)));
        assert_eq!(tree.tokens(last), [5, 6, 7, 5, 6, 8, 5, 6]);
        assert_eq!(tree.repeats(last, 3), [7, 8]);
        assert_eq!(tree.repeats(last, 2), [7, 8]);
        assert_eq!(tree.repeats(last, 1), [5, 6, 7, 8]);
        assert!(tree.repeats(last, 4).is_empty());
        assert!(tree.repeats(None, 2).is_empty());
    }
}
