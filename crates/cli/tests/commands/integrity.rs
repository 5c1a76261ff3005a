//! Model folders are checksummed: every command refuses a folder in which a file is damaged or belongs to
//! another model.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::support::{Workplace, text};
use heedful::tensor::random::Stream;

/// A workplace with a translator in `run`, a classifier in `judge`, and a translator with different weights
/// and a different vocabulary of the same size in `other`.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(300);
        place.good(&Workplace::training("run", "--steps 7"));
        let chinese = place.lines("train.zh");
        let labelled =
            |(number, line): (usize, &String)| format!("{}\t{line}\n", ["bad", "good"][number % 2]);
        let lines: String = chinese.iter().enumerate().map(labelled).collect();
        place.write("judged.tsv", lines.as_bytes());
        place.good(
            "train --task classify --label-text judged.tsv --preset tiny --vocabulary-kind character \
             --vocabulary-size 700 --batch-tokens 512 --steps 3 --out judge",
        );
        place
    })
}

/// A copy of a model or run that a test may damage.
fn copy(name: &str, to: &str) {
    fn copy_folder(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("a new name");
        for entry in fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.path().is_dir() {
                copy_folder(&entry.path(), &to.join(entry.file_name()));
            } else {
                fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
            }
        }
    }
    copy_folder(&place().path(name), &place().path(to));
}

/// The vocabulary with two characters swapped: valid and of the same size, but it gives different text.
fn other_vocabulary(folder: &str) -> String {
    let vocabulary = text(&place().read(&format!("{folder}/tokenizer.json")));
    let swapped =
        vocabulary.replace("\"a\"", "\"\u{1}\"").replace("\"e\"", "\"a\"").replace("\"\u{1}\"", "\"e\"");
    assert!(swapped != vocabulary && swapped.len() == vocabulary.len());
    swapped
}

fn refused(line: &str, file: &str, remedy: &str) {
    let output = place().run(line);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{line}: {message}");
    assert!(message.contains(file) && message.contains(remedy), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
}

#[test]
fn a_file_of_another_model_is_refused_by_every_command() {
    copy("run", "mixed");
    place().write("mixed/tokenizer.json", other_vocabulary("mixed").as_bytes());
    let lines = [
        "translate mixed valid.zh",
        "score mixed --src valid.zh --tgt valid.en",
        "explain mixed 一辆新车",
        "explain heads mixed --src valid.zh --tgt valid.en",
        "explain prune mixed --src valid.zh --ref valid.en",
        "explain example --model mixed",
        "average mixed --last 1 --out never",
        "vocab --show mixed",
        "vocab --encode mixed",
        "serve mixed --port 0",
        "train --resume mixed --steps 9",
    ];
    for line in lines {
        refused(
            line,
            "mixed/tokenizer.json is not the file that",
            "copy the whole folder of the model again",
        );
    }
    // Without a saved model, its checkpoints have the checksums.
    fs::remove_file(place().path("mixed/model.safetensors")).expect("it is there");
    fs::remove_file(place().path("mixed/corpus.bin")).expect("it is there");
    for line in ["average mixed --last 1 --out never", "train --resume mixed --steps 9"] {
        refused(
            line,
            "mixed/tokenizer.json is not the file that the checkpoint of step 7",
            "of the same run",
        );
    }
    assert!(!place().path("never").exists());
}

#[test]
fn a_flipped_bit_in_any_file_is_refused() {
    for (model, command) in
        [("run", "translate damaged-run --text x"), ("judge", "classify damaged-judge --text x")]
    {
        let damaged = format!("damaged-{model}");
        copy(model, &damaged);
        place().good(command);
        for (number, name) in
            ["config.json", "tokenizer.json", "labels.json", "model.safetensors"].into_iter().enumerate()
        {
            let path = place().path(&damaged).join(name);
            let Ok(whole) = fs::read(&path) else { continue };
            for draw in 0..4 {
                let place = (Stream::new(3, number as u64, 0).uniform(draw) * whole.len() as f32) as usize;
                let mut flipped = whole.clone();
                flipped[place] ^= 1 << draw;
                fs::write(&path, flipped).expect("room on the disk");
                refused(command, name, "copy the");
            }
            fs::write(&path, whole).expect("room on the disk");
        }
        place().good(command);
    }
}

#[test]
fn intended_changes_can_be_sealed_and_damage_cannot() {
    copy("run", "edited");
    let config = text(&place().read("edited/config.json"));
    assert!(config.contains("\"heads\": 2"), "{config}");
    place().write("edited/config.json", config.replace("\"heads\": 2", "\"heads\": 4").as_bytes());
    refused(
        "translate edited valid.zh",
        "edited/config.json is not the file that",
        "run: heedful seal edited",
    );
    place().good("seal edited");
    assert_eq!(place().good("translate edited valid.zh").lines().count(), 40);

    let mut weights = place().read("edited/model.safetensors");
    let last = weights.len() - 1;
    weights[last] ^= 1;
    place().write("edited/model.safetensors", &weights);
    refused("seal edited", "edited/model.safetensors", "copy the file again");
    refused("translate edited valid.zh", "edited/model.safetensors", "copy the file again");
}

#[test]
fn a_resumed_run_with_another_configuration_keeps_its_model_usable() {
    copy("run", "resumed");
    place().good("train --resume resumed --steps 9 --label-smoothing 0.2 --validation-every 1000");
    place().good("translate resumed valid.zh");
}
