//! Translation with an encoder-decoder of any family ([`Config`]) or an ensemble of them.

mod translator;

mod join;
mod scores;
mod terms;

mod queue;
mod translated;

mod pending;
mod stream;
mod worker;

mod recipe;
mod validation;

pub use join::JoinError;
pub use pending::PendingTranslation;
pub use queue::QueueError;
pub use queue::{LongText, TranslationQueue, Translations};
pub(crate) use recipe::Definition;
pub use stream::{TranslationEvent, TranslationStream};
pub use terms::Term;
pub use terms::Terms;
pub use translated::{JoinedOutput, TranslatedPart, TranslatedText};
pub use translator::{Output, Translation, Translator};

pub use crate::models::EncoderDecoderConfig as Config;
