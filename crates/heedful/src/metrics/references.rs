//! Reference translations: one or several per sentence.

use super::signature::ReferenceCount;

/// The references of every sentence of a corpus.
#[derive(Clone, Debug)]
pub struct References<'a> {
    sentences: Vec<Vec<&'a str>>,
}

impl<'a> References<'a> {
    /// `translations[r][sentence]`: complete translations. An empty line is an empty reference.
    ///
    /// # Panics
    /// If there is no translation, or they differ in length.
    pub fn new(translations: &'a [Vec<String>]) -> References<'a> {
        References::collect(translations, |line| Some(line.as_str()))
    }

    /// Translations with gaps: `None` where a translation lacks a sentence.
    ///
    /// # Panics
    /// If there is no translation, they differ in length, or a sentence has no reference.
    pub fn with_gaps(translations: &'a [Vec<Option<String>>]) -> References<'a> {
        References::collect(translations, Option::as_deref)
    }

    fn collect<T>(translations: &'a [Vec<T>], text: impl Fn(&'a T) -> Option<&'a str>) -> References<'a> {
        let first = translations.first().expect("references: at least one translation is needed");
        for translation in translations {
            let (one, other) = (first.len(), translation.len());
            assert_eq!(one, other, "references: translations of {one} and of {other} sentences");
        }
        let of =
            |i: usize| -> Vec<&str> { translations.iter().filter_map(|lines| text(&lines[i])).collect() };
        let sentences: Vec<Vec<&str>> = (0..first.len()).map(of).collect();
        if let Some(sentence) = sentences.iter().position(Vec::is_empty) {
            panic!("references: sentence {sentence} has none");
        }
        References { sentences }
    }

    /// The number of sentences.
    pub fn len(&self) -> usize {
        self.sentences.len()
    }

    /// Whether there are no sentences.
    pub fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    pub(super) fn of(&self, sentence: usize) -> &[&'a str] {
        &self.sentences[sentence]
    }

    pub(super) fn count(&self) -> ReferenceCount {
        let mut counts = self.sentences.iter().map(Vec::len);
        match counts.next() {
            Some(first) if counts.all(|count| count == first) => ReferenceCount::Fixed(first),
            _ => ReferenceCount::Varying,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_make_the_number_of_references_vary() {
        let full = vec![Some("a".to_owned()), Some("b".to_owned())];
        let gap = vec![None, Some("c".to_owned())];
        let translations = [full.clone(), gap];
        let references = References::with_gaps(&translations);
        assert_eq!(references.of(0), ["a"]);
        assert_eq!(references.of(1), ["b", "c"]);
        assert_eq!(references.count(), ReferenceCount::Varying);
        let translations = [full.clone(), full];
        assert_eq!(References::with_gaps(&translations).count(), ReferenceCount::Fixed(2));
    }

    #[test]
    #[should_panic(expected = "translations of 1 and of 2 sentences")]
    fn translations_of_different_lengths_panic() {
        References::new(&[vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]]);
    }
}
