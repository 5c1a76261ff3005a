//! Texts of clients become sentences for models, and sentences become texts again.

mod layout;

mod html;
mod sentences;
mod words;

pub(crate) use self::layout::{Format, Layout};
pub(crate) use self::words::WordLinks;
