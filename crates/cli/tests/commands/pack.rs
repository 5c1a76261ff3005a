//! `heedful pack` as a process.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::support::{Bounded, Workplace, names, text};

#[test]
fn a_packed_model_is_unpacked_bit_for_bit() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("quantize run --to int8 -o small");
    place.write("card.md", b"# A small model\n\nTrained for a test.\n");
    place.write("texts", b"a b c\n\nd e f\n");
    place.good("pack small -o model.zip --card card.md --examples texts");
    place.good("pack small -o again.zip --card card.md --examples texts");
    let bytes = |name: &str| fs::read(place.path(name)).expect("it was written");
    assert!(bytes("model.zip") == bytes("again.zip"), "the same model is the same file");

    place.good("import model.zip -o unpacked");
    assert_eq!(place.read("unpacked/MODEL_CARD.md"), place.read("card.md"));
    assert_eq!(place.read("unpacked/examples.txt"), place.read("texts"));
    let recipe = fs::read_to_string(place.path("unpacked/recipe.toml")).expect("it goes along");
    let folder = place.path("").display().to_string();
    assert!(recipe.contains("train.en") && !recipe.contains(folder.trim_end_matches('/')), "{recipe}");
    assert_eq!(place.good("translate unpacked train.en"), place.good("translate small train.en"));
}

#[test]
fn packing_errors_write_nothing() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("pack run -o model.zip");
    place.write("text.zip", b"no archive at all");
    let before = names(&place.path(""));
    for (command, expected) in [
        ("pack nowhere -o other.zip", "nowhere"),
        ("pack run -o other.zip --card no-card.md", "no-card.md"),
        ("import nothing.zip -o other", "nothing.zip"),
        ("import text.zip -o other", "text.zip"),
    ] {
        let error = place.bad(command);
        assert!(error.contains(expected), "{command}: {error}");
    }
    assert_eq!(names(&place.path("")), before);
    // A truncated package is refused with a message.
    let bytes = fs::read(place.path("model.zip")).expect("it was written");
    place.write("half.zip", &bytes[..bytes.len() / 2]);
    let output = place.run("translate half.zip --text a");
    assert!(
        !output.status.success() && text(&output.stderr).contains("half.zip"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn every_command_accepts_a_package_like_a_folder() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("quantize run --to int8 -o small");
    place.good("pack run -o run.zip");
    place.good("pack small -o small.zip");
    for model in ["run", "small"] {
        for command in [
            "translate MODEL valid.zh --scores",
            "score MODEL --src valid.zh --tgt valid.en",
            "explain MODEL 一辆新车 --json",
            "explain heads MODEL --src valid.zh --tgt valid.en --csv --quiet --limit 5",
            "vocab --show MODEL",
            "evaluate valid.en --ref valid.en --metric bleu",
        ] {
            let of = |name: &str| place.run(&command.replace("MODEL", name));
            let (folder, package) = (of(model), of(&format!("{model}.zip")));
            assert_eq!(
                folder.status.success(),
                package.status.success(),
                "{command}: {}",
                text(&package.stderr)
            );
            let without_name = |bytes: &[u8]| text(bytes).replace(&format!("{model}.zip"), model);
            assert_eq!(text(&folder.stdout), without_name(&package.stdout), "{command}");
        }
    }
    // An ensemble of two models, one of them packed, and a file.
    assert_eq!(
        place.good("translate run run.zip valid.zh --compute f32"),
        place.good("translate run run valid.zh --compute f32")
    );
    for (command, folder) in [
        ("import run.zip -o imported", "imported"),
        ("quantize run.zip --to bf16 -o half", "half"),
        ("shortlist run.zip --src valid.zh --tgt valid.en -o fast", "fast"),
        ("pack run.zip -o again.zip", "again.zip"),
    ] {
        place.good(command);
        assert_eq!(place.good(&format!("translate {folder} valid.zh")).lines().count(), 40, "{command}");
    }
    assert!(place.read("again.zip") == place.read("run.zip"), "the same model is the same file");
    assert!(place.read("imported/model.safetensors") == place.read("run/model.safetensors"));
    place.good(
        &Workplace::training("tuned", "--steps 2 --init-from run.zip")
            .replace("--preset tiny ", "")
            .replace("--vocabulary-kind character --vocabulary-size 700 ", ""),
    );

    let mut server = place.command("serve run.zip --port 0").running();
    let mut line = String::new();
    BufReader::new(server.stderr.take().expect("a pipe")).read_line(&mut line).expect("a first line");
    assert!(line.contains("run (zh → en)"), "{line}");
}

#[test]
fn a_package_is_never_modified() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    place.good("pack run -o run.zip");
    let before = place.read("run.zip");
    for (command, expected) in [
        ("seal run.zip", "is a packed model, which is only read"),
        ("train --resume run.zip", "--init-from run.zip --out FOLDER"),
        ("average run.zip --last 2 --out mean", "is a packed model, which has no checkpoints"),
        ("shortlist run.zip --src valid.zh --tgt valid.en", "-o MODEL"),
        ("quantize run --to int8 -o run.zip", "run.zip"),
        ("train --src train.zh --tgt train.en --steps 1 --out run.zip", "run.zip"),
    ] {
        let error = place.bad(command);
        assert!(error.contains(expected) && error.lines().count() <= 3, "{command}: {error}");
        assert!(place.read("run.zip") == before, "{command}");
    }
    place.write("other.zip", b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let error = place.bad("translate other.zip valid.zh");
    assert!(error.contains("is not the package of a model: it has no model.safetensors"), "{error}");
}

#[test]
fn a_package_has_example_texts_or_reports_that_it_has_none() {
    let place = Workplace::new(200);
    place.good(&Workplace::training("run", "--steps 5"));
    let pack = |model: &str, out: &str| text(&place.run(&format!("pack {model} -o {out}.zip")).stderr);
    let printed = pack("run", "run");
    assert!(printed.contains("from the validation text") && printed.contains("--examples FILE"), "{printed}");
    place.good("import run.zip -o shown");
    let first = place.read("shown/examples.txt");
    let first = text(&first).lines().next().expect("an example").to_owned();
    assert!(place.lines("valid.zh").contains(&first), "{first}");
    // For a model without a log, the validation text named by its recipe.
    place.good("quantize run --to int8 -o small");
    pack("small", "small");
    place.good("import small.zip -o unpacked");
    assert_eq!(place.lines("unpacked/examples.txt")[..], place.lines("valid.zh")[..4]);
    // A model without a log and a recipe.
    fs::remove_file(place.path("small/recipe.toml")).expect("it is ours");
    let printed = pack("small", "bare");
    assert!(printed.contains("the package has no example texts"), "{printed}");
}
