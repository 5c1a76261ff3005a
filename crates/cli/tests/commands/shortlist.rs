//! `heedful shortlist` and `heedful translate --shortlist` as processes.

use crate::support::Workplace;

#[test]
fn a_shortlist_is_copied_with_the_model_and_batches_do_not_change_translations() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 30"));
    place.good("shortlist run --src train.zh --tgt train.en --per-token 3 --frequent 5 -o fast");
    let translate = |words: &str| place.good(&format!("translate {words} --scores valid.zh"));

    assert_eq!(translate("fast"), translate("run"), "the weights are the same");
    let found = translate("fast --shortlist");
    assert_ne!(found, translate("fast"), "other scores at least: fewer tokens share the probability");
    assert_eq!(translate("fast --shortlist --batch-tokens 30 --threads 1"), found);
    let lines = place.lines("valid.zh");
    let alone = place.command("translate fast --shortlist --scores --text").arg(&lines[3]).output();
    let alone = crate::support::text(&alone.expect("the program starts").stdout);
    assert_eq!(Some(alone.trim_end()), found.lines().nth(3));

    // Quantization keeps the shortlist.
    place.good("quantize fast --to int8 -o small");
    assert!(place.read("small/shortlist.bin") == place.read("fast/shortlist.bin"));
    assert_eq!(translate("small --shortlist"), translate("fast --shortlist --compute int8"));
    let (weights, recipe) = (place.read("small/model.safetensors"), place.read("small/recipe.toml"));
    place.good("shortlist small --src train.zh --tgt train.en --per-token 3 --frequent 5 --force -o small");
    assert!(place.read("small/model.safetensors").len() == weights.len(), "still integers");
    assert_eq!(place.read("small/recipe.toml"), recipe);
}

#[test]
fn a_shortlist_is_added_to_a_run_and_removed_when_it_is_resumed() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 20"));
    let before = place.good("translate run valid.zh --scores");
    place.write("few.zh", "一辆汽车\n\n".as_bytes());
    // Without targets, it uses the model's own translations.
    let output = place.run("shortlist run --src few.zh");
    let message = crate::support::text(&output.stderr);
    assert!(
        output.status.success() && message.contains("links from 1 pairs in run: a sentence has"),
        "{message}"
    );
    assert_eq!(place.good("translate run valid.zh --scores"), before);
    place.good("translate run valid.zh --shortlist");
    place.good("translate run valid.zh --shortlist --sample --seed 3");

    let again = place.bad("shortlist run --src few.zh");
    assert!(again.contains("run has a shortlist already: add --force"), "{again}");
    place.good("shortlist run --src train.zh --tgt train.en --force");
    place.good("translate run valid.zh --shortlist");

    // New weights need a new shortlist.
    place.good("train --resume run --steps 40");
    place.good("translate run valid.zh");
    let complaint = place.bad("translate run valid.zh --shortlist");
    assert!(complaint.contains("run has no shortlist: learn one with heedful shortlist run"), "{complaint}");
}

#[test]
fn shortlist_errors_give_a_reason() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 2"));
    place.good(&Workplace::training("lstm", "--steps 2 --family recurrent"));
    place.good("shortlist run --src valid.zh --tgt valid.en -o fast");
    place.write("blank.zh", b"\n\n");
    for (words, message) in [
        ("translate run valid.zh --shortlist", "run has no shortlist: learn one with heedful shortlist run"),
        ("translate fast fast valid.zh --shortlist", "--shortlist is for one model"),
        ("shortlist lstm --src train.zh --tgt train.en", "lstm is not a Transformer"),
        ("shortlist nowhere --src train.zh --tgt train.en", "nowhere is not a folder"),
        ("shortlist run --src missing.zh --tgt train.en", "missing.zh"),
        ("shortlist run --src train.zh --tgt valid.en", "valid.en"),
        ("shortlist run --src blank.zh --tgt blank.zh", "blank.zh has no line to learn from"),
        ("shortlist run --src train.zh --tgt train.en -o run", "run is the same folder as run"),
        ("shortlist run --src train.zh --tgt train.en -o fast", "--force"),
        ("shortlist run --tgt train.en", "--src"),
    ] {
        let complaint = place.bad(words);
        assert!(complaint.contains(message), "{words}: {complaint}");
    }
    assert!(!place.path("run/shortlist.bin").exists(), "nothing was written");
}

#[test]
fn a_damaged_or_foreign_shortlist_is_refused_with_its_model() {
    let place = Workplace::new(60);
    place.good(&Workplace::training("run", "--steps 2"));
    place.good("shortlist run --src valid.zh --tgt valid.en -o fast");
    place.good("shortlist run --src valid.zh --tgt valid.en --per-token 2 -o other");
    let (own, foreign) = (place.read("fast/shortlist.bin"), place.read("other/shortlist.bin"));
    let mut flipped = own.clone();
    flipped[own.len() / 2] ^= 1;
    for bytes in [foreign, flipped, own[..own.len() - 4].to_vec()] {
        place.write("fast/shortlist.bin", &bytes);
        let complaint = place.bad("translate fast valid.zh --shortlist");
        let message = "fast/shortlist.bin is not the file that fast/model.safetensors was saved with";
        assert!(complaint.contains(message), "{complaint}");
    }
    // Even when sealed on purpose, it must be a valid shortlist.
    let complaint = place.bad("seal fast");
    assert!(
        complaint.contains("the shortlist fast/shortlist.bin cannot be used: it is damaged"),
        "{complaint}"
    );
    std::fs::remove_file(place.path("fast/shortlist.bin")).expect("it is there");
    assert!(place.bad("translate fast valid.zh").contains("shortlist.bin is missing"));
    place.good("seal fast");
    assert!(place.bad("translate fast valid.zh --shortlist").contains("fast has no shortlist"));
}
