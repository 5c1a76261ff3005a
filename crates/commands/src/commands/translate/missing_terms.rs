//! Reports terms of `--terms` that are missing in a translation because the search could not place them.

use heedful::tasks::translate::{TranslatedPart, TranslatedText, Translator};

use super::lines::Location;
use crate::progress::Verbosity;

/// Counts translations that lack a term; the first is reported at once, the total at the end.
pub(super) struct MissingTerms {
    verbosity: Verbosity,
    count: usize,
}

impl MissingTerms {
    pub(super) fn new(verbosity: Verbosity) -> MissingTerms {
        MissingTerms { verbosity, count: 0 }
    }

    /// Checks the best output of every part of a line for its terms.
    pub(super) fn look_for(
        &mut self,
        translator: &Translator,
        translated: &TranslatedText,
        location: &Location,
    ) {
        for part in &translated.parts {
            self.look_in(translator, part, location);
        }
    }

    fn look_in(&mut self, translator: &Translator, part: &TranslatedPart, location: &Location) {
        let TranslatedPart { constraints, outputs, .. } = part;
        let best = outputs.first();
        let missing = best.map_or_else(Vec::new, |best| constraints.missing(&best.hypothesis.tokens));
        let Some(&first) = missing.first() else { return };
        self.count += 1;
        if self.count == 1 && self.verbosity == Verbosity::Normal {
            let term = translator.tokenizers().target.decode(&constraints.phrases[first]);
            eprintln!(
                "heedful: {location}: no translation with “{term}” was possible within the maximum length: raise --max-length, \
                 or leave the term out"
            );
        }
    }

    /// Reports the number of such translations if there were more than the one already reported.
    pub(super) fn finish(&self) {
        if self.count > 1 && self.verbosity == Verbosity::Normal {
            eprintln!("heedful: {} translations lack a term that they should have", self.count);
        }
    }
}
