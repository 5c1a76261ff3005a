use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::data::special::{BOS, EOS, PAD, UNK};

const KINDS: [VocabularyKind; 4] =
    [VocabularyKind::Bpe, VocabularyKind::Unigram, VocabularyKind::Word, VocabularyKind::Character];

/// A small corpus in several scripts.
fn corpus() -> Vec<String> {
    let subjects =
        ["the small dog", "a red house", "my old friend", "this song", "der kleine Hund", "ein rotes Haus"];
    let rest =
        ["sleeps under the tree.", "is not for sale!", "sieht den Baum, nicht wahr?", "在 2024 年很有名。"];
    let more = [
        "一套自动驾驶解决方案",
        "一辆红色的汽车",
        "それはペンです。",
        "привет, мир",
        "안녕 세계",
        "naïve café",
    ];
    let pairs = subjects.iter().flat_map(|subject| rest.iter().map(move |rest| format!("{subject} {rest}")));
    pairs.chain(more.iter().flat_map(|line| [(*line).to_owned(), (*line).to_owned()])).collect()
}

fn trained(options: &VocabularyOptions) -> Tokenizer {
    let mut counts = WordCounts::new(options);
    corpus().iter().for_each(|line| counts.add(line));
    counts.train().expect("a vocabulary")
}

fn options(kind: VocabularyKind, boundaries: Boundaries) -> VocabularyOptions {
    VocabularyOptions { kind, boundaries, size: 600, ..VocabularyOptions::default() }
}

/// The pipeline of the `tokenizers` crate.
fn pipeline(tokenizer: &Tokenizer) -> &Pipeline {
    match &tokenizer.origin {
        Origin::Native(native) => &native.pipeline,
        Origin::Foreign(_) => panic!("these vocabularies are native"),
    }
}

/// One lossless tokenizer of every kind.
static EXACT: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    let both = [Boundaries::Words, Boundaries::Spaces];
    KINDS.iter().flat_map(|&kind| both.map(|boundaries| trained(&options(kind, boundaries)))).collect()
});

/// Strings that are hard for tokenizers: many scripts, all kinds of spaces, text that looks like special
/// tokens.
fn hard_text() -> impl Strategy<Value = String> {
    let any_character =
        any::<char>().prop_filter("lines have no newline", |&c| c != '\n').prop_map(String::from);
    let scripts = prop::sample::select(vec![
        "the",
        "Haus",
        "自动",
        "驾驶",
        "かな",
        "カナ",
        "привет",
        "مرحبا",
        "שלום",
        "नमस्ते",
        "สวัสดี",
        "안녕",
        "ἀρχή",
        "e\u{301}",
        "👩\u{200D}👩\u{200D}👧",
        "🇩🇪",
        "✌🏽",
        "𝔘𝔫𝔦",
        "\u{1F468}",
        "ﬁ",
        "Ａ",
        "①",
        "٣",
    ]);
    let spaces = prop::sample::select(vec![
        " ", "  ", "\t", "\r", "\u{A0}", "\u{2028}", "\u{3000}", "\u{200B}", "\u{FEFF}", "▁", "\u{0}",
        "\u{85}",
    ]);
    let special = prop::sample::select(vec![
        "<unk>", "<eos>", "<bos>", "<pad>", "<0x41>", "<0xE4>", "<", ">", "<0x", "[UNK]", "##", "\u{FFFD}",
    ]);
    let part = prop_oneof![
        any_character,
        scripts.prop_map(str::to_owned),
        spaces.prop_map(str::to_owned),
        special.prop_map(str::to_owned)
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn every_line_round_trips_exactly(text in hard_text()) {
        for tokenizer in EXACT.iter() {
            let ids = tokenizer.encode(&text);
            prop_assert_eq!(tokenizer.decode(&ids), text.as_str());
            prop_assert!(ids.iter().all(|&id| id >= 4 && (id as usize) < tokenizer.size()));
            prop_assert_eq!(tokenizer.words(&ids).len(), ids.len());
        }
    }

    #[test]
    fn ids_are_those_of_the_tokenizers_crate(text in hard_text()) {
        for tokenizer in EXACT.iter() {
            let encoding = pipeline(tokenizer).encode(text.as_str(), false).expect("every byte has a token");
            let ids = tokenizer.encode(&text);
            prop_assert_eq!(encoding.get_ids(), ids.as_slice());
            prop_assert_eq!(pipeline(tokenizer).decode(&ids, false).expect("known ids"), text.as_str());
        }
    }

    #[test]
    fn a_caching_encoder_gives_the_same_ids(texts in prop::collection::vec(hard_text(), 1..8)) {
        for tokenizer in EXACT.iter() {
            let mut encoder = CachingTokenizer::new(tokenizer);
            for text in texts.iter().chain(&texts) {
                prop_assert_eq!(encoder.encode(text), tokenizer.encode(text));
            }
        }
    }
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    for kind in KINDS {
        let options = options(kind, Boundaries::Words);
        let first = trained(&options).to_json();
        for _ in 0..3 {
            assert_eq!(trained(&options).to_json(), first, "{kind:?}");
        }
        // The order of lines does not matter either.
        let mut counts = WordCounts::new(&options);
        corpus().iter().rev().for_each(|line| counts.add(line));
        assert_eq!(counts.train().expect("a vocabulary").to_json(), first, "{kind:?}");
    }
}

#[test]
fn special_tokens_have_their_ids_and_frequent_words_are_pieces() {
    for kind in KINDS {
        let tokenizer = trained(&options(kind, Boundaries::Words));
        let shown: Vec<String> = [PAD, BOS, EOS, UNK, 4, 259].map(|id| tokenizer.piece(id)).into();
        assert_eq!(shown, ["<pad>", "<bos>", "<eos>", "<unk>", "<0x00>", "<0xFF>"]);
        let pieces: Vec<String> =
            tokenizer.encode("the house").iter().map(|&id| tokenizer.piece(id)).collect();
        match kind {
            VocabularyKind::Character => assert_eq!(pieces, ["t", "h", "e", "▁", "h", "o", "u", "s", "e"]),
            _ => assert_eq!(pieces, ["▁the", "▁house"], "{kind:?}"),
        }
    }
}

#[test]
fn a_saved_vocabulary_is_the_same_vocabulary() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in KINDS {
        for normalization in [NormalizationForm::None, NormalizationForm::Nfc, NormalizationForm::Nfkc] {
            let saved = trained(&VocabularyOptions { normalization, ..options(kind, Boundaries::Words) });
            let path = folder.path().join("tokenizer.json");
            saved.save(&path).expect("a written file");
            let loaded = Tokenizer::load(&path).expect("our own file");
            assert_eq!(loaded.to_json(), saved.to_json());
            for text in ["ein kleiner Hund sieht 自动驾驶 — ﬁ\u{301} Å", "", " ", "x"] {
                assert_eq!(loaded.encode(text), saved.encode(text));
            }
        }
    }
}

