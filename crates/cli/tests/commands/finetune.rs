//! `heedful train --init-from`: fine-tuning of models of heedful and of other projects.

use heedful::store::weights::Weights;
use heedful::tasks::folder::ModelFolder;

use crate::support::{Workplace, same_run, text};

/// A small model of another project: see the tests of the library.
fn imported(place: &Workplace, name: &str) {
    let original = format!("{}/../heedful/tests/exchange/models/{name}", env!("CARGO_MANIFEST_DIR"));
    place.good(&format!("import {original} -o {name}"));
}

/// A workplace with text in the vocabulary of the small models of other projects.
fn place_for_imports() -> Workplace {
    let place = Workplace::empty();
    let lines = ["a small cat sits on a mat", "the old dog runs", "the house is old", "a cat and a dog eat"];
    let texts: String = lines.iter().cycle().take(40).map(|line| format!("{line}\n")).collect();
    place.write("text", texts.as_bytes());
    let labelled: String = texts
        .lines()
        .map(|line| format!("{}\t{line}\n", if line.contains("cat") { "cat" } else { "other" }))
        .collect();
    place.write("labelled", labelled.as_bytes());
    place
}

fn weights(place: &Workplace, model: &str) -> Weights {
    let folder = ModelFolder::open(&place.path(model)).expect("a model's folder");
    Weights::of(folder.load().expect("a model").params())
}

/// The names of common parameters of two models: with equal bits, and with different bits.
fn compared(place: &Workplace, [one, other]: [&str; 2]) -> [Vec<String>; 2] {
    let (one, other) = (weights(place, one), weights(place, other));
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let both = one.iter().filter_map(|(name, _, values)| Some((name, bits(values), bits(other.get(name)?))));
    let (same, changed): (Vec<_>, Vec<_>) = both.partition(|(_, one, other)| one == other);
    [same, changed].map(|list| list.into_iter().map(|(name, ..)| name.to_owned()).collect())
}

#[test]
fn models_of_every_task_and_family_can_be_fine_tuned() {
    let place = Workplace::new(120);
    let labels: String =
        place.lines("train.en").iter().enumerate().map(|(i, line)| format!("{}\t{line}\n", i % 3)).collect();
    place.write("labels.tsv", labels.as_bytes());
    let small = "--preset tiny --d-model 16 --vocabulary-size 900 --batch-tokens 256";
    let pairs = "--src train.zh --tgt train.en";
    for (number, (data, kind, kept)) in [
        (
            pairs,
            "--heads 4 --d-ff 24 --activation gelu --norm pre --positions learned --max-positions 90",
            "encoder.*",
        ),
        (pairs, "--vocabulary-sharing separate --tying none --output-bias true", "decoder.*"),
        (pairs, "--family recurrent --cell gru --attention hard --recurrent-norm layer", "encoder.*"),
        (pairs, "--family recurrent --encoder convolutional --attend after --score general", "*embedding*"),
        (
            pairs,
            "--family convolutional --balance norm --kernel-size 5 --tying target-output",
            "*embedding.weight",
        ),
        ("--task lm --text train.en", "--window 9 --block 24", "embedding.*"),
        ("--task lm --text train.en", "--family recurrent --block none", "embedding.*"),
        ("--task mlm --text train.en", "--norm-kind batch --surround-text true", "encoder.0.*"),
        ("--task classify --label-text labels.tsv", "--pooling first", "encoder.*,labels.*"),
        ("--task classify --label-text labels.tsv", "--family recurrent --directions forward", "embedding.*"),
        ("--task classify --label-text labels.tsv", "--family convolutional --pooling max", "embedding.*"),
    ]
    .into_iter()
    .enumerate()
    {
        let (first, second) = (format!("first{number}"), format!("second{number}"));
        place.good(&format!("train {data} {small} {kind} --steps 3 --out {first} --quiet"));
        let block = if kind.contains("--block 24") { "--block 24" } else { "" };
        let run = place.run(&format!(
            "train {data} {block} --init-from {first} --freeze {kept} --weight-decay 0.1 --ema 0.9 --batch-tokens 256 --seed 9 \
             --steps 3 --out {second}"
        ));
        let stderr = text(&run.stderr);
        assert!(run.status.success() && stderr.contains(" are trained, "), "{kind}: {stderr}");
        for file in ["tokenizer.json", "source.tokenizer.json", "target.tokenizer.json"] {
            let [one, other] = [&first, &second].map(|run| std::fs::read(place.path(run).join(file)).ok());
            assert!(one == other, "{kind}: {file}");
        }
        // Frozen parameters equal the pretrained ones; the others have changed.
        let [same, changed] = compared(&place, [&first, &second]);
        let is_kept = |name: &String| {
            kept.split(',').any(|pattern| {
                let (begin, end) = pattern.split_once('*').expect("a star");
                let (middle, end) = end.split_once('*').unwrap_or(("", end));
                name.starts_with(begin) && name.contains(middle) && name.ends_with(end)
            })
        };
        assert!(same.iter().any(is_kept), "{kind}: {same:?}");
        assert!(!changed.iter().any(is_kept) && !changed.is_empty(), "{kind}: {changed:?}");
        let [one, other] =
            [first, second].map(|run| ModelFolder::open(&place.path(&run)).expect("a folder").config);
        assert_eq!(one.summary(), other.summary());
    }
}

