//! The error of all functions of this crate.

use std::error::Error as StdError;
use std::fmt;

/// An error message with the problem, its location and the remedy.
///
/// Its text and its [source](StdError::source) are those of the underlying cause.
pub struct Error(Box<dyn StdError + Send + Sync>);

/// A result whose error type is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error type of this crate, which `?` converts to [`Error`].
#[doc(hidden)]
pub trait Cause: StdError + Send + Sync + 'static {}

/// A message without a type of its own: no caller needs to match on it.
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

// `Error` itself does not implement `Cause`: this would conflict with `From<Error> for Error` in the standard
// library.
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
    fn an_error_has_the_message_of_its_cause() {
        let failed = || -> Result<()> { Err(Unreadable(std::io::Error::other("no disk")))? };
        let error = failed().expect_err("it fails");
        assert_eq!(error.to_string(), "cannot read it");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("no disk"));
        assert!(error.cause::<Unreadable>().is_some());
    }
}