#[test]
fn normalization_maps_equivalent_characters_to_one_form() {
    let with = |normalization| {
        trained(&VocabularyOptions { normalization, ..options(VocabularyKind::Bpe, Boundaries::Words) })
    };
    let (nfc, nfkc) = (with(NormalizationForm::Nfc), with(NormalizationForm::Nfkc));
    assert_eq!(nfc.encode("cafe\u{301}"), nfc.encode("café"));
    assert_eq!(nfc.decode(&nfc.encode("cafe\u{301} ﬁ")), "café ﬁ");
    assert_eq!(nfkc.decode(&nfkc.encode("ﬁ Ａ")), "fi A");
    for tokenizer in [nfc, nfkc] {
        for text in ["cafe\u{301} ﬁ Ａ①\u{3000}x", "\u{A0}一"] {
            let encoding = pipeline(&tokenizer).encode(text, false).expect("every byte has a token");
            assert_eq!(encoding.get_ids(), tokenizer.encode(text));
        }
    }
}

#[test]
fn invalid_ids_decode_to_visible_text() {
    let tokenizer = trained(&options(VocabularyKind::Bpe, Boundaries::Words));
    assert_eq!(tokenizer.decode(&[BOS, 4 + 0xE4, EOS]), "\u{FFFD}");
    assert_eq!(tokenizer.decode(&[u32::MAX]), "\u{FFFD}");
    assert_eq!(tokenizer.decode(&[BOS, EOS, PAD, UNK]), "");
    assert_eq!(tokenizer.piece(u32::MAX), "<no token 4294967295>");
}

#[test]
fn words_are_separated_by_white_space() {
    let tokenizer = trained(&options(VocabularyKind::Bpe, Boundaries::Words));
    let mut ids = tokenizer.encode("the dog, 好 xyz");
    ids.push(EOS);
    let words = tokenizer.words(&ids);
    let pieces: Vec<String> = ids.iter().map(|&id| tokenizer.piece(id)).collect();
    let word_of = |piece: &str| words[pieces.iter().position(|shown| shown == piece).expect("a piece")];
    assert_eq!((word_of("▁the"), word_of("▁dog"), word_of(",")), (Some(0), Some(1), Some(1)));
    assert_eq!(words[words.len() - 2], Some(3));
    assert_eq!(words.last(), Some(&None));
}

