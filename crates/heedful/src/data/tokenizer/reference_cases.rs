//! Compares ids with those of the original implementations. `bench/peers/tokenizer_cases.py` writes the
//! reference cases for real models:
//!
//! ```sh
//! python3 bench/peers/tokenizer_cases.py FOLDER …
//! HEEDFUL_TOKENIZER_CASES=FOLDER cargo test -p heedful --lib reference_cases -- --ignored --nocapture
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{SentencePiece, Tokenizer};

#[derive(Deserialize)]
struct Case {
    /// A SentencePiece `.model`, or a tokenizer.json.
    model: PathBuf,
    /// The model's tokens, where its ids are not SentencePiece's.
    tokens: Option<Vec<String>>,
    texts: Vec<String>,
    ids: Vec<Vec<u32>>,
    decoded: Vec<String>,
}

fn tokenizer(case: &Case) -> Tokenizer {
    if case.model.extension().is_some_and(|extension| extension == "json") {
        return Tokenizer::load(&case.model).expect("a known tokenizer.json");
    }
    let model = SentencePiece::open(&case.model).expect("a SentencePiece model");
    let made = match &case.tokens {
        Some(tokens) => model.tokenizer_for(tokens, &[]),
        None => model.tokenizer(),
    };
    let made = made.expect("a tokenizer");
    let again = Tokenizer::from_bytes(Path::new("again"), made.to_json().as_bytes()).expect("its own file");
    assert_eq!(again.to_json(), made.to_json());
    again
}

#[test]
#[ignore = "needs cases that bench/peers/tokenizer_cases.py writes"]
fn ids_and_texts_are_those_of_the_original() {
    let folder = std::env::var_os("HEEDFUL_TOKENIZER_CASES").expect("HEEDFUL_TOKENIZER_CASES names a folder");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "case"));
    files.sort();
    assert!(!files.is_empty(), "the folder has no *.case");
    let mut all_equal = true;
    for file in files {
        let case: Case = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("a case");
        let tokenizer = tokenizer(&case);
        let (mut ids_differ, mut texts_differ) = (0, 0);
        for ((text, ids), decoded) in case.texts.iter().zip(&case.ids).zip(&case.decoded) {
            let found = tokenizer.encode(text);
            if found != *ids {
                if ids_differ < 3 {
                    let pieces = |ids: &[u32]| ids.iter().map(|&id| tokenizer.piece(id)).collect::<Vec<_>>();
                    println!("  {text:?}\n    {:?}\n    {:?}", pieces(ids), pieces(&found));
                }
                ids_differ += 1;
            }
            let written = tokenizer.decode(ids);
            if written != *decoded {
                if texts_differ < 3 {
                    println!("  {decoded:?}\n  {written:?}");
                }
                texts_differ += 1;
            }
        }
        let name = file.file_stem().unwrap_or_default().display().to_string();
        println!(
            "{name}: {} texts, {ids_differ} with other ids, {texts_differ} decoded otherwise",
            case.texts.len()
        );
        all_equal &= ids_differ + texts_differ == 0;
    }
    assert!(all_equal, "see above");
}
