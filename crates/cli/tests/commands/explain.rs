//! `heedful explain` as a process, with a small model trained by the tests.

use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, text};
use serde_json::Value;

/// A workplace with a model in `run`, which every test shares.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(800);
        place.good(&Workplace::training("run", "--steps 60 --lr 3e-3 --encoder-layers 2 --heads 4"));
        place
    })
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&place().read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn written(name: &str) -> String {
    text(&place().read(name))
}

#[test]
fn json_agrees_with_translate() {
    place().good("explain run 一辆新车 一本书 -o two.json --compute f32");
    let both = json("two.json");
    let both = both.as_array().expect("a list");
    assert_eq!(both.len(), 2);
    assert_eq!(both[0]["source"]["text"], "一辆新车");
    let printed = place().good("translate run --text 一辆新车 --compute f32 --json");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    let output = &both[0]["outputs"][0];
    assert_eq!(output["text"], printed["translations"][0]["text"]);
    assert_eq!(output["score"], printed["translations"][0]["score"]);
    let layers: Vec<&str> = output["attention"]
        .as_array()
        .expect("layers")
        .iter()
        .filter_map(|layer| layer["layer"].as_str())
        .collect();
    assert_eq!(layers, ["encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross"]);
    assert_eq!(output["attention"][3]["heads"].as_array().map(Vec::len), Some(4));
}

#[test]
fn weights_may_be_packed_or_omitted() {
    place().good("explain run 一辆新车 -o packed.json --weights packed");
    assert!(json("packed.json")[0]["outputs"][0]["attention"][0]["heads"][0].is_string());
    place().good("explain run 一辆新车 -o none.json --weights none");
    assert_eq!(json("none.json")[0]["outputs"][0]["attention"], Value::Array(Vec::new()));
}

#[test]
fn a_given_target_has_the_score_that_a_search_reports() {
    let found = {
        place().good("explain run 一辆新车 -o found.json --compute f32");
        json("found.json")[0]["outputs"][0].clone()
    };
    let target = found["text"].as_str().expect("text");
    let output =
        place().command("explain run 一辆新车 -o forced.json --compute f32 --target").arg(target).finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let forced = json("forced.json")[0]["outputs"][0].clone();
    for key in ["text", "score", "log_probability", "tokens", "alignment"] {
        assert_eq!(forced[key], found[key], "{key}");
    }
    place().good("explain run 一辆新车 -o other.json --target elephants");
    assert_eq!(json("other.json")[0]["outputs"][0]["text"], "elephants");
}

/// Runs a command that writes a PNG; a program without the feature `png` refuses it and says how to get it.
fn draws_png(command: &str, file: &str) {
    if cfg!(feature = "png") {
        place().good(command);
        assert!(place().read(file).starts_with(b"\x89PNG"), "{command}");
    } else {
        let refused = place().bad(command);
        assert!(refused.contains("--features png"), "{refused}");
    }
}