#[test]
fn bad_options_say_what_to_change() {
    let message = |options: &VocabularyOptions, text: &str| {
        let mut counts = WordCounts::new(options);
        counts.add(text);
        counts.train().expect_err("bad options").to_string()
    };
    let small = VocabularyOptions { size: 262, ..VocabularyOptions::default() };
    assert!(message(&small, "a b c").contains("need 264"), "{}", message(&small, "a b c"));
    let coverage = VocabularyOptions { coverage: 1.5, ..VocabularyOptions::default() };
    assert!(message(&coverage, "a").contains("1.5"));
    assert!(message(&VocabularyOptions::default(), "").contains("empty"));
}

#[test]
fn foreign_and_damaged_files_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    let message = |content: &str| {
        fs::write(&path, content).expect("a written file");
        Tokenizer::load(&path).expect_err("a bad file").to_string()
    };
    let good = trained(&options(VocabularyKind::Bpe, Boundaries::Words)).to_json();
    assert!(message("{").contains("not a tokenizer.json"));
    assert!(message(&good[..good.len() / 2]).contains("not a tokenizer.json"));
    assert!(message(&good.replacen("<eos>", "</s>", 1)).contains("its token 2 is not <eos>"));
    assert!(
        message(&good.replacen(r#""byte_fallback":true"#, r#""byte_fallback":false"#, 1))
            .contains("as bytes")
    );
    assert!(message(&good.replacen(r"\\p{N}", r"\\p{N}+", 1)).contains("other rules"));
    // In the decoder, where the crate would panic.
    for (from, to) in [
        ("\"ByteFallback\"", "\"ByteFallback\" x"),
        ("\"ByteFallback\"", "\"\\ud800\""),
        ("\"Fuse\"", "\"Fu"),
    ] {
        assert!(message(&good.replacen(from, to, 1)).contains("not a tokenizer.json"), "{from} {to}");
    }
    fs::remove_file(&path).expect("a removed file");
    assert!(Tokenizer::load(&path).expect_err("no file").to_string().contains("tokenizer.json"));
}

#[test]
fn lines_of_megabytes_are_encoded() {
    for tokenizer in EXACT.iter() {
        for text in ["ab".repeat(1 << 18), "the ".repeat(1 << 18), "好".repeat(1 << 18)] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(&text)), text);
        }
    }
}

#[test]
fn added_tokens_are_single_tokens_and_every_text_still_round_trips() {
    let tokens = ["LibreOffice", "dog house", "自动驾驶", "C++", "tree."].map(str::to_owned);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    for before in EXACT.iter() {
        let ExtendedTokenizer { tokenizer, pieces } =
            before.with_added_tokens(&tokens, |_| false).expect("new tokens");
        let added = tokens.iter().filter(|token| !before.has_token(token)).count();
        assert_eq!((tokenizer.size(), pieces.len()), (before.size() + added, added));
        assert!(pieces.iter().all(|pieces| !pieces.is_empty()));
        tokenizer.save(&path).expect("room on the disk");
        let loaded = Tokenizer::load(&path).expect("as it was saved");
        assert!(!loaded.is_foreign());
        let mut caching = CachingTokenizer::new(&loaded);
        for text in [
            "the small dog house of LibreOffice",
            "LibreOffice LibreOffices xLibreOffice",
            "一套自动驾驶解决方案",
            "C++, C+ and C++17  under the tree.",
            "",
            " LibreOffice ",
        ] {
            let ids = tokenizer.encode(text);
            assert_eq!(tokenizer.decode(&ids), text);
            assert_eq!(loaded.encode(text), ids);
            assert_eq!(caching.encode(text), ids);
            // The Python package gives the same ids for the same file.
            let encoding = pipeline(&loaded).encode(text, false).expect("any text can be encoded");
            assert_eq!(encoding.get_ids(), ids, "{text:?}");
        }
        let id = tokenizer.encode("LibreOffice")[0];
        assert_eq!(tokenizer.encode("use LibreOffice!").iter().filter(|&&other| other == id).count(), 1);
        assert!(tokenizer.piece(id).ends_with("LibreOffice"));
        assert_eq!(tokenizer.token_text(id).trim(), "LibreOffice");
        // More can follow.
        let more = loaded
            .with_added_tokens(&["another".to_owned(), "LibreOffice".to_owned()], |_| false)
            .expect("one");
        assert_eq!((more.tokenizer.size(), more.pieces.len()), (loaded.size() + 1, 1));
        assert_eq!(more.tokenizer.encode("LibreOffice"), [id]);
        let special =
            loaded.with_added_tokens(&["<eos>".to_owned()], |_| false).err().expect("a special token");
        assert!(special.to_string().contains("`<eos>`"), "{special}");
    }
}
