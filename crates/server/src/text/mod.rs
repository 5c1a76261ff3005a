//! Texts as clients send them, and sentences as models read them.

mod html;
mod layout;
mod sentences;

pub(crate) use layout::Layout;
