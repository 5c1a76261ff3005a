//! Forced prefixes of translations.

use crate::error::ApiError;
use crate::inference::Input;
use crate::models::Engine;
use crate::routes::target::too_long;
use crate::text::Layout;
use crate::wire::Texts;

/// Gives the first sentence of every text its prefix.
pub(super) fn add(
    engine: &Engine,
    prefixes: &Texts,
    (layouts, inputs): (&[Layout], &mut [Input]),
) -> Result<(), ApiError> {
    let Engine::Translator(translator) = engine else { return Ok(()) };
    let (given, texts) = (prefixes.all().len(), layouts.len());
    // An empty array means no prefixes for any number of texts.
    if given == 0 {
        return Ok(());
    }
    if given != texts {
        return Err(ApiError::bad_request(format!(
            "`prefix`: there are {given} for {texts} texts: send one for each text, \"\" for none"
        )));
    }
    let mut first = 0;
    for (index, (prefix, layout)) in prefixes.all().iter().zip(layouts).enumerate() {
        if !layout.sentences.is_empty() && !prefix.trim().is_empty() {
            let encode = |text: &str| translator.encode_target(text);
            let tokens = translator.target_limit().encode(prefix, encode);
            inputs[first].prefix = tokens.map_err(|error| too_long("prefix", index, error))?;
        }
        first += layout.sentences.len();
    }
    Ok(())
}
