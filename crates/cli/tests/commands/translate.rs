//! `heedful translate` and `heedful score` as processes, with a small model trained by the tests.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, text};
use serde_json::Value;

/// A workplace with a model in `run`, which every test shares.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(800);
        place.good(&Workplace::training("run", "--steps 60 --lr 3e-3"));
        place
    })
}

fn translated(line: &str) -> Vec<String> {
    place().good(line).lines().map(str::to_owned).collect()
}

#[test]
fn one_line_in_one_line_out_in_order_and_blank_stays_blank() {
    let sources = place().lines("valid.zh");
    let alone: Vec<String> = sources[..4]
        .iter()
        .map(|source| translated(&format!("translate run --text {source}")).remove(0))
        .collect();
    place().write(
        "gaps.zh",
        format!("{}\n\n{}\n   \n{}\n{}", sources[0], sources[1], sources[2], sources[3]).as_bytes(),
    );
    let together = translated("translate run gaps.zh");
    assert_eq!(together, [&alone[0], "", &alone[1], "", &alone[2], &alone[3]]);
}

#[test]
fn neither_batch_nor_order_nor_threads_change_a_bit_of_a_result() {
    let all = translated("translate run valid.zh --json");
    for more in ["--batch-tokens 1", "--batch-tokens 37", "--threads 1", "--threads 3"] {
        assert_eq!(translated(&format!("translate run valid.zh --json {more}")), all, "{more}");
    }
    let mut sources = place().lines("valid.zh");
    sources.reverse();
    place().write("reversed.zh", sources.join("\n").as_bytes());
    let without_line = |line: &String| {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        value["line"] = Value::Null;
        value
    };
    let reversed: Vec<Value> =
        translated("translate run reversed.zh --json").iter().rev().map(without_line).collect();
    assert_eq!(reversed, all.iter().map(without_line).collect::<Vec<_>>());
}

#[test]
fn a_translation_is_written_before_the_next_line_is_needed() {
    let mut child = place().command("translate run").stdin(Stdio::piped()).running();
    let (mut input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let mut output = BufReader::new(output);
    for source in &place().lines("valid.zh")[..3] {
        writeln!(input, "{source}").expect("it reads");
        let mut answer = String::new();
        output.read_line(&mut answer).expect("it answers");
        assert!(answer.ends_with('\n'), "{answer:?}");
    }
    drop(input);
    assert!(child.ended().success());
}

#[test]
fn n_best_lists_are_ordered_and_scores_are_those_of_score() {
    let lists = translated("translate run valid.zh --n-best 3 --beam 5 --compute f32");
    assert_eq!(lists.len(), 3 * 40);
    let fields: Vec<Vec<&str>> = lists.iter().map(|line| line.split(" ||| ").collect()).collect();
    let number = |field: &str| field.parse::<f64>().expect("a number");
    for list in fields.chunks(3) {
        assert!(list.iter().all(|fields| fields[0] == list[0][0]));
        assert!(number(list[0][2]) >= number(list[1][2]) && number(list[1][2]) >= number(list[2][2]));
    }
    let lines = translated("translate run valid.zh --json --compute f32");
    let best: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["translations"][0].clone())
        .collect();
    let texts: Vec<&str> = best.iter().map(|best| best["text"].as_str().expect("text")).collect();
    place().write("translated.en", (texts.join("\n") + "\n").as_bytes());
    let scores = translated("score run --src valid.zh --tgt translated.en --compute f32");
    assert_eq!(scores.len(), 40);
    for (score, best) in scores.iter().zip(&best) {
        let reported = best["log_probability"].as_f64().expect("a number");
        assert_eq!(*score, format!("{reported:.6}"));
    }
}

#[test]
fn an_ensemble_of_a_model_with_itself_translates_like_the_model() {
    let alone = translated("translate run valid.zh --json --align");
    assert_eq!(translated("translate run run run valid.zh --json --align"), alone);
    let text = &place().lines("valid.zh")[0];
    let by_text = translated(&format!("translate run run --text {text} --json --align"));
    assert_eq!(by_text, alone[..1]);
}

#[test]
fn repeated_lines_have_the_same_translation() {
    let sources = &place().lines("valid.zh")[..5];
    let alone = translated("translate run valid.zh --scores");
    let repeated: Vec<&str> = sources.iter().cycle().take(42).map(String::as_str).collect();
    place().write("repeated.zh", repeated.join("\n").as_bytes());
    let expected: Vec<String> = alone[..5].iter().cycle().take(42).cloned().collect();
    assert_eq!(translated("translate run repeated.zh --scores"), expected);
    assert_eq!(translated("translate run repeated.zh --scores --batch-tokens 1"), expected);
}

