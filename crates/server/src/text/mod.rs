//! Splits the texts of clients into sentences for models, and joins the outputs into texts.

mod layout;

mod html;
mod words;

pub(crate) use self::layout::{Format, Layout};
pub(crate) use self::words::WordLinks;
