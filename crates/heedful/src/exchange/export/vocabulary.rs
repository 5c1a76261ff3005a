//! Export of vocabularies to the files that other projects read.
//!
//! ```text
//!                 Hugging Face                                      CTranslate2 (tokens come from the caller)
//! tokenizers      tokenizer.json, tokenizer_config.json             vocabularies, tokenizer.json
//!                 also in target/, if targets have another          source. and target.tokenizer.json, if there are two
//! SentencePiece   source.spm, target.spm, vocab.json (Marian's)     vocabularies, sentencepiece.model or source. and target.spm;
//!                                                                   target.tokenizer.json converts tokens to text
//! ```

use serde_json::{Map, Value, json};

use super::loaded_model::LoadedModel;
use super::unsupported::UnsupportedFeatures;
use super::{Contents, Exported};
use crate::data::tokenizer::{
    JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, SpecialRole, TARGET_FILE, TextTemplate,
};
use crate::data::{SpecialTokens, Tokenizer};
use crate::exchange::import::huggingface::TARGET_TOKENIZER;
use crate::tasks::Task;
use crate::tasks::language::TextShape;

/// All files that a vocabulary can have in an export. Stale ones of an earlier export would contradict the
/// new ones.
pub(super) const FILES: [&str; 15] = [
    JOINT_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    JOINT_PIECES,
    SIDE_PIECES[0],
    SIDE_PIECES[1],
    TARGET_TOKENIZER,
    "target/tokenizer_config.json",
    "tokenizer_config.json",
    "vocabulary.json",
    "shared_vocabulary.json",
    "source_vocabulary.json",
    "target_vocabulary.json",
    "vocab.json",
    "target_vocab.json",
];

/// The vocabularies of the exported model.
pub(super) struct Vocabulary<'o> {
    original: &'o LoadedModel,
    /// The names of the tokens, indexed by id.
    source: Vec<String>,
    target: Vec<String>,
    surroundings: TextTemplate,
    sides: Sides,
}

/// Whether a model has one vocabulary, or one for sources and one for targets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sides {
    One,
    Two,
}

impl<'o> Vocabulary<'o> {
    fn new(original: &'o LoadedModel, surroundings: TextTemplate, sides: Sides) -> Vocabulary<'o> {
        let [source, target] =
            [&original.tokenizers.source, &original.tokenizers.target].map(|side| side.names());
        Vocabulary { original, source, target, surroundings, sides }
    }

    /// The vocabularies of a translator.
    pub(super) fn of_translator(
        original: &'o LoadedModel,
        special: &SpecialTokens,
        unsupported: &mut UnsupportedFeatures,
    ) -> Vocabulary<'o> {
        unsupported.add(original.tokenizers.source.is_foreign() && original.pieces.is_none(), || {
            format!(
                "this vocabulary without the SentencePiece model from which it was made (copy {JOINT_PIECES}, or {} and {}, of \
                 the original into the folder, and run `heedful seal`)",
                SIDE_PIECES[0], SIDE_PIECES[1]
            )
        });
        let surroundings = TextTemplate { around: [None, special.source_eos], is_multiline: false };
        Vocabulary::new(original, surroundings, Sides::Two)
    }