#[test]
fn a_translation_begins_with_its_prefix() {
    let free = translated("translate run valid.zh --scores");
    let prefix = |i: usize| if i % 3 == 1 { "" } else { "which of the" };
    let prefixes: Vec<&str> = (0..40).map(prefix).collect();
    place().write("prefixes.en", (prefixes.join("\n") + "\n").as_bytes());
    let forced = translated("translate run valid.zh --scores --prefix prefixes.en");
    for (i, (forced, free)) in forced.iter().zip(&free).enumerate() {
        match prefix(i) {
            "" => assert_eq!(forced, free),
            prefix => assert!(forced.starts_with(prefix), "{forced}"),
        }
    }
    // With any other lines, and for a text on the command line.
    let first = place().lines("valid.zh").swap_remove(0);
    place().write("one.en", b"which of the\n");
    assert_eq!(translated(&format!("translate run --text {first} --prefix one.en --scores")), forced[..1]);
    place().write("few.en", (prefixes[..39].join("\n") + "\n").as_bytes());
    let error = place().bad("translate run valid.zh --prefix few.en");
    assert!(error.contains("few.en: it ends after line 39, but valid.zh, line 40"), "{error}");
    place().write("many.en", (prefixes.join("\n") + "\na\n").as_bytes());
    let error = place().bad("translate run valid.zh --prefix many.en");
    assert!(error.contains("many.en: it has more lines than the text, which ends after line 40"), "{error}");
}

