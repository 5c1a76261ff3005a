//! Entry points for `fuzz/`, which calls these functions with ten million malformed texts: through a server,
//! requests and models would take most of the time. Not used by any program.

use crate::text::{Format, Layout, WordLinks};

/// A page whose sentences are replaced by their own words in reverse order, aligned by the valid pairs of
/// `pairs`.
pub fn page(page: &str, pairs: &[(usize, usize)]) -> String {
    let layout = Layout::new(page, Format::Html);
    let reversed = |sentence: &String| sentence.split_whitespace().rev().collect::<Vec<_>>().join(" ");
    let outputs: Vec<String> = layout.sentences.iter().map(reversed).collect();
    let links = |(source, target): (&String, &String)| WordLinks::in_order(source, target).with(pairs);
    let links: Vec<Option<WordLinks>> = layout.sentences.iter().zip(&outputs).map(links).map(Some).collect();
    layout.join(&outputs.iter().map(String::as_str).collect::<Vec<_>>(), &links)
}

/// A plain text, split into sentences and joined again: the same text.
pub fn text(text: &str) -> String {
    let layout = Layout::new(text, Format::Text);
    layout.join(&layout.sentences.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}