#[test]
fn every_view_is_a_picture() {
    for view in ["matrix", "grid", "lines", "words"] {
        place().good(&format!("explain run 一辆新车 -o {view}.svg --view {view}"));
        let svg = written(&format!("{view}.svg"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>") && svg.contains('新'), "{view}: {svg}");
        draws_png(&format!("explain run 一辆新车 -o {view}.png --view {view}"), &format!("{view}.png"));
    }
    assert!(written("grid.svg").contains("encoder.1.self.3"));
}

#[test]
fn layer_head_and_level_are_chosen_by_name() {
    place().good("explain run 一辆新车 -o head.svg --layer encoder.1 --head 3");
    assert!(written("head.svg").contains("encoder.1.self.3"));
    let output = place()
        .command("explain run 一辆新车 -o level.svg --layer decoder.0.cross --level word --target")
        .arg("a new car")
        .finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let svg = written("level.svg");
    assert!(svg.contains(">new</text>") && svg.contains(">car</text>") && !svg.contains('▁'), "{svg}");
    let complaint = place().bad("explain run 一辆新车 -o x.svg --layer encoder.7");
    assert!(complaint.contains("it has encoder.0.self"), "{complaint}");
    let complaint = place().bad("explain run 一辆新车 -o x.svg --head 4");
    assert!(complaint.contains("its heads are 0 to 3"), "{complaint}");
    assert!(!place().path("x.svg").exists());
}

#[test]
fn a_page_has_every_sentence_of_a_file_and_never_its_markup() {
    place().write("some.zh", "一辆新车\n\n<script>alert(1)</script>\n".as_bytes());
    place().good("explain run some.zh -o page.html");
    let page = written("page.html");
    assert!(page.contains("一辆新车") && !page.contains("<script>alert"), "{page}");
}

#[test]
fn a_terminal_gets_a_matrix_of_characters() {
    let shown = place().good("explain run 一辆新车");
    assert!(shown.contains("→") && shown.contains("decoder.0.cross") && shown.contains("<eos>"), "{shown}");
}

#[test]
fn wrong_input_is_named_and_leaves_no_file() {
    for (arguments, part) in [
        ("explain run 一辆新车 -o x.gif", "must end in .html or .svg or .png or .json"),
        ("explain run 一 二 -o x.svg", "a picture shows one sentence, and 2 were given"),
        ("explain run 一 二 -o x.json --target a", "--target is the translation of one text"),
        ("explain run 一 -o x.svg --view grid --head 0", "remove --head and --level"),
        ("explain run 一 -o x.svg --layer middle", "is not a layer"),
        (
            "explain run 一 -o x.json --without-head encoder.9.self.0",
            "the model has no head encoder.9.self.0: it has encoder.{0…1}.self.{0…3}",
        ),
        ("explain nowhere 一 -o x.json", "nowhere"),
        ("explain run 一 - -o x.json", "- (standard input) cannot be combined"),
        ("explain heads run --src valid.zh --tgt train.en", "must belong to line n"),
        (
            "explain prune run --src valid.zh --ref valid.en --heads encoder.0.self.0,decoder.0.cross.4",
            "no head decoder.0.cross.4",
        ),
        ("explain prune run --src valid.zh --ref valid.en --heads first", "names no head"),
        ("explain positions -o x.html", "must end in .svg or .png"),
        ("explain positions -o x.svg --d-model 7", "is odd"),
        ("explain example", "heedful demo --direction en-zh --out"),
    ] {
        let complaint = place().bad(arguments);
        assert!(complaint.contains(part), "{arguments}: {complaint}");
    }
    for name in ["x.gif", "x.svg", "x.json", "x.html"] {
        assert!(!place().path(name).exists(), "{name}");
    }
    assert!(place().bad("explain").contains("Usage"));
}

#[test]
fn heads_are_measured_and_compared_with_alignments() {
    let count = place().lines("valid.zh").len();
    place().write("valid.align", "0-0\n".repeat(count).as_bytes());
    let table = place().good(
        "explain heads run --src valid.zh --tgt valid.en --alignments valid.align -o heads.html --quiet",
    );
    assert_eq!(table.lines().filter(|line| line.starts_with("| encoder.")).count(), 8, "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("| decoder.0.cross")).count(), 5, "{table}");
    assert!(table.contains("AER") && table.contains("decoder.0.cross, mean"), "{table}");
    assert!(written("heads.html").contains("1 − AER"));
    let csv = place().good("explain heads run --src valid.zh --tgt valid.en --csv --quiet --limit 5");
    assert_eq!(csv.lines().count(), 1 + 16, "{csv}");
    let numbers = place().good("explain heads run --src valid.zh --tgt valid.en --json --quiet --limit 5");
    let numbers: Value = serde_json::from_str(&numbers).expect("JSON");
    assert_eq!(numbers["sentences"], 5);
    assert_eq!(numbers["heads"][0]["head"], "encoder.0.self.0");
    // The whole source is one word when split at white space, so every target word is aligned to it.
    let links: Vec<String> = place()
        .lines("valid.en")
        .iter()
        .map(|line| (0..line.split_whitespace().count()).map(|word| format!("0-{word} ")).collect())
        .collect();
    place().write("all.align", links.join("\n").as_bytes());
    let json =
        place().good("explain heads run --src valid.zh --tgt valid.en --alignments all.align --json --quiet");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["layers"][0]["aer"], 0.0);
    // Every head shows sentences of the corpus, the sharpest first.
    for head in json["heads"].as_array().expect("heads") {
        let examples = head["examples"].as_array().expect("examples");
        assert!(!examples.is_empty(), "{head}");
        let sharpness = |example: &Value| example["sharpness"].as_f64().expect("a number");
        assert!(examples.is_sorted_by(|a, b| sharpness(a) >= sharpness(b)), "{head}");
        for example in examples {
            let line = example["line"].as_u64().expect("a number") as usize;
            assert_eq!(example["source"], place().lines("valid.zh")[line - 1], "{head}");
        }
    }
    assert!(written("heads.html").contains("href=\"#pictures-decoder.0.cross.1\""));
    place().write("bad.align", format!("0-0 0:1\n{}", "0-0\n".repeat(count - 1)).as_bytes());
    let complaint =
        place().bad("explain heads run --src valid.zh --tgt valid.en --alignments bad.align --quiet");
    assert!(complaint.contains("bad.align, line 1: “0:1” is not a link"), "{complaint}");
    place().write("far.align", "0-99\n".repeat(count).as_bytes());
    let complaint =
        place().bad("explain heads run --src valid.zh --tgt valid.en --alignments far.align --quiet");
    assert!(complaint.contains("sentence 1: link 0-99 is out of range"), "{complaint}");
}

#[test]
fn removed_heads_change_translations_and_scores() {
    let whole = place().good("translate run valid.zh");
    let heads: String = (0..4).map(|head| format!(" --without-head cross.0.{head}")).collect();
    let blind = place().good(&format!("translate run valid.zh{heads}"));
    assert_ne!(whole, blind);
    // Without cross attention, all sources of one length give the same.
    let scores = |more: &str| place().good(&format!("score run --src valid.zh --tgt valid.en{more}"));
    assert_ne!(scores(""), scores(&heads));
    let complaint = place().bad("translate run valid.zh --without-head decoder.1.cross.0");
    assert!(
        complaint
            .contains("it has encoder.{0…1}.self.{0…3}, decoder.{0}.self.{0…3} and decoder.{0}.cross.{0…3}"),
        "{complaint}"
    );
    assert!(place().bad("translate run valid.zh --without-head top").contains("names no head"));
}

#[test]
fn pruning_reports_the_cost_of_each_head() {
    let command =
        "explain prune run --src valid.zh --ref valid.en --heads encoder.0.self.1,decoder.0.cross.2 --quiet";
    let first = place().good(&format!("{command} -o cost.json"));
    assert!(
        first.contains("| without")
            && first.contains("| encoder.0.self.1")
            && first.contains("| decoder.0.cross.2"),
        "{first}"
    );
    let costs = json("cost.json");
    let [bleu, cost] = ["bleu", "cost"].map(|key| costs["heads"][0][key].as_f64().expect("a number"));
    assert!((costs["bleu"].as_f64().expect("a number") - bleu - cost).abs() < 1e-9, "{costs}");
}

#[test]
fn scaling_is_measured() {
    let text = place().good("explain scaling --widest 256 --queries 256 -o scaling.json");
    assert!(text.contains("variance") && text.contains("its gradient vanishes"), "{text}");
    let numbers = json("scaling.json");
    assert_eq!(numbers["rows"].as_array().map(Vec::len), Some(9));
    assert_eq!(numbers["rows"][8]["d_k"], 256);
    place().good("explain scaling --widest 8 --queries 16 -o scaling.svg");
    assert_eq!(written("scaling.svg").matches("</svg>").count(), 4);
    place().good("explain scaling --widest 8 --queries 16 -o scaling.html");
    assert!(written("scaling.html").contains("Why are scores divided"));
    assert!(place().bad("explain scaling --widest 0").contains("--widest"));
}

#[test]
fn order_is_lost_without_positions() {
    let most = |side: &str| -> f64 {
        let moved = json("order.json")[side]["moved"].as_array().expect("numbers").clone();
        moved.iter().map(|number| number.as_f64().expect("a number")).fold(0.0, f64::max)
    };
    for command in [
        "explain order",
        "explain order --text 一只狗咬了一个人 run",
        "explain order --shuffle 7 run --text 一辆新车",
    ] {
        let text = place().good(&format!("{command} -o order.json"));
        assert!(text.contains("Without positions") && text.contains("With positions"), "{text}");
        // A briefly trained model moves its states little, but far more than rounding does.
        let [with, without] = ["with_positions", "without_positions"].map(most);
        assert!(without < 1e-5 && with > 1000.0 * without, "{}", written("order.json"));
    }
    place().good("explain order -o order.svg");
    assert!(written("order.svg").contains("bites"));
    assert!(place().bad("explain order run").contains("--text TEXT"));
    assert!(place().bad("explain order --text one").contains("2 to 64"));
    assert!(place().bad("explain order nowhere --text one").contains("nowhere"));
}

#[test]
fn after_a_quick_demo_the_example_is_right_or_reported_as_undertrained() {
    let place = Workplace::empty();
    place.good("demo --quick --out demo");
    let shown = place.good("explain example --model demo --phrases 2000");
    assert!(
        shown.contains("→ an autonomous driving solution") || shown.contains("trained too little"),
        "{shown}"
    );
    // It was trained only on short phrases, and does not translate enough of the longer ones.
    assert!(shown.contains("The model is trained too little: it"), "{shown}");
    let complaint = place.bad("explain example --model demo --phrases 0 --effects none.svg");
    assert!(complaint.contains("--phrases 0 measures no effects"), "{complaint}");
    assert!(!place.path("none.svg").exists());
}

#[test]
fn the_paper_s_pictures_are_drawn() {
    place().good("explain positions -o positions.svg");
    assert!(written("positions.svg").contains("50 positions × 128 dimensions"));
    place().good("explain schedule -o schedule.svg --d-model 128 --warmup 100 --steps 1000");
    assert!(written("schedule.svg").contains("peak"));
    draws_png("explain schedule -o schedule.png", "schedule.png");
}

#[test]
fn a_run_reports_the_development_of_its_attention() {
    let lines = place().lines("run/attention.jsonl");
    let steps: Vec<u64> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["step"].as_u64().expect("a number"))
        .collect();
    assert_eq!(steps, [20, 40, 60]);
    let page = written("run/report.html");
    assert!(page.contains("Attention over time") && page.contains("step 20"));
}
