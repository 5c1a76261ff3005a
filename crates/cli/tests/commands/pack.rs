//! `heedful pack` and `heedful demo --pretrained` as processes.

use std::fs;

use crate::support::{Workplace, names, text};

#[test]
fn a_packed_model_is_the_model_wherever_it_is_unpacked() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("quantize run --to int8 -o small");
    place.write("card.md", b"# A small model\n\nTrained for a test.\n");
    place.write("texts", b"a b c\n\nd e f\n");
    place.good("pack small -o model.zip --card card.md --examples texts");
    place.good("pack small -o again.zip --card card.md --examples texts");
    let bytes = |name: &str| fs::read(place.path(name)).expect("it was written");
    assert!(bytes("model.zip") == bytes("again.zip"), "the same model is the same file");

    let shown = place.good("demo --pretrained model.zip --out demo");
    assert!(
        shown.starts_with("A small model\n") && shown.contains("→") && shown.contains("heedful serve demo"),
        "{shown}"
    );
    assert!(shown.contains("a b c") && shown.contains("d e f"), "{shown}");
    let recipe = fs::read_to_string(place.path("demo/recipe.toml")).expect("it goes along");
    let folder = place.path("").display().to_string();
    assert!(recipe.contains("train.en") && !recipe.contains(folder.trim_end_matches('/')), "{recipe}");
    assert_eq!(place.good("translate demo train.en"), place.good("translate small train.en"));
    // A folder is shown where it is, and a text of one's own in the place of the package's.
    let shown = place.good("demo --pretrained small --text c");
    assert!(shown.contains("  c\n  → ") && !shown.contains("d e f"), "{shown}");
}

#[test]
fn what_cannot_be_packed_or_shown_is_an_error_and_nothing_is_written() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("pack run -o model.zip");
    place.write("text.zip", b"no archive at all");
    let before = names(&place.path(""));
    for (command, expected) in [
        ("pack nowhere -o other.zip", "nowhere"),
        ("pack run -o other.zip --card no-card.md", "no-card.md"),
        ("demo --pretrained nothing.zip --out demo", "nothing.zip"),
        ("demo --pretrained text.zip --out other", "text.zip"),
        ("demo --pretrained run", "--text"),
        ("demo --pretrained model.zip --quick", "--quick"),
    ] {
        let error = place.bad(command);
        assert!(error.contains(expected), "{command}: {error}");
    }
    let mut after = names(&place.path(""));
    // The demo has a folder of its own by then.
    after.retain(|name| name != "other");
    assert_eq!(after, before);
    // Half of it is no model, and says so.
    let bytes = fs::read(place.path("model.zip")).expect("it was written");
    place.write("half.zip", &bytes[..bytes.len() / 2]);
    let output = place.run("demo --pretrained half.zip --out other --text a");
    assert!(
        !output.status.success() && text(&output.stderr).contains("half.zip"),
        "{}",
        text(&output.stderr)
    );
}
