//! Exporting native vocabularies for other programs, and importing them back.
//!
//! A native tokenizer.json gives the ids of one line. Tokens around a text and the handling of multiple lines
//! are part of the model in heedful, but other programs have only the file. So an exported file also
//! contains:
//!
//! ```text
//! around           post_processor   tokens before and after every text, such as <bos>
//! multi-line text  normalizer       a space before every line, not only before the first
//!                  pre_tokenizer    line ends are separate words
//!                  decoder          removes the space after every line end
//! ```

use std::path::Path;

use serde_json::{Map, Value, json};

use super::native::Native;
use super::rules::unspaced_characters;
use super::{Origin, Tokenizer, TokenizerError};

/// How a model's input is made from the ids of a text, for other programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextTemplate {
    /// The tokens before and after the text.
    pub(crate) around: [Option<u32>; 2],
    /// Whether a text may have several lines, each with a space before it.
    pub(crate) is_multiline: bool,
}

impl Tokenizer {
    /// tokenizer.json for other programs. A foreign vocabulary is written unchanged.
    pub(crate) fn to_exported(&self, text_template: &TextTemplate) -> String {
        let native = match &self.origin {
            Origin::Native(native) => native,
            Origin::Foreign(foreign) => return foreign.json().to_owned(),
        };
        let mut json: Value = serde_json::from_str(&self.to_json()).expect("it was just written");
        if text_template.around != [None, None] {
            json["post_processor"] = template(native, text_template.around);
        }
        if text_template.is_multiline && has_space_before(&json) {
            MultilineSteps::new().add_to(&mut json);
        }
        format!("{json}\n")
    }

    /// Reads a tokenizer.json of another project, or one written by [`Tokenizer::to_exported`].
    pub(crate) fn from_exported(path: &Path, bytes: &[u8]) -> Result<Tokenizer, TokenizerError> {
        let Ok(mut json) = serde_json::from_slice::<Value>(bytes) else {
            return Tokenizer::from_bytes(path, bytes);
        };
        MultilineSteps::new().remove_from(&mut json);
        if json["pre_tokenizer"]["type"] != "Split" {
            return Tokenizer::from_bytes(path, bytes);
        }
        json["post_processor"] = Value::Null;
        // Other programs may list the special tokens here too; they are in the vocabulary already.
        json["added_tokens"] = json!([]);
        Tokenizer::from_bytes(path, json.to_string().as_bytes())
    }
}

/// The post-processor that adds tokens around a text.
fn template(native: &Native, [first, last]: [Option<u32>; 2]) -> Value {
    let name = |id: u32| native.pipeline.id_to_token(id).unwrap_or_default();
    let token = |id: u32| json!({"SpecialToken": {"id": name(id), "type_id": 0}});
    let around = |texts: &[&str]| -> Vec<Value> {
        let texts = texts.iter().map(|id| json!({"Sequence": {"id": id, "type_id": 0}}));
        first.map(token).into_iter().chain(texts).chain(last.map(token)).collect()
    };
    let special = first.into_iter().chain(last).map(|id| {
        let name = name(id);
        (name.clone(), json!({"id": name, "ids": [id], "tokens": [name]}))
    });
    json!({"type": "TemplateProcessing", "single": around(&["A"]), "pair": around(&["A", "B"]),
        "special_tokens": special.collect::<Map<_, _>>()})
}

/// Character vocabularies insert no space before a line.
fn has_space_before(json: &Value) -> bool {
    let steps = json["normalizer"]["normalizers"].as_array();
    steps.is_some_and(|steps| steps.iter().any(|step| step["type"] == "Prepend"))
}

/// The additional pipeline steps for multi-line text.
struct MultilineSteps {
    /// The last steps of the normalizer.
    normalizers: [Value; 2],
    /// The first pre-tokenizer.
    split: Value,
    /// The last decoder.
    decoder: Value,
}

impl MultilineSteps {
    fn new() -> MultilineSteps {
        let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
        MultilineSteps {
            normalizers: [
                // No space before an empty first line, or before lines in scripts without spaces.
                replace(json!({"Regex": r"\A (?=\n)"}), ""),
                replace(json!({"Regex": format!(r"\n(?=[^\n{}])", unspaced_characters())}), "\n "),
            ],
            split: json!({"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": false}),
            decoder: replace(json!({"String": "\n "}), "\n"),
        }
    }

