//! Ineffective flags are refused with exit status and message; messages of a run with only a time limit, and
//! how to repeat it.

use crate::support::{Bounded, Workplace, same_run, text};

/// The exit status of a command, and its output in one string.
fn refused(place: &Workplace, line: &str) -> (Option<i32>, String) {
    let output = place.run(line);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn an_ineffective_flag_is_refused_and_nothing_is_written() {
    let place = Workplace::new(50);
    place.write("mine.toml", b"[model]\nfamily = \"recurrent\"\nwindow = 3\n");
    let data = "--src train.zh --tgt train.en --out run";
    let cases = [
        (
            "--attention hard",
            "--attention: model.attention is for the family recurrent; the family transformer does not use it",
        ),
        (
            "--family recurrent --window 3",
            "--window: model.window is for the family transformer; the family recurrent does not",
        ),
        (
            "--family recurrent --norm pre",
            "--norm: model.norm is for the family transformer; the family recurrent does not",
        ),
        (
            "--family recurrent --heads 3",
            "--heads: model.heads is for the family transformer; the family recurrent does not",
        ),
        (
            "--family convolutional --cell gru",
            "--cell: model.cell is for the family recurrent; the family convolutional does",
        ),
        (
            "--set kernel_size=5",
            "--set kernel_size=5: model.kernel_size is for the families recurrent and convolutional; the family transformer does not use it",
        ),
        (
            "mine.toml",
            "mine.toml:3: model.window is for the family transformer; the family recurrent does not use it",
        ),
        (
            "--pooling first",
            "--pooling: model.pooling is for the task classify; the task translate does not use it",
        ),
        (
            "--text train.en",
            "--text: data.text is for the tasks lm and mlm; the task translate does not use it: it reads",
        ),
        ("--init-from other", "model.init_from: "),
        (
            "--preset base --lr 0.1",
            "--lr: training.lr is for the schedules inverse-sqrt, cosine, trapezoid and constant, and",
        ),
        (
            "--schedule constant --warmup 9",
            "--warmup: training.warmup is for the schedules noam, inverse-sqrt, cosine and trapezoid",
        ),
        (
            "--family recurrent --reward 1",
            "--reward: model.reward is for hard attention, and model.attention is \"soft\"",
        ),
        (
            "--vocabulary-file v --vocabulary-size 9",
            "vocabulary.size is for vocabularies that are learned, and vocabulary.file",
        ),
        (
            "--validation-patience 3",
            "validation.patience is for runs with a validation set, and none is named (--valid-src",
        ),
    ];
    for (more, expected) in cases {
        let (status, message) = refused(&place, &format!("train {data} {more}"));
        assert_eq!(status, Some(1), "{more}: {message}");
        assert!(message.starts_with("heedful: ") && message.contains(expected), "{more}: {message}");
        assert!(!place.path("run").exists(), "{more}");
    }
    for (line, expected) in [
        ("translate model --sample --beam 3", "--beam has no effect with --sample"),
        ("translate model --temperature 2", "--sample"),
        ("generate model --beam 3 --top-p 0.5", "--top-p has no effect with --beam"),
        ("evaluate train.en --ref train.en --trials 3", "--trials has no effect without --compare"),
        ("vocab --show model --size 3", "--size has no effect without --out"),
        ("explain model text -o a.html --layer cross", "--layer has no effect in .html and .json"),
        ("train --print-recipe --json", "cannot be used with"),
    ] {
        let (status, message) = refused(&place, line);
        assert_eq!(status, Some(2), "{line}: {message}");
        assert!(message.contains(expected), "{line}: {message}");
    }
}

#[test]
fn a_classifier_from_another_model_refuses_sizes_of_its_own() {
    let place = Workplace::new(60);
    let labels: String =
        place.lines("train.en").iter().enumerate().map(|(i, line)| format!("{}\t{line}\n", i % 2)).collect();
    place.write("labels.tsv", labels.as_bytes());
    place.good(
        "train --task mlm --text train.en --preset tiny --vocabulary-size 400 --steps 2 --out reader --quiet",
    );
    let train = |out: &str, more: &str| {
        format!(
            "train --task classify --label-text labels.tsv --init-from reader --steps 2 --out {out} --quiet {more}"
        )
    };
    for (more, expected) in [
        ("--preset base", "model.preset has model.d_model = 512, and reader, from which the model starts"),
        ("--d-model 128", "model.d_model is 128, and 64 in reader, from which the model starts"),
        (
            "--vocabulary-file v.json",
            "vocabulary.file is for models trained from scratch, and model.init_from",
        ),
        (
            "--vocabulary-size 500",
            "vocabulary.size is for vocabularies that are learned, and model.init_from is",
        ),
    ] {
        let (status, message) = refused(&place, &train("run", more));
        assert_eq!(status, Some(1), "{more}: {message}");
        assert!(message.contains(expected), "{more}: {message}");
    }
    place.good(&train("run", "--preset tiny --d-model 64"));
    // The recipe in its folder contains the sizes of the pretrained model, and can be used like any recipe.
    place.good("train run/recipe.toml --out again --quiet");
    same_run(&place, "run", "again");
    place.good("train --resume run --steps 3 --quiet");
}

#[test]
fn a_resumed_run_warns_of_another_instruction_set() {
    let place = Workplace::new(100);
    let on = |isa: &str, line: &str| {
        let output = place.command(line).env("HEEDFUL_ISA", isa).finish();
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    on("portable", &Workplace::training("run", "--steps 3"));
    let same = on("portable", "train --resume run --steps 4");
    assert!(!same.contains("another"), "{same}");
    let native = place.run("train --resume run --steps 5");
    let stderr = text(&native.stderr);
    assert!(native.status.success(), "{stderr}");
    // This cannot be tested on a machine with only the portable instruction set.
    let is_portable = heedful::tensor::Device::Cpu.fingerprint() == "cpu (portable)";
    let warned = stderr.contains("another device or instruction set (cpu (portable) before, ")
        && stderr.contains("last bits");
    assert_eq!(warned, !is_portable, "{stderr}");
}

#[test]
fn a_run_with_only_a_time_limit_reports_its_plan_and_how_to_repeat_it() {
    let place = Workplace::new(300);
    let training = "train --src train.zh --tgt train.en --valid-src valid.zh --valid-tgt valid.en --preset tiny \
        --vocabulary-kind character --vocabulary-size 700 --batch-tokens 512 --time 3s --out run";
    let output = place.run(training);
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    for line in
        ["learning the vocabulary", "encoding the text", "measuring a few steps", "the time fits about "]
    {
        assert!(stderr.lines().any(|printed| printed.starts_with(line)), "{line}: {stderr}");
    }
    let again = stderr.lines().find_map(|line| line.strip_prefix("reproduce it:    heedful "));
    let again = again.unwrap_or_else(|| panic!("no command: {stderr}")).replace("OTHER", "other");
    place.good(&format!("{again} --quiet"));
    same_run(&place, "run", "other");
    assert!(text(&place.read("run/report.html")).contains(" steps of "), "the report has the plan");
}