#[test]
fn an_imported_model_is_fine_tuned_with_its_vocabulary_and_special_tokens() {
    let place = place_for_imports();
    for (name, task, data) in [
        ("marian-swish", "translate", "--src text --tgt text"),
        ("ctranslate2-int8", "translate", "--src text --tgt text"),
        ("gpt2", "lm", "--text text"),
        ("bert", "mlm", "--text text"),
        ("bert", "classify", "--label-text labelled --pooling mean"),
    ] {
        if !place.path(name).exists() {
            imported(&place, name);
        }
        let out = format!("{name}-{task}");
        let training = |out: &str, more: &str| {
            format!(
                "train --task {task} {data} --init-from {name} --schedule constant --lr 1e-3 --seed 3 --batch-tokens 64 \
                 --compute f32 --checkpoint-every 2 --out {out} --quiet {more}"
            )
        };
        place.good(&training(&out, "--steps 5"));
        assert!(place.read(&format!("{out}/ORIGIN.md")) == place.read(&format!("{name}/ORIGIN.md")));
        let config = |model: &str| ModelFolder::open(&place.path(model)).expect("a folder").config;
        assert_eq!(config(name).special_tokens(), config(&out).special_tokens(), "{out}");
        let [_, changed] = compared(&place, [name, &out]);
        assert!(changed.iter().any(|name| name.starts_with("encoder.") || name.starts_with("decoder.")));
        // To the bit, however often it was stopped.
        let parts = format!("{out}-parts");
        place.good(&training(&parts, "--steps 2"));
        place.good(&format!("train --resume {parts} --steps 5 --quiet"));
        same_run(&place, &out, &parts);
    }
    // It learns: the loss of the text that it was trained on falls.
    let score = |model: &str| {
        let scores = place.good(&format!("score {model} --src text --tgt text --compute f32"));
        scores
            .lines()
            .map(|line| line.split('\t').next().expect("a score").parse::<f64>().expect("a number"))
            .sum::<f64>()
    };
    assert!(score("marian-swish-translate") > score("marian-swish"));
}

#[test]
fn a_fine_tuned_classifier_keeps_its_labels() {
    let place = place_for_imports();
    imported(&place, "bert");
    let train = |out: &str, more: &str| {
        format!("train --task classify --batch-tokens 64 --compute f32 --steps 2 --out {out} --quiet {more}")
    };
    place.good(&train("first", "--label-text labelled --init-from bert"));
    let more = text(&place.read("labelled")).replace("other\tthe house", "a new one\tthe house");
    place.write("more", more.as_bytes());
    place.good(&train("second", "--label-text more --init-from first --freeze labels.*"));
    let rows = |model: &str| weights(&place, model).get("labels.weight").expect("labels").to_vec();
    let (first, second) = (rows("first"), rows("second"));
    // Sorted by name: `a new one` comes first.
    assert_eq!(second.len(), first.len() / 2 * 3);
    assert_eq!(second[first.len() / 2..], first);
}