    /// The vocabulary of a language model.
    pub(super) fn of_language(
        original: &'o LoadedModel,
        text: TextShape,
        special: &SpecialTokens,
    ) -> Vocabulary<'o> {
        let is_multiline = text == TextShape::Running;
        Vocabulary::new(
            original,
            TextTemplate { around: [Some(special.bos), None], is_multiline },
            Sides::One,
        )
    }

    /// The vocabulary of a masked language model.
    pub(super) fn of_masked(original: &'o LoadedModel, special: &SpecialTokens) -> Vocabulary<'o> {
        let around = [special.text_first, special.text_last];
        Vocabulary::new(original, TextTemplate { around, is_multiline: false }, Sides::One)
    }

    /// The name of a source token.
    pub(super) fn source_name(&self, id: u32) -> String {
        self.source.get(id as usize).cloned().unwrap_or_default()
    }

    /// The name of a target token.
    pub(super) fn target_name(&self, id: u32) -> String {
        self.target.get(id as usize).cloned().unwrap_or_default()
    }

    /// The name of the unknown token; that of `other` if the vocabulary has none.
    pub(super) fn unknown_name(&self, other: u32) -> String {
        self.target_name(self.original.tokenizers.target.special(SpecialRole::Unk).unwrap_or(other))
    }

    fn is_shared(&self) -> bool {
        self.source == self.target
    }

    /// Adds vocabularies and tokenizers.
    pub(super) fn add_to_ctranslate2(&self, exported: &mut Exported) {
        let list = |names: &[String]| json!(names);
        match (self.sides, self.is_shared()) {
            (Sides::One, _) => exported.add_json("vocabulary.json", &list(&self.target)),
            (Sides::Two, true) => exported.add_json("shared_vocabulary.json", &list(&self.target)),
            (Sides::Two, false) => {
                exported.add_json("source_vocabulary.json", &list(&self.source));
                exported.add_json("target_vocabulary.json", &list(&self.target));
            }
        }
        if self.original.pieces.is_some() {
            // For detokenization: the SentencePiece model may be that of the sources only.
            let name = if self.sides == Sides::One { JOINT_FILE } else { TARGET_FILE };
            self.add_tokenizer(exported, name, &self.original.tokenizers.target);
        }
        match &self.original.pieces {
            Some([source, target]) if source == target => exported.add_bytes(JOINT_PIECES, source),
            Some(sides) => {
                for (name, bytes) in SIDE_PIECES.into_iter().zip(sides) {
                    exported.add_bytes(name, bytes);
                }
            }
            None if self.is_shared() => {
                self.add_tokenizer(exported, JOINT_FILE, &self.original.tokenizers.source);
            }
            None => {
                self.add_tokenizer(exported, SOURCE_FILE, &self.original.tokenizers.source);
                self.add_tokenizer(exported, TARGET_FILE, &self.original.tokenizers.target);
            }
        }
    }

    /// Adds the files that `AutoTokenizer` reads, for texts of at most `longest` tokens.
    pub(super) fn add_to_hugging_face(
        &self,
        exported: &mut Exported,
        special: &SpecialTokens,
        longest: usize,
    ) {
        let Some(pieces) = &self.original.pieces else {
            self.add_tokenizer(exported, JOINT_FILE, &self.original.tokenizers.source);
            exported.add_json("tokenizer_config.json", &self.fast_settings(special, longest));
            if !self.is_shared() {
                self.add_tokenizer(exported, TARGET_TOKENIZER, &self.original.tokenizers.target);
                exported.add_json("target/tokenizer_config.json", &self.fast_settings(special, longest));
            }
            return;
        };
        for (name, bytes) in SIDE_PIECES.into_iter().zip(pieces) {
            exported.add_bytes(name, bytes);
        }
        let ids = |names: &[String]| -> Value {
            let ids = names.iter().enumerate().map(|(id, name)| (name.clone(), json!(id)));
            Value::Object(ids.collect::<Map<_, _>>())
        };
        exported.add_json("vocab.json", &ids(&self.source));
        if !self.is_shared() {
            exported.add_json("target_vocab.json", &ids(&self.target));
        }
        exported.add_json(
            "tokenizer_config.json",
            &json!({
                "tokenizer_class": "MarianTokenizer",
                "separate_vocabs": !self.is_shared(),
                "model_max_length": longest,
                "eos_token": self.target_name(special.eos),
                "unk_token": self.unknown_name(special.eos),
                "pad_token": self.target_name(special.pad),
            }),
        );
    }

    /// The `tokenizer_config.json` for a `tokenizer.json`.
    fn fast_settings(&self, special: &SpecialTokens, longest: usize) -> Value {
        let tokenizer = &self.original.tokenizers.source;
        let mut settings = json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": longest,
            "model_input_names": ["input_ids", "attention_mask"],
            "clean_up_tokenization_spaces": false,
            // heedful treats the names of special tokens in a text as plain text.
            "split_special_tokens": !tokenizer.is_foreign(),
            "bos_token": self.target_name(special.bos),
            "eos_token": self.target_name(special.eos),
            "pad_token": self.target_name(special.pad),
        });
        if self.original.config.task() == Task::Masked {
            settings["mask_token"] = self.target_name(special.mask).into();
        }
        for (key, role) in [
            ("unk_token", SpecialRole::Unk),
            ("cls_token", SpecialRole::Cls),
            ("sep_token", SpecialRole::Sep),
        ] {
            if let Some(id) = tokenizer.special(role) {
                settings[key] = self.source_name(id).into();
            }
        }
        settings
    }

    fn add_tokenizer(&self, exported: &mut Exported, name: &str, tokenizer: &Tokenizer) {
        exported.add(name, Contents::Bytes(tokenizer.to_exported(&self.surroundings).into_bytes()));
    }
}