    fn add_to(self, json: &mut Value) {
        let append = |steps: &mut Value, more: Vec<Value>| {
            if let Value::Array(steps) = steps {
                steps.extend(more);
            }
        };
        append(&mut json["normalizer"]["normalizers"], self.normalizers.into());
        append(&mut json["decoder"]["decoders"], vec![self.decoder]);
        let words = json["pre_tokenizer"].take();
        json["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [self.split, words]});
    }

    /// Does nothing if the steps of [`MultilineSteps::add_to`] are missing.
    fn remove_from(&self, json: &mut Value) {
        let words = match json["pre_tokenizer"]["pretokenizers"].as_array_mut().map(Vec::as_mut_slice) {
            Some([split, words]) if *split == self.split => words.take(),
            _ => return,
        };
        json["pre_tokenizer"] = words;
        let remove = |steps: &mut Value, less: &[Value]| {
            if let Value::Array(steps) = steps
                && steps.ends_with(less)
            {
                steps.truncate(steps.len() - less.len());
            }
        };
        remove(&mut json["normalizer"]["normalizers"], &self.normalizers);
        remove(&mut json["decoder"]["decoders"], std::slice::from_ref(&self.decoder));
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::Tokenizer as Pipeline;

    use super::super::WordCounts;
    use super::super::train::{VocabularyKind, VocabularyOptions};
    use super::*;
    use crate::data::tokenizer::{Boundaries, NormalizationForm};

    fn vocabularies() -> Vec<Tokenizer> {
        let mut all = Vec::new();
        for kind in
            [VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Word, VocabularyKind::Character]
        {
            for (normalization, boundaries) in
                [(NormalizationForm::None, Boundaries::Words), (NormalizationForm::Nfkc, Boundaries::Spaces)]
            {
                let options = VocabularyOptions {
                    kind,
                    size: 400,
                    normalization,
                    boundaries,
                    ..VocabularyOptions::default()
                };
                let mut counts = WordCounts::new(&options);
                for line in
                    ["First Citizen:", "Before we proceed, hear me.", "我们 走", "before before first"]
                {
                    counts.add(line);
                }
                all.push(counts.train().expect("enough text"));
            }
        }
        all
    }

    const TEXTS: [&str; 8] = [
        "First Citizen:\nBefore we proceed, hear me.",
        "before \n\n first\n我们 走\n 走",
        "\nbefore",
        "\n\n",
        "",
        "x\r\ny <eos> ﬁ Ａ\n\tz",
        "我们\nfirst \nfirst",
        " before",
    ];

    #[test]
    fn other_programs_encode_and_decode_multiline_text_in_the_same_way() {
        for vocabulary in vocabularies() {
            let around = [Some(1), None];
            let written = vocabulary.to_exported(&TextTemplate { around, is_multiline: true });
            let pipeline = Pipeline::from_bytes(&written).expect("the format of `tokenizers`");
            for text in TEXTS {
                let ids = vocabulary.encode_multiline(text);
                let found = pipeline.encode(text, true).expect("ids");
                assert_eq!(found.get_ids(), [&[1], &ids[..]].concat(), "{text:?}");
                assert_eq!(pipeline.encode(text, false).expect("ids").get_ids(), ids, "{text:?}");
                let decoded = pipeline.decode(&ids, false).expect("a text");
                assert_eq!(decoded, vocabulary.decode_multiline(&ids), "{text:?}");
            }
        }
    }

    #[test]
    fn exported_vocabularies_round_trip() {
        for vocabulary in vocabularies() {
            for is_multiline in [false, true] {
                for around in [[None, None], [Some(1), None], [Some(1), Some(2)]] {
                    let written = vocabulary.to_exported(&TextTemplate { around, is_multiline });
                    let read = Tokenizer::from_exported(Path::new("x"), written.as_bytes()).expect("ours");
                    assert_eq!(read.to_json(), vocabulary.to_json());
                }
            }
        }
    }
}
