//! Case sensitivity.

use std::borrow::Cow;

/// Whether case matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Case {
    /// `The` and `the` are different.
    #[default]
    Mixed,
    /// All text is lowercased first.
    Lower,
}

impl Case {
    pub(super) fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Case::Mixed => Cow::Borrowed(text),
            Case::Lower => Cow::Owned(text.to_lowercase()),
        }
    }

    /// Its name in a signature.
    pub(super) fn name(self) -> &'static str {
        match self {
            Case::Mixed => "mixed",
            Case::Lower => "lc",
        }
    }
}
