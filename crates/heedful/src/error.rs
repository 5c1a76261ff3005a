//! The error of all functions of this crate.

use std::error::Error as StdError;
use std::fmt;

/// Why something failed: a sentence that says what is wrong, where, and what to do.
///
/// It has the text and the [source](StdError::source) of the cause that it was made of.
pub struct Error(Box<dyn StdError + Send + Sync>);

/// A result whose error is [`Error`], unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors inside this crate, each of which becomes an [`Error`] by `?`.
#[doc(hidden)]
pub trait Cause: StdError + Send + Sync + 'static {}

/// A reason that no caller tells from others.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Reason(String);

impl Cause for Reason {}

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Error {
        Reason(text.into()).into()
    }

    /// The cause, if it is of this type.
    #[doc(hidden)]
    pub fn cause<C: Cause>(&self) -> Option<&C> {
        self.0.downcast_ref()
    }
}

// `Error` itself is no `Cause`: so this is not `From<Error> for Error`, which the standard library has.
impl<C: Cause> From<C> for Error {
    fn from(cause: C) -> Error {
        Error(Box::new(cause))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read it")]
    struct Unreadable(#[source] std::io::Error);
    impl Cause for Unreadable {}

    #[test]
    fn an_error_says_what_its_cause_says() {
        let failed = || -> Result<()> { Err(Unreadable(std::io::Error::other("no disk")))? };
        let error = failed().expect_err("it fails");
        assert_eq!(error.to_string(), "cannot read it");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("no disk"));
        assert!(error.cause::<Unreadable>().is_some());
    }
}
