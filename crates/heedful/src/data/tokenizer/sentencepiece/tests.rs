use super::super::foreign::charsmap::tests::written as charsmap;
use super::*;
use crate::data::tokenizer::SpecialRole;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn bytes_field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn number_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn piece(text: &str, score: f32, kind: u64) -> Vec<u8> {
    let score = [vec![2 << 3 | 5], score.to_le_bytes().to_vec()].concat();
    bytes_field(1, &[bytes_field(1, text.as_bytes()), score, number_field(3, kind)].concat())
}

/// A model of this type with these pieces; its normalization replaces tabs by spaces.
fn model(kind: u64, pieces: &[(&str, f32, u64)], trainer: &[(u64, u64)]) -> Vec<u8> {
    let mut out: Vec<u8> = pieces.iter().flat_map(|&(text, score, kind)| piece(text, score, kind)).collect();
    let fields = trainer.iter().flat_map(|&(number, value)| number_field(number, value));
    out.extend(bytes_field(2, &number_field(3, kind).into_iter().chain(fields).collect::<Vec<u8>>()));
    out.extend(bytes_field(3, &bytes_field(2, &charsmap(&[(b'\t', " ")]))));
    out
}

const PIECES: [(&str, f32, u64); 9] = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    ("▁", -3.0, 1),
    ("a", -4.0, 1),
    ("b", -5.0, 1),
    ("ab", -6.0, 1),
    ("▁ab", -7.0, 1),
    ("<", -8.0, 1),
];

fn read(bytes: &[u8]) -> Result<SentencePiece, TokenizerError> {
    SentencePiece::read("some.model", bytes)
}

fn pieces_of(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.encode(text).iter().map(|&id| tokenizer.piece(id)).collect()
}

#[test]
fn unigram_and_bpe_models_encode_and_decode() {
    for kind in [1, 2] {
        let tokenizer = read(&model(kind, &PIECES, &[])).expect("a model").tokenizer().expect("a tokenizer");
        assert_eq!(tokenizer.size(), PIECES.len());
        assert_eq!(pieces_of(&tokenizer, "ab\t  b你好 ab "), ["▁ab", "▁", "b", "<unk>", "▁ab"], "{kind}");
        assert_eq!(pieces_of(&tokenizer, "<s>"), ["▁", "<", "<unk>"], "{kind}");
        assert_eq!(tokenizer.decode(&tokenizer.encode(" ab  b ab")), "ab b ab");
        assert!(tokenizer.encode(" \t ").is_empty());
        assert_eq!(tokenizer.encode_continuation("ab"), [6]);
        assert_eq!(tokenizer.encode_continuation(" ab"), [7]);
        assert_eq!(tokenizer.words(&[1, 7, 5, 3, 4, 2]), [None, Some(0), Some(0), None, Some(1), None]);
        let special = [SpecialRole::Unk, SpecialRole::Bos, SpecialRole::Eos, SpecialRole::Pad];
        assert_eq!(special.map(|role| tokenizer.special(role)), [Some(0), Some(1), Some(2), None]);
        assert!(tokenizer.is_foreign() && tokenizer.is_special(1) && !tokenizer.is_special(3));
    }
}

#[test]
fn a_models_vocabulary_gives_the_ids() {
    let tokens = ["</s>", "<unk>", "▁ab", "other", "▁", "a", "<", "<pad>"];
    for kind in [1, 2] {
        let read = read(&model(kind, &PIECES, &[])).expect("a model");
        let tokenizer = read.tokenizer_for(&tokens, &["<pad>"]).expect("a tokenizer");
        assert_eq!(tokenizer.size(), tokens.len());
        // `b` and `ab` are pieces but not tokens of the model: each is one unknown token.
        assert_eq!(tokenizer.encode("ab bab"), [2, 4, 1, 1], "{kind}");
        // The characters of `other` are not pieces, but together they are a token of the model. With BPE they
        // stay unknown.
        assert_eq!(tokenizer.encode("other"), [4, if kind == 1 { 3 } else { 1 }]);
        assert_eq!(tokenizer.decode(&[2, 3, 7, 5, 0]), "abothera");
        assert_eq!((tokenizer.piece(3), tokenizer.piece(8)), ("other".to_owned(), "<no token 8>".to_owned()));
        assert_eq!(tokenizer.special(SpecialRole::Pad), Some(7));
        assert_eq!(tokenizer.id_of("▁ab"), Some(2));
        let again = Tokenizer::foreign(&tokenizer.to_json()).expect("its own file");
        assert_eq!(again.to_json(), tokenizer.to_json());
        assert_eq!(again.encode("ab bab other"), tokenizer.encode("ab bab other"));
    }
}

