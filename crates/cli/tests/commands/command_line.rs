//! Argument handling shared by all commands, and messages for arguments that are almost right.

use crate::support::{Workplace, text};

#[test]
fn negative_numbers_need_no_equals_sign_and_the_last_flag_counts() {
    let place = Workplace::empty();
    let recipe = place.good(
        "train --print-recipe --dropout 0.3 --seed 4 --dropout 0.2 --batch-tokens 100 --batch-tokens 200",
    );
    assert!(recipe.contains("dropout = 0.2\n") && recipe.contains("batch_tokens = 200\n"), "{recipe}");
    let printed = place.bad("translate none --length-penalty -1 --beam 2 --beam 0");
    assert!(printed.contains("the beam is 0"), "{printed}");
    let printed = place.bad("evaluate a --ref b --smooth floor --smooth-value -1");
    assert!(printed.contains("--smooth-value -1 is out of range"), "{printed}");
}

#[test]
fn an_unknown_flag_gets_a_suggestion() {
    let place = Workplace::empty();
    for (command, meant) in [
        ("train --sorce a", "'--src'"),
        ("train --target a", "'--tgt'"),
        ("train --valid-source a", "'--valid-src'"),
        ("score model --sorce a", "'--src'"),
        ("evaluate a --reference b", "'--ref'"),
        ("translate model --lenght-penalty 1", "'--length-penalty'"),
    ] {
        let printed = place.bad(command);
        assert!(printed.contains(&format!("a similar argument exists: {meant}")), "{command}: {printed}");
    }
}

#[test]
fn a_vocabulary_is_learned_from_one_language() {
    let place = Workplace::new(100);
    let printed = |arguments: &str| {
        let output = place.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        text(&output.stderr)
    };
    let learned = printed("vocab --text train.en --size 400 --out one.json");
    assert!(learned.contains("learned 400 tokens from 100 lines"), "{learned}");
    printed("vocab --src train.en --size 400 --out other.json");
    assert_eq!(place.read("one.json"), place.read("other.json"));
    let refused = place.bad("vocab --src train.en --separate --out folder");
    assert!(refused.contains("add --tgt"), "{refused}");
    let refused = place.bad("vocab --text train.zh --size 270 --out small.json");
    assert!(refused.contains("--vocabulary-coverage; --coverage"), "{refused}");
    // The files named by the message exist.
    let small = "train --src train.zh --tgt train.en --preset tiny --d-model 16 --heads 2 --steps 1 --vocabulary-size 270";
    let refused = place.bad(&format!("{small} --out run"));
    assert!(refused.contains("--vocabulary-coverage"), "{refused}");
    place.good(&format!("{small} --set vocabulary.coverage=0.1 --out run"));
}

#[test]
fn explain_refuses_errors_before_it_draws_and_reports_file_names() {
    let place = Workplace::new(100);
    place.good(
        "train --src train.zh --tgt train.en --preset tiny --d-model 16 --heads 2 --d-ff 16 --steps 1 --vocabulary-kind \
         character --vocabulary-size 700 --out run",
    );
    let output = place.run("explain run 一辆汽车 --head 99");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert!(
        text(&output.stderr).contains("has no head 99: its heads are 0 to 1"),
        "{}",
        text(&output.stderr)
    );
    let drawn = |head: &str| place.good(&format!("explain run 一辆汽车 {head}"));
    assert_eq!(drawn("--head enc.0.1"), drawn("--layer encoder.0 --head 1"));
    assert_eq!(drawn("--head cross.0.0"), drawn("--head decoder.0.cross.0"));
    let refused = place.bad("explain run 一辆汽车 --head encoder.0.self.1 --layer decoder.0");
    assert!(refused.contains("the head of --head is not in the layer of --layer"), "{refused}");
    let translated = |head: &str| {
        place.good(&format!("translate run --text 一辆汽车 --max-length 3 --without-head {head}"))
    };
    assert_eq!(translated("cross.0.1"), translated("decoder.0.cross_attention.1"));

    place.write("news.zh", "一辆汽车\n两本书\n".as_bytes());
    let printed = text(&place.run("explain run news.zh").stderr);
    assert!(printed.contains("news.zh is a file: explaining its 2 lines"), "{printed}");
    let printed = text(&place.run("explain run nwes.zh").stderr);
    assert!(printed.contains("there is no file nwes.zh: explaining it as a text"), "{printed}");
    let refused = place.bad("explain run 一辆汽车 news.zh");
    assert!(refused.contains("news.zh is a file, which cannot be combined"), "{refused}");
}

#[test]
fn evaluate_names_the_tokenizer_that_suits_a_script_without_spaces() {
    let place = Workplace::empty();
    for (name, words, advice) in [
        ("zh", "一辆汽车停在路边\n", "use --tokenize zh"),
        ("ja", "今日は良い天気ですね\n", "ja-mecab"),
        ("th", "สวัสดีครับ\n", "flores200"),
    ] {
        place.write(name, words.as_bytes());
        let printed = text(&place.run(&format!("evaluate {name} --ref {name}")).stderr);
        assert!(printed.contains(advice), "{name}: {printed}");
        for silent in ["--tokenize zh", "--tokenize char", "--metric chrf", "--quiet"] {
            let printed = text(&place.run(&format!("evaluate {name} --ref {name} {silent}")).stderr);
            assert!(printed.is_empty(), "{name} {silent}: {printed}");
        }
    }
    place.write("en", b"a car stops\n");
    assert!(place.run("evaluate en --ref en").stderr.is_empty());
}
