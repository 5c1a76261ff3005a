//! Texts of clients become sentences for models, and sentences become texts again.

mod layout;

mod html;
mod sentences;

pub(crate) use self::layout::{Format, Layout};