#[test]
fn tokens_are_added_to_vocabularies_of_all_kinds() {
    let place = place_for_imports();
    place.write("tokens", b"catflap\n the dog house \n\ndog\n");
    place.good(
        "train --task lm --text text --preset tiny --d-model 16 --vocabulary-size 300 --block none --steps 2 --out own --quiet",
    );
    place.write(
        "text",
        "the catflap sits on a mat\na dog in the dog house, the catflap\n".repeat(20).as_bytes(),
    );
    imported(&place, "marian-swish");
    imported(&place, "gpt2");
    imported(&place, "bert");
    for (name, task, data) in [
        ("own", "lm", "--text text"),
        ("marian-swish", "translate", "--src text --tgt text"),
        ("gpt2", "lm", "--text text"),
        ("bert", "mlm", "--text text"),
    ] {
        let out = format!("{name}-more");
        let train = format!(
            "train --task {task} {data} --init-from {name} --vocabulary-add-tokens tokens --schedule constant --lr 1e-30 --compute f32 \
             --batch-tokens 64 --checkpoint-every 2 --steps 4 --out {out}"
        );
        let run = place.run(&train);
        let stderr = text(&run.stderr);
        assert!(
            run.status.success() && stderr.contains("tokens added to the vocabulary"),
            "{name}: {stderr}"
        );
        let tokenizers = |model: &str| {
            ModelFolder::open(&place.path(model)).expect("a folder").tokenizers().expect("some")
        };
        let (before, after) = (tokenizers(name), tokenizers(&out));
        let added = after.target.size() - before.target.size();
        assert!((2..=3).contains(&added), "{name}: {added}");
        let line = "the catflap sits on the dog house";
        let (pieces, whole) = (before.target.encode(line), after.target.encode(line));
        let first = before.target.size();
        let new: Vec<u32> = whole.iter().copied().filter(|&id| id as usize >= first).collect();
        assert_eq!(new, [first as u32, first as u32 + 1], "{name}: {whole:?}");
        assert!(after.target.piece(new[0]).contains("catflap"), "{name}");
        assert_eq!(after.target.decode(&whole), line, "{name}");
        // A new row is the mean of the rows of its pieces.
        let table = |model: &str| {
            let weights = weights(&place, model);
            let names = ["embedding.weight", "target_embedding.weight"];
            names.into_iter().find_map(|name| weights.get(name)).expect("a table of tokens").to_vec()
        };
        let (old, new) = (table(name), table(&out));
        let width = old.len() / first;
        let begin = pieces.iter().zip(&whole).take_while(|(a, b)| a == b).count();
        let next =
            whole.iter().position(|&id| id as usize == first).map(|at| whole[at + 1]).expect("more text");
        let end = begin + pieces[begin..].iter().position(|&id| id == next).expect("the text after it");
        for (column, value) in new[first * width..(first + 1) * width].iter().enumerate() {
            let rows = pieces[begin..end].iter().map(|&id| old[id as usize * width + column]);
            let mean = rows.sum::<f32>() / (end - begin) as f32;
            assert!((value - mean).abs() < 1e-5, "{name}: {value} and {mean}");
        }
        // A resumed run also has them.
        place.good(&format!("train --resume {out} --steps 6 --quiet"));
        assert_eq!(tokenizers(&out).target.size(), after.target.size());
    }
    let train = "train --task lm --text text --init-from own --steps 1 --out bad --vocabulary-add-tokens";
    place.write("special", b"word\n<eos>\n");
    for (file, complaint) in [
        ("special", "`<eos>` cannot be added to the vocabulary: it is the name of a special token"),
        ("missing", "cannot read missing"),
    ] {
        let error = place.bad(&format!("{train} {file}"));
        assert!(error.contains(complaint), "{error}");
        assert!(!place.path("bad").exists(), "{file}");
    }
}