#[test]
fn unknown_characters_become_bytes_and_text_never_matches_a_byte_token() {
    let names: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
    let bytes = names.iter().map(|name| (name.as_str(), 0.0, 6));
    let pieces: Vec<(&str, f32, u64)> = PIECES.into_iter().chain(bytes).collect();
    for kind in [1, 2] {
        let tokenizer =
            read(&model(kind, &pieces, &[(35, 1)])).expect("a model").tokenizer().expect("a tokenizer");
        for text in ["aéb", "<0x41>", "ab 你好", "<s>"] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text, "{kind}");
        }
        assert_eq!(pieces_of(&tokenizer, "é"), ["▁", "<0xC3>", "<0xA9>"]);
        assert!(tokenizer.encode("<0x41>").len() > 4);
    }
}

#[test]
fn user_defined_pieces_are_matched() {
    let pieces: Vec<(&str, f32, u64)> =
        PIECES.into_iter().chain([("<sep>", 0.0, 4), ("x", -1.0, 5)]).collect();
    let tokenizer = read(&model(1, &pieces, &[])).expect("a model").tokenizer().expect("a tokenizer");
    assert_eq!(pieces_of(&tokenizer, "ab<sep>ab x"), ["▁ab", "<sep>", "ab", "▁", "<unk>"]);
    assert_eq!(tokenizer.decode(&[7, 9, 10]), "ab<sep>x");
}

#[test]
fn unsupported_models_are_rejected_by_name() {
    let refused = |bytes: &[u8]| {
        let read = read(bytes).and_then(|model| model.tokenizer());
        read.expect_err("a bad model").to_string()
    };
    assert!(refused(&model(3, &PIECES, &[])).contains("whole words"));
    assert!(refused(&model(4, &PIECES, &[])).contains("characters"));
    assert!(refused(&model(1, &PIECES, &[(24, 1)])).contains("spaces follow words"));
    assert!(refused(&model(1, &PIECES[1..], &[])).contains("unknown"));
    assert!(refused(&model(1, &[PIECES[0], PIECES[4], PIECES[4]], &[])).contains("twice"));
    assert!(refused(&model(2, &[PIECES[0], ("x", 0.0, 4)], &[])).contains("user-defined"));
    assert!(refused(b"not a model").contains("some.model"));
    assert!(refused(&[]).contains("unknown"));
}

#[test]
fn every_truncation_is_an_error_or_has_fewer_pieces() {
    let whole = model(1, &PIECES, &[]);
    for end in 0..whole.len() {
        if let Ok(model) = read(&whole[..end]) {
            assert!(model.pieces.len() <= PIECES.len());
            let _ = model.tokenizer();
        }
    }
}

#[test]
fn a_vocabulary_without_a_model_is_segmented_by_token_rank() {
    let model = read(&model(1, &PIECES, &[])).expect("a model");
    let known: Vec<&str> = PIECES.iter().map(|(text, ..)| *text).collect();
    assert!(model.covers(&known));
    let tokens = ["</s>", "<unk>", "▁the", "s", "▁cat", "c", "a", "t", "▁"];
    assert!(!model.covers(&tokens));
    let tokenizer = model.by_rank(&tokens).tokenizer_for(&tokens, &[]).expect("a tokenizer");
    assert_eq!(pieces_of(&tokenizer, "the cats"), ["▁the", "▁cat", "s"]);
    assert_eq!(pieces_of(&tokenizer, "act"), ["▁", "a", "c", "t"]);
    assert_eq!(tokenizer.decode(&tokenizer.encode("the cats")), "the cats");
    assert_eq!(tokenizer.size(), tokens.len());
    assert_eq!(tokenizer.special(SpecialRole::Eos), Some(0));
}
