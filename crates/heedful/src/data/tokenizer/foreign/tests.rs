use serde_json::{Value, json};

use super::super::{CachingTokenizer, Tokenizer};
use super::*;

fn bert() -> Value {
    let names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "play", "##ing", "##s", "!", "[", "cl"];
    let vocabulary: Value = names
        .iter()
        .enumerate()
        .map(|(id, name)| ((*name).to_owned(), json!(id)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let added: Vec<Value> = (0..5).map(|id| added(id, names[id])).collect();
    json!({"version": "1.0", "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0}, "padding": null,
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary}})
}

fn added(id: usize, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        "special": true})
}

fn gpt2() -> Value {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut names: Vec<String> =
        (0..=u8::MAX).filter(|&byte| is_printable(byte)).map(|byte| char::from(byte).to_string()).collect();
    names.extend((0x100..0x144).map(|code| char::from_u32(code).expect("a letter").to_string()));
    names.extend(["Ġt", "Ġth", "Ġthe", "<|endoftext|>"].map(str::to_owned));
    let vocabulary: Value = names
        .iter()
        .enumerate()
        .map(|(id, name)| (name.clone(), json!(id)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let level =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [added(259, "<|endoftext|>")],
        "normalizer": null, "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "vocab": vocabulary,
            "merges": ["Ġ t", "Ġt h", "Ġth e"]}})
}

fn unigram() -> Value {
    json!({"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]], "byte_fallback": false}})
}

fn read(file: &Value) -> Tokenizer {
    Tokenizer::foreign(&file.to_string()).expect("a known file")
}

fn shown(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.encode(text).iter().map(|&id| tokenizer.piece(id)).collect()
}

#[test]
fn word_pieces_are_those_of_bert() {
    let tokenizer = read(&bert());
    assert_eq!(
        shown(&tokenizer, "The playing, plays!"),
        ["the", "play", "##ing", "[UNK]", "play", "##s", "!"]
    );
    assert_eq!(tokenizer.decode(&[2, 5, 6, 7, 9, 3]), "the playing!");
    assert_eq!(tokenizer.words(&[2, 5, 6, 7, 9, 3]), [None, Some(0), Some(1), Some(1), Some(2), None]);
    // Text never matches a special token.
    assert_eq!(shown(&tokenizer, "[CLS]"), ["[", "cl", "##s", "[UNK]"]);
    let roles = [
        SpecialRole::Cls,
        SpecialRole::Sep,
        SpecialRole::Mask,
        SpecialRole::Pad,
        SpecialRole::Unk,
        SpecialRole::Eos,
    ];
    assert_eq!(
        roles.map(|role| tokenizer.special(role)),
        [Some(2), Some(3), Some(4), Some(0), Some(1), None]
    );
    assert_eq!(tokenizer.token_text(7), "ing");
}

#[test]
fn byte_level_pieces_are_lossless() {
    let tokenizer = read(&gpt2());
    assert_eq!(shown(&tokenizer, "a the"), ["a", "▁the"]);
    for text in ["", "the", " 你好\n\tx  ", "<|endoftext|>", "naïve 🙂"] {
        let ids = tokenizer.encode_multiline(text);
        assert_eq!(tokenizer.decode_multiline(&ids), text);
        assert!(!ids.contains(&259));
    }
    assert_eq!(tokenizer.decode(&tokenizer.encode("a the")), "a the");
    assert_eq!(tokenizer.special(SpecialRole::Eos), Some(259));
    assert_eq!(tokenizer.piece(259), "<|endoftext|>");
    let mut encoder = CachingTokenizer::new(&tokenizer);
    assert_eq!(encoder.encode_line("a"), tokenizer.encode("a\n"));
    assert_eq!(tokenizer.decode(&[u32::MAX]), "\u{FFFD}");
}

#[test]
fn files_are_written_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    for file in [bert(), gpt2()] {
        std::fs::write(&path, format!("{file:#}\n")).expect("room");
        let loaded = Tokenizer::load(&path).expect("a known file");
        let before = std::fs::read(&path).expect("it was written");
        loaded.save(&path).expect("room");
        assert_eq!(std::fs::read(&path).expect("it was written"), before);
        let refused = Tokenizer::load_native(&path).expect_err("special tokens elsewhere").to_string();
        assert!(refused.contains("special tokens"), "{refused}");
    }
}

#[test]
fn unsupported_features_are_rejected_by_name() {
    let refused = |mut file: Value, pointer: &str, value: Value| {
        *file.pointer_mut(pointer).expect("a part") = value;
        Tokenizer::foreign(&file.to_string()).expect_err("another file")
    };
    let cases = [
        (bert(), "/model/type", json!("WordLevel"), "WordLevel"),
        (bert(), "/model/vocab/the", json!(77), "gap"),
        (bert(), "/model/unk_token", json!("none"), "unknown token"),
        (bert(), "/model/max_input_chars_per_word", json!(1_000_000_000), "limits"),
        (bert(), "/pre_tokenizer", json!({"type": "Split"}), "Split"),
        (bert(), "/decoder", json!({"type": "CTC"}), "CTC"),
        (bert(), "/normalizer", json!({"type": "Unheard"}), "Unheard"),
        (unigram(), "/decoder", json!({"type": "Strip", "content": " ", "start": 7, "stop": 7}), "Strip"),
        (bert(), "/added_tokens/0/content", json!("[pad]"), "[pad]"),
        (bert(), "/added_tokens/0/special", json!(false), "not special"),
        (gpt2(), "/model/dropout", json!(0.1), "random"),
        (gpt2(), "/model/end_of_word_suffix", json!("</w>"), "end of words"),
        (gpt2(), "/model/merges", json!(["x yz"]), "model"),
    ];
    for (file, pointer, value, named) in cases {
        let message = refused(file, pointer, value);
        assert!(message.contains(named), "{pointer}: {message}");
    }
}

#[test]
fn added_tokens_are_matched_in_every_piece_format() {
    let tokens = ["LibreOffice", "the playing"].map(str::to_owned);
    for (file, text, shown_as) in [
        (bert(), "The LibreOffice the playing the LibreOffices", "LibreOffice"),
        (gpt2(), "a LibreOffice the playing x", "▁LibreOffice"),
    ] {
        let before = read(&file);
        let with = before.with_added_tokens(&tokens, |_| false).expect("new tokens");
        let (after, first) = (with.tokenizer, before.size() as u32);
        assert_eq!(after.size(), before.size() + 2);
        let ids = after.encode(text);
        assert_eq!(
            ids.iter().filter(|&&id| id >= first).copied().collect::<Vec<_>>(),
            [first, first + 1],
            "{ids:?}"
        );
        assert_eq!(after.piece(first), shown_as);
        assert_eq!(with.pieces[1], before.encode_continuation(" the playing"));
        // The file round-trips, and the original tokens keep their ids.
        let again = Tokenizer::foreign(&after.to_json()).expect("as it was written");
        assert_eq!(again.encode(text), ids);
        assert_eq!(again.encode("the"), before.encode("the"));
        assert!(again.decode(&ids).contains("LibreOffice"));
    }
    let after = read(&gpt2()).with_added_tokens(&tokens, |_| false).expect("new tokens").tokenizer;
    let text = "x LibreOffice the playing 你好";
    assert_eq!(after.decode(&after.encode(text)), text);
}
