//! A door for `fuzz/`, which gives these functions ten million broken texts: through a server, most of the time would go
//! into requests and models. No program uses it.

use crate::text::{Format, Layout, WordLinks};

/// A page whose sentences are replaced by their own words in reverse order, aligned by those of `pairs` that name words.
pub fn page(page: &str, pairs: &[(usize, usize)]) -> String {
    let layout = Layout::new(page, Format::Html);
    let reversed = |sentence: &String| sentence.split_whitespace().rev().collect::<Vec<_>>().join(" ");
    let outputs: Vec<String> = layout.sentences.iter().map(reversed).collect();
    let links = |(source, target): (&String, &String)| WordLinks::in_order(source, target).with(pairs);
    let links: Vec<Option<WordLinks>> = layout.sentences.iter().zip(&outputs).map(links).map(Some).collect();
    layout.join(&outputs.iter().map(String::as_str).collect::<Vec<_>>(), &links)
}

/// A plain text, cut into sentences and joined again: the same text.
pub fn text(text: &str) -> String {
    let layout = Layout::new(text, Format::Text);
    layout.join(&layout.sentences.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}
