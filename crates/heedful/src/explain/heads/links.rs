//! Reference alignments, in the format of the Pharaoh decoder: `0-0 1?2 1p3`, source before target, words
//! counted from 0. A dash is a sure link, `?` or `p` a possible one.

use std::str::FromStr;

/// The reference alignment of one sentence pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceAlignment {
    /// Sure links, as sorted pairs of source word and target word.
    pub(crate) sure: Vec<(usize, usize)>,
    /// Possible links, which include the sure ones; sorted.
    pub possible: Vec<(usize, usize)>,
}

/// A line is not an alignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "“{text}” is not a link: write SOURCE-TARGET for a sure one and SOURCE?TARGET for a possible one, words counted from 0"
)]
pub struct ReferenceAlignmentError {
    /// The text that is not a link.
    pub text: String,
}

impl crate::error::Cause for ReferenceAlignmentError {}

impl FromStr for ReferenceAlignment {
    type Err = ReferenceAlignmentError;

    fn from_str(line: &str) -> Result<ReferenceAlignment, ReferenceAlignmentError> {
        let mut links = ReferenceAlignment::default();
        for text in line.split_whitespace() {
            let bad = || ReferenceAlignmentError { text: text.to_owned() };
            let separator = text.find(['-', '?', 'p']).ok_or_else(bad)?;
            let (source, rest) = text.split_at(separator);
            let pair = (source.parse().map_err(|_| bad())?, rest[1..].parse().map_err(|_| bad())?);
            if rest.starts_with('-') {
                links.sure.push(pair);
            }
            links.possible.push(pair);
        }
        for list in [&mut links.sure, &mut links.possible] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sure_links_are_possible_too() {
        let links: ReferenceAlignment = "1-2 0?0 3p1 1-2".parse().expect("links");
        assert_eq!(links.sure, [(1, 2)]);
        assert_eq!(links.possible, [(0, 0), (1, 2), (3, 1)]);
        assert_eq!("".parse(), Ok(ReferenceAlignment::default()));
    }

    #[test]
    fn errors_quote_what_is_not_a_link() {
        for bad in ["1", "a-0", "1-", "-1", "1-2-3", "1:2"] {
            let error =
                format!("0-0 {bad}").parse::<ReferenceAlignment>().expect_err("not a link").to_string();
            assert!(error.starts_with(&format!("“{bad}” is not a link")), "{error}");
        }
    }
}