#[test]
fn a_term_of_the_source_has_its_translation() {
    let sources = place().lines("valid.zh");
    let free = translated("translate run valid.zh");
    // The last character of the first line, at any position in the other lines.
    let term = sources[0].chars().next_back().expect("a character");
    place().write("terms.tsv", format!("{term}\tgreen zebra\n").as_bytes());
    let printed = translated("translate run valid.zh --terms terms.tsv --beam 6 --n-best 2");
    for (i, (source, free)) in sources.iter().zip(&free).enumerate() {
        for line in &printed[2 * i..2 * i + 2] {
            assert_eq!(line.contains("green zebra"), source.contains(term), "{source}: {line}");
        }
        assert!(!free.contains("green zebra"));
    }
    let output = place().run("translate run valid.zh --terms terms.tsv --max-length 1");
    let warning = text(&output.stderr);
    assert!(output.status.success(), "{warning}");
    // The line named in the message depends on which finishes first.
    assert!(warning.contains("valid.zh, line "), "{warning}");
    assert!(warning.contains(": no translation with “green zebra” was possible"), "{warning}");
    let quiet = place().run("translate run valid.zh --terms terms.tsv --max-length 1 --quiet");
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn sampling_depends_on_the_seed_alone() {
    let draw =
        |seed| translated(&format!("translate run valid.zh --sample --top-k 20 --top-p 0.9 --seed {seed}"));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn attention_weights_of_every_head_are_written_and_sum_to_one() {
    let source = place().lines("valid.zh")[0].clone();
    translated(&format!("translate run --attention maps.json --text {source}"));
    let lines: Value = serde_json::from_slice(&place().read("maps.json")).expect("JSON");
    let layers = lines[0]["attention"].as_array().expect("layers");
    let kinds = |kind: &str| {
        layers.iter().filter(|layer| layer["layer"].as_str().is_some_and(|name| name.contains(kind))).count()
    };
    assert!(kinds("encoder") > 0 && kinds(".cross") > 0 && kinds("decoder") == 2 * kinds(".cross"));
    for layer in layers {
        for row in
            layer["heads"].as_array().expect("heads").iter().flat_map(|head| head.as_array().expect("rows"))
        {
            let sum: f64 = row
                .as_array()
                .expect("weights")
                .iter()
                .map(|weight| weight.as_f64().expect("a number"))
                .sum();
            assert!((sum - 1.0).abs() < 1e-3, "{sum}");
        }
    }
    translated(&format!("translate run --attention maps.safetensors --text {source}"));
    let bytes = place().read("maps.safetensors");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    assert_eq!(file.len(), layers.len());
    // Also for several lines, in their order, without blank ones.
    let [first, second] = [0, 1].map(|line| place().lines("valid.zh")[line].clone());
    place().write("three.zh", format!("{first}\n\n{second}\n").as_bytes());
    for (maps, name) in [("three.json", "json"), ("three.safetensors", "safetensors")] {
        translated(&format!("translate run three.zh --attention {maps}"));
        let bytes = place().read(maps);
        if name == "json" {
            let lines: Value = serde_json::from_slice(&bytes).expect("JSON");
            let numbers = lines.as_array().expect("lines").iter().map(|line| line["line"].as_u64());
            assert_eq!(numbers.collect::<Vec<_>>(), [Some(1), Some(3)]);
            assert_eq!(lines[0]["attention"], Value::Array(layers.clone()));
        } else {
            let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).expect("safetensors");
            let metadata = header.metadata().as_ref().expect("tokens");
            assert!(
                ["1.source", "1.target", "3.source", "3.target"]
                    .iter()
                    .all(|key| metadata.contains_key(*key))
            );
            let both = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
            assert_eq!(both.len(), 2 * layers.len());
            for (name, view) in file.tensors() {
                assert_eq!(both.tensor(&name).expect("line 1").data(), view.data(), "{name}");
            }
        }
    }
    place().write("blank.zh", b"\n\n");
    translated("translate run blank.zh --attention none.json");
    assert_eq!(place().read("none.json"), b"[]");
    let error = place().bad(&format!("translate run --attention maps.txt --text {source}"));
    assert!(error.contains(".json or .safetensors"), "{error}");
}

#[test]
fn alignments_name_words_that_exist() {
    let sources = place().lines("valid.zh");
    for (source, line) in sources.iter().zip(translated("translate run valid.zh --align")) {
        let (output, links) = line.rsplit_once(" ||| ").unwrap_or_else(|| panic!("{line}"));
        let words = [source.split_whitespace().count(), output.split_whitespace().count()];
        for link in links.split_whitespace() {
            let (from, to) = link.split_once('-').expect("a link");
            let (from, to): (usize, usize) = (from.parse().expect("a word"), to.parse().expect("a word"));
            assert!(from < words[0] && to < words[1], "{link} in {line}");
        }
    }
}

#[test]
fn a_file_appears_complete_or_not_at_all() {
    let lines = translated("translate run valid.zh");
    assert_eq!(place().good("translate run valid.zh -o all.en"), "");
    assert_eq!(place().lines("all.en"), lines);
    place().write("broken.zh", &[place().read("valid.zh"), b"\xff\xfe\n".to_vec()].concat());
    let error = place().bad("translate run broken.zh -o none.en");
    assert!(error.contains("broken.zh, line 41"), "{error}");
    assert!(!place().path("none.en").exists());
}

#[test]
fn strange_text_is_translated_like_any_other() {
    let long = "车 ".repeat(400);
    place()
        .write("strange.zh", format!("🙂👩‍👩‍👧 <eos> ▁ \u{200d}\u{feff}\n{long}\n\u{1}\u{7f}\tx\n").as_bytes());
    assert_eq!(translated("translate run strange.zh --beam 2 --max-length 20").len(), 3);
}

#[test]
fn translation_errors_give_a_reason() {
    let cases = [
        ("translate nowhere valid.zh", "nowhere"),
        ("translate . valid.zh", "config.json"),
        ("translate run nowhere.zh", "nowhere.zh"),
        ("translate run valid.zh --beam 0", "beam"),
        ("translate run valid.zh --n-best 9", "at least 9"),
        ("translate run valid.zh --sample --top-p 2", "top-p"),
        ("translate run valid.zh --compute int3", "bf16, f32"),
        ("translate run nowhere valid.zh", "nowhere"),
        ("translate run run valid.zh --without-head decoder.0.cross.1", "--without-head is for one model"),
        ("translate run valid.zh --text 一辆汽车", "valid.zh and --text: translate a file or texts"),
        ("translate run valid.zh --terms nowhere.tsv", "nowhere.tsv"),
        ("translate run valid.zh --terms valid.en", "valid.en, line 1: write a source term, a tab"),
        ("translate run valid.zh --terms valid.en --sample", "cannot be used with"),
        ("translate run valid.zh --prefix nowhere.en", "nowhere.en"),
        ("translate run valid.zh --prefix valid.en -o valid.en", "which is read"),
        ("score run --src valid.zh --tgt nowhere.en", "nowhere.en"),
        ("score run --src train.zh --tgt valid.en", "valid.en"),
    ];
    for (line, named) in cases {
        let error = place().bad(line);
        assert!(error.contains(named), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
    let copy = place().path("damaged");
    std::fs::create_dir_all(&copy).expect("a folder");
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(place().path("run").join(name), copy.join(name)).expect("a copy");
    }
    let bytes = place().read("damaged/model.safetensors");
    place().write("damaged/model.safetensors", &bytes[..bytes.len() - 100]);
    let error = text(&place().run("translate damaged valid.zh").stderr);
    assert!(error.contains("model.safetensors"), "{error}");
}
