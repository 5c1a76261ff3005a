//! Our vocabularies for other programs, and back.
//!
//! A tokenizer.json of heedful's own gives the ids of one line. What a model reads around it, and where lines of running text begin, is
//! the model's affair; other programs know only the file. So for them it says too:
//!
//! ```text
//! around          post_processor   tokens before and after every text, such as <bos>
//! running text    normalizer       a space before every line, not only before the first
//!                 pre_tokenizer    line ends are words of their own
//!                 decoder          without the space after every line end
//! ```

use std::path::Path;

use serde_json::{Map, Value, json};

use super::own::Own;
use super::rules::unspaced_characters;
use super::{Origin, Tokenizer, TokenizerError};

/// What other programs have to do with a text of a model, besides encoding it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The tokens before and after it.
    pub(crate) around: [Option<u32>; 2],
    /// Whether it may have several lines, each with a space before it.
    pub(crate) is_running: bool,
}

impl Tokenizer {
    /// tokenizer.json for other programs. A vocabulary of another project is written as it was read.
    pub(crate) fn to_exported(&self, surroundings: &Surroundings) -> String {
        let own = match &self.origin {
            Origin::Own(own) => own,
            Origin::Foreign(foreign) => return foreign.json().to_owned(),
        };
        let mut json: Value = serde_json::from_str(&self.to_json()).expect("it was just written");
        if surroundings.around != [None, None] {
            json["post_processor"] = template(own, surroundings.around);
        }
        if surroundings.is_running && has_space_before(&json) {
            Running::new().add_to(&mut json);
        }
        format!("{json}\n")
    }

    /// Reads a tokenizer.json of another project, or one of ours that was written for others.
    pub(crate) fn from_exported(path: &Path, bytes: &[u8]) -> Result<Tokenizer, TokenizerError> {
        let Ok(mut json) = serde_json::from_slice::<Value>(bytes) else {
            return Tokenizer::from_bytes(path, bytes);
        };
        Running::new().remove_from(&mut json);
        if json["pre_tokenizer"]["type"] != "Split" {
            return Tokenizer::from_bytes(path, bytes);
        }
        json["post_processor"] = Value::Null;
        // Other programs list the special tokens, which are in the vocabulary anyway.
        json["added_tokens"] = json!([]);
        Tokenizer::from_bytes(path, json.to_string().as_bytes())
    }
}

/// What puts tokens around a text.
fn template(own: &Own, [first, last]: [Option<u32>; 2]) -> Value {
    let name = |id: u32| own.pipeline.id_to_token(id).unwrap_or_default();
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

/// Vocabularies of characters put no space before a line.
fn has_space_before(json: &Value) -> bool {
    let steps = json["normalizer"]["normalizers"].as_array();
    steps.is_some_and(|steps| steps.iter().any(|step| step["type"] == "Prepend"))
}

/// What running text has besides the steps of a line.
struct Running {
    /// The last steps of the normalizer.
    normalizers: [Value; 2],
    /// The first pre-tokenizer.
    split: Value,
    /// The last decoder.
    decoder: Value,
}

impl Running {
    fn new() -> Running {
        let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
        Running {
            normalizers: [
                // A first line that is empty gets no space, nor does any line that needs none.
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

    /// Leaves alone what [`Running::add_to`] has not made.
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
    fn other_programs_give_running_text_the_same_ids_and_the_same_text() {
        for vocabulary in vocabularies() {
            let around = [Some(1), None];
            let written = vocabulary.to_exported(&Surroundings { around, is_running: true });
            let theirs = Pipeline::from_bytes(&written).expect("the format of `tokenizers`");
            for text in TEXTS {
                let ids = vocabulary.encode_running(text);
                let found = theirs.encode(text, true).expect("ids");
                assert_eq!(found.get_ids(), [&[1], &ids[..]].concat(), "{text:?}");
                assert_eq!(theirs.encode(text, false).expect("ids").get_ids(), ids, "{text:?}");
                let decoded = theirs.decode(&ids, false).expect("a text");
                assert_eq!(decoded, vocabulary.decode_running(&ids), "{text:?}");
            }
        }
    }

    #[test]
    fn what_was_written_for_others_is_read_as_it_was() {
        for vocabulary in vocabularies() {
            for is_running in [false, true] {
                for around in [[None, None], [Some(1), None], [Some(1), Some(2)]] {
                    let written = vocabulary.to_exported(&Surroundings { around, is_running });
                    let read = Tokenizer::from_exported(Path::new("x"), written.as_bytes()).expect("ours");
                    assert_eq!(read.to_json(), vocabulary.to_json());
                }
            }
        }
    }
}