#[test]
fn keys_that_contradict_the_pretrained_model_are_refused() {
    let place = place_for_imports();
    imported(&place, "marian-swish");
    imported(&place, "bert");
    place.write("recipe.toml", b"[model]\ninit_from = \"marian-swish\"\nheads = 4\n");
    let pairs = "--src text --tgt text";
    for (arguments, complaint) in [
        (
            format!("{pairs} --init-from marian-swish --d-model 16"),
            "model.d_model is 16, and 8 in marian-swish, from which the model starts (model.init_from): remove model.d_model",
        ),
        (format!("recipe.toml {pairs}"), "model.heads is 4, and 2 in marian-swish"),
        (
            format!("{pairs} --init-from marian-swish --family recurrent"),
            "model.family is \"recurrent\", and \"transformer\" in marian-swish",
        ),
        (format!("{pairs} --init-from marian-swish --preset base"), "model.preset has model.d_model = 512"),
        (
            format!("{pairs} --init-from bert"),
            "bert holds a masked language model, from which a translator cannot start: name a translator, or train for another \
             task (--task mlm)",
        ),
        (
            "--task classify --label-text labelled --init-from marian-swish".to_owned(),
            "from which a classifier cannot start: name a classifier or a masked language model",
        ),
        (format!("{pairs} --init-from nowhere"), "model.init_from: "),
        (
            format!("{pairs} --init-from marian-swish --vocabulary-size 90"),
            "vocabulary.size is for vocabularies that are learned",
        ),
        (
            format!("{pairs} --vocabulary-add-tokens text"),
            "vocabulary.add_tokens is for models that start from another",
        ),
        (
            format!("{pairs} --init-from marian-swish --init-checksum 0123456789abcdef"),
            "and model.init_checksum is 0123456789abcdef",
        ),
        (
            format!("{pairs} --init-from marian-swish --freeze encoder.*,encodr.1.*"),
            "no parameter is called `encodr.1.*`; names like it are encoder.",
        ),
        (format!("{pairs} --init-from marian-swish --freeze *"), "training.freeze matches every parameter"),
    ] {
        let error = place.bad(&format!("train {arguments} --steps 2 --out run"));
        assert!(error.contains(complaint), "{arguments}: {error}");
        assert!(!place.path("run").exists(), "{arguments}");
    }
    let error =
        place.bad(&format!("train {pairs} --init-from marian-swish --out ./marian-swish --force --steps 1"));
    assert!(error.contains("the run would replace the model in marian-swish"), "{error}");
    assert!(place.path("marian-swish/model.safetensors").exists());
    // Values equal to the pretrained model's may be given.
    place.good(&format!(
        "train {pairs} --init-from marian-swish --d-model 8 --heads 2 --steps 1 --out run --quiet"
    ));
}

#[test]
fn a_run_records_the_model_that_it_started_from() {
    let place = place_for_imports();
    imported(&place, "marian-swish");
    imported(&place, "marian-relu-bf16");
    let train = "train --src text --tgt text --init-from base --steps 2 --quiet --out run";
    let lay = |name: &str| {
        std::fs::create_dir_all(place.path("base")).expect("a folder");
        for file in place.path(name).read_dir().expect("a folder") {
            let file = file.expect("a file");
            std::fs::copy(file.path(), place.path("base").join(file.file_name())).expect("room on the disk");
        }
    };
    lay("marian-swish");
    place.good(train);
    let recipe = text(&place.read("run/recipe.toml"));
    let checksum = recipe.lines().find(|line| line.starts_with("init_checksum = ")).expect("a checksum");
    // A recipe of a run starts from that model only.
    place.good("train run/recipe.toml --out again --quiet");
    assert!(place.read("again/model.safetensors") == place.read("run/model.safetensors"));
    lay("marian-relu-bf16");
    let error = place.bad("train run/recipe.toml --out other");
    assert!(
        error.contains(checksum.split('"').nth(1).expect("quotes")) && error.contains("init_checksum"),
        "{error}"
    );
    // The run itself is complete, and reports the changed model.
    let run = place.run("train --resume run --steps 3");
    let stderr = text(&run.stderr);
    assert!(
        run.status.success() && stderr.contains("base is not the model that the run was started with"),
        "{stderr}"
    );
    // Without a checkpoint, it would start from the wrong model.
    std::fs::remove_dir_all(place.path("again/checkpoints")).expect("a folder");
    let error = place.bad("train --resume again");
    assert!(error.contains("not the model that the run in again was started with"), "{error}");
    std::fs::remove_dir_all(place.path("base")).expect("a folder");
    place.good("train --resume run --steps 4 --quiet");
}
