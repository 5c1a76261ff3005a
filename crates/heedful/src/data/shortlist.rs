//! Vocabulary shortlists: the target tokens that the translation of a source may need.
//!
//! ```text
//! shortlist of a source = frequent target tokens ∪ ⋃ target tokens linked to one of its tokens
//! ```
//!
//! `shortlist.bin` in a model's folder is a line with the format version, followed by little-endian u32
//! values: source vocabulary size, target vocabulary size, number of frequent target tokens, number of links
//! of each source token; then the frequent tokens, and the tokens linked to each source token. All lists are
//! sorted.

use std::path::{Path, PathBuf};

/// The name of the file in a model folder.
pub(crate) const SHORTLIST_FILE: &str = "shortlist.bin";

const MAGIC: &[u8] = b"heedful shortlist 1\n";

/// The target tokens that each source token may need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortlist {
    target_vocabulary: usize,
    /// In the shortlist of every source.
    frequent: Vec<u32>,
    /// Offsets into `linked` for each source token, and the end.
    starts: Vec<usize>,
    linked: Vec<u32>,
}

/// The shortlist in a model's folder cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shortlist {path} cannot be used: {reason}; learn it again with heedful shortlist")]
pub struct ShortlistError {
    path: PathBuf,
    reason: String,
}

impl crate::error::Cause for ShortlistError {}

impl Shortlist {
    /// From the frequent target tokens, and the target tokens linked to each source token.
    ///
    /// # Panics
    /// If a token is not in the target vocabulary.
    pub fn new(target_vocabulary: usize, mut frequent: Vec<u32>, linked: Vec<Vec<u32>>) -> Shortlist {
        let in_order = |tokens: &mut Vec<u32>| {
            tokens.sort_unstable();
            tokens.dedup();
            let last = tokens.last().map_or(0, |&last| last as usize + 1);
            assert!(last <= target_vocabulary, "shortlist: {last} tokens of {target_vocabulary}");
        };
        in_order(&mut frequent);
        let (mut starts, mut all) = (vec![0], Vec::new());
        for mut tokens in linked {
            in_order(&mut tokens);
            all.extend(tokens);
            starts.push(all.len());
        }
        Shortlist { target_vocabulary, frequent, starts, linked: all }
    }

    /// The shortlist of a source, sorted, with additional tokens.
    pub fn tokens(&self, source: &[u32], more: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut tokens: Vec<u32> = self.frequent.iter().copied().chain(more).collect();
        source.iter().for_each(|&token| tokens.extend(self.linked(token)));
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    fn linked(&self, source: u32) -> &[u32] {
        let source = source as usize;
        if source < self.source_vocabulary() {
            &self.linked[self.starts[source]..self.starts[source + 1]]
        } else {
            &[]
        }
    }

    /// Size of the source vocabulary.
    pub fn source_vocabulary(&self) -> usize {
        self.starts.len() - 1
    }

    /// Size of the target vocabulary.
    pub fn target_vocabulary(&self) -> usize {
        self.target_vocabulary
    }

    /// Number of links of all source tokens.
    pub fn links(&self) -> usize {
        self.linked.len()
    }

    /// The content of the file in a model's folder.
    pub fn to_bytes(&self) -> Vec<u8> {
        let number = |count: usize| u32::try_from(count).expect("vocabularies have fewer tokens");
        let sizes = [self.source_vocabulary(), self.target_vocabulary, self.frequent.len()].map(number);
        let lengths = self.starts.windows(2).map(|range| number(range[1] - range[0]));
        let tokens = self.frequent.iter().chain(&self.linked).copied();
        let numbers = sizes.into_iter().chain(lengths).chain(tokens);
        MAGIC.iter().copied().chain(numbers.flat_map(u32::to_le_bytes)).collect()
    }

    /// Parses the output of [`Shortlist::to_bytes`], read from `path`, for vocabularies of these sizes.
    pub fn from_bytes(
        path: &Path,
        bytes: &[u8],
        [source, target]: [usize; 2],
    ) -> Result<Shortlist, ShortlistError> {
        let refuse = |reason: String| Err(ShortlistError { path: path.to_owned(), reason });
        let Some(shortlist) = parse(bytes) else {
            return refuse("it is damaged or not a shortlist of this version".to_owned());
        };
        let found = [shortlist.source_vocabulary(), shortlist.target_vocabulary];
        if found != [source, target] {
            let [of_source, of_target] = found;
            return refuse(format!(
                "its vocabularies have {of_source} and {of_target} tokens, those of the model {source} and {target}"
            ));
        }
        Ok(shortlist)
    }
}

fn parse(bytes: &[u8]) -> Option<Shortlist> {
    let (numbers, rest) = bytes.strip_prefix(MAGIC)?.as_chunks::<4>();
    let numbers: Vec<u32> = numbers.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let (&[sources, target_vocabulary, frequent], numbers) = numbers.split_first_chunk()?;
    let (lengths, tokens) = numbers.split_at_checked(sources as usize)?;
    let (frequent, linked) = tokens.split_at_checked(frequent as usize)?;
    let mut starts = vec![0_usize];
    for &length in lengths {
        starts.push(starts.last()?.checked_add(length as usize)?);
    }
    let is_list = |tokens: &[u32]| {
        tokens.is_sorted_by(|a, b| a < b) && tokens.last().is_none_or(|&last| last < target_vocabulary)
    };
    let is_whole = rest.is_empty() && *starts.last()? == linked.len() && is_list(frequent);
    if !is_whole || !starts.windows(2).all(|range| is_list(&linked[range[0]..range[1]])) {
        return None;
    }
    let (frequent, linked) = (frequent.to_vec(), linked.to_vec());
    Some(Shortlist { target_vocabulary: target_vocabulary as usize, frequent, starts, linked })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Shortlist {
        Shortlist::new(9, vec![5, 2], vec![vec![], vec![8, 3, 8], vec![2], vec![]])
    }

    #[test]
    fn a_shortlist_has_the_linked_and_the_frequent_tokens() {
        let shortlist = example();
        assert_eq!(shortlist.tokens(&[3], []), [2, 5]);
        assert_eq!(shortlist.tokens(&[1, 2, 1], [7, 3]), [2, 3, 5, 7, 8]);
        assert_eq!(shortlist.tokens(&[4_000_000_000], []), [2, 5], "not a token of the vocabulary");
        assert_eq!((shortlist.source_vocabulary(), shortlist.links()), (4, 3));
    }

    #[test]
    fn files_round_trip_and_damage_is_detected() {
        let (shortlist, path) = (example(), Path::new("run/shortlist.bin"));
        let bytes = shortlist.to_bytes();
        assert_eq!(Shortlist::from_bytes(path, &bytes, [4, 9]), Ok(shortlist));
        for length in 0..bytes.len() {
            assert!(Shortlist::from_bytes(path, &bytes[..length], [4, 9]).is_err(), "{length} bytes");
        }
        for (index, number) in [(0, 5), (1, 8), (1, 10), (2, 3), (4, 1), (7, 6), (8, 2), (9, 9)] {
            let mut changed = bytes.clone();
            changed[MAGIC.len() + 4 * index] = number;
            let error = Shortlist::from_bytes(path, &changed, [4, 9]).expect_err("a damaged file");
            let message = error.to_string();
            assert!(message.starts_with("the shortlist run/shortlist.bin cannot be used: "), "{message}");
        }
        let message = Shortlist::from_bytes(path, &bytes, [4, 10]).expect_err("another model's").to_string();
        assert!(message.contains("have 4 and 9 tokens, those of the model 4 and 10"), "{message}");
    }
}
