//! BLEU, chrF and TER against sacreBLEU: every option, invented text in many scripts, every score to 1e-9.
//!
//! `metrics/generate.py` writes the file. `cargo test --test metrics -- --nocapture` prints the largest
//! difference.

use std::collections::BTreeMap;
use std::path::Path;

use heedful::metrics::{
    AsianText, BleuOptions, BleuSmoothing, BleuTokenizer, Case, ChrfOptions, ChrfSmoothing, Evaluation,
    Metric, Orders, Punctuation, References, Resampling, SACREBLEU_SEED, SACREBLEU_VERSION, TerOptions,
    TercomNormalization, Whitespace, corpus_bleu,
};
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;
/// sacreBLEU resamples in f32.
const F32_TOLERANCE: f64 = 2e-4;

#[test]
fn scores_and_signatures_match_sacrebleu() {
    let goldens = Goldens::read();
    let mut worst = 0.0_f64;
    let cases = goldens.list("cases");
    for case in cases {
        let metric = metric(case);
        let corpus = goldens.corpus(case);
        let evaluation =
            Evaluation::new(metric.as_ref(), &corpus.hypotheses, &References::with_gaps(&corpus.references));
        let score = evaluation.score();
        assert_eq!(score.signature.to_string(), text(&case["signature"]), "{case}");
        if let Some(detail) = case["detail"].as_str() {
            assert_eq!(score.detail.as_deref(), Some(detail), "{case}");
        }
        let mut pairs = vec![(score.score, number(&case["score"]))];
        if let Some(sentences) = case["sentences"].as_array() {
            assert_eq!(sentences.len(), corpus.hypotheses.len());
            pairs.extend(evaluation.sentences().map(|score| score.score).zip(sentences.iter().map(number)));
        }
        for (index, (ours, theirs)) in pairs.into_iter().enumerate() {
            let difference = (ours - theirs).abs();
            assert!(difference <= TOLERANCE, "score {index} is {ours}, sacreBLEU's {theirs}: {case}");
            worst = worst.max(difference);
        }
    }
    println!("{} cases, the largest difference is {worst:e}", cases.len());
    assert!(cases.len() > 800);
}

#[test]
fn resampling_matches_sacrebleu() {
    let goldens = Goldens::read();
    let count = |key: &str| number(&goldens.root[key]) as usize;
    let resampling = Resampling {
        bootstrap: Some(count("resamples")),
        randomisation: Some(count("trials")),
        seed: SACREBLEU_SEED,
    };
    for case in goldens.list("resamplings") {
        let metric = metric(case);
        let corpus = goldens.corpus(case);
        let references = References::with_gaps(&corpus.references);
        let evaluation = Evaluation::new(metric.as_ref(), &corpus.hypotheses, &references);
        let confidence = evaluation.confidence(count("resamples"), SACREBLEU_SEED);
        assert!((confidence.mean - number(&case["mean"])).abs() < F32_TOLERANCE, "{confidence:?}: {case}");
        assert!(
            (confidence.margin - number(&case["margin"])).abs() < F32_TOLERANCE,
            "{confidence:?}: {case}"
        );
        let comparison =
            evaluation.compare(&Evaluation::new(metric.as_ref(), &corpus.other, &references), resampling);
        assert!((comparison.bootstrap_p - number(&case["bs"])).abs() < TOLERANCE, "{comparison:?}: {case}");
        assert!(
            (comparison.randomisation_p - number(&case["ar"])).abs() < TOLERANCE,
            "{comparison:?}: {case}"
        );
    }
}

#[test]
fn the_printed_line_matches_sacrebleu() {
    let hypotheses = ["The dog bit the man.".to_owned(), "It was not surprising.".to_owned()];
    let references = [vec!["The dog bit the man.".to_owned(), "It was not unexpected.".to_owned()]];
    let bleu = corpus_bleu(&hypotheses, &references, &BleuOptions::default());
    let expected = "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 74.19 90.9/77.8/71.4/60.0 (BP = 1.000 \
                    ratio = 1.000 hyp_len = 11 ref_len = 11)";
    assert_eq!(bleu.to_string(), expected);
    let options = BleuOptions::default();
    let score = Evaluation::new(&options, &hypotheses, &References::new(&references)).score();
    assert_eq!(score.to_string(), expected);
}

struct Goldens {
    root: Value,
    corpora: BTreeMap<String, Corpus>,
}

struct Corpus {
    hypotheses: Vec<String>,
    other: Vec<String>,
    references: Vec<Vec<Option<String>>>,
}

impl Goldens {
    fn read() -> Goldens {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metrics/goldens.json");
        let text = std::fs::read_to_string(&path).expect("the goldens are part of the repository");
        let root: Value = serde_json::from_str(&text).expect("the goldens are JSON");
        assert_eq!(root["sacrebleu"], SACREBLEU_VERSION);
        let lines = |lines: &Value| -> Vec<Option<String>> {
            lines.as_array().expect("lines").iter().map(|line| line.as_str().map(str::to_owned)).collect()
        };
        let complete = |value: &Value| lines(value).into_iter().map(|line| line.expect("a line")).collect();
        let corpus = |value: &Value| Corpus {
            hypotheses: complete(&value["hypotheses"]),
            other: complete(&value["other"]),
            references: value["references"].as_array().expect("translations").iter().map(lines).collect(),
        };
        let corpora = root["corpora"].as_object().expect("corpora");
        let corpora = corpora.iter().map(|(name, value)| (name.clone(), corpus(value))).collect();
        Goldens { root, corpora }
    }

    fn list(&self, key: &str) -> &[Value] {
        self.root[key].as_array().expect("a list of cases")
    }

    fn corpus(&self, case: &Value) -> &Corpus {
        &self.corpora[text(&case["corpus"])]
    }
}

fn metric(case: &Value) -> Box<dyn Metric> {
    let options = &case["options"];
    match text(&case["metric"]) {
        "bleu" => Box::new(bleu(options)),
        "chrf" => Box::new(chrf(options)),
        "ter" => Box::new(ter(options)),
        other => panic!("unknown metric {other}"),
    }
}

fn bleu(options: &Value) -> BleuOptions {
    let default = BleuOptions::default();
    let value = options["smooth_value"].as_f64();
    BleuOptions {
        tokenize: options["tokenize"]
            .as_str()
            .map_or(default.tokenize, |name| BleuTokenizer::named(name).expect(name)),
        smoothing: match options["smooth_method"].as_str() {
            None => BleuSmoothing::Exponential,
            Some("none") => BleuSmoothing::None,
            Some("floor") => BleuSmoothing::Floor(value.unwrap_or(BleuSmoothing::FLOOR)),
            Some("add-k") => BleuSmoothing::AddK(value.unwrap_or(BleuSmoothing::ADD_K)),
            Some(other) => panic!("unknown smoothing {other}"),
        },
        case: either(&options["lowercase"], Case::Lower, Case::Mixed),
        orders: either(&options["effective_order"], Orders::Effective, Orders::All),
        max_order: integer(&options["max_ngram_order"], default.max_order),
    }
}

fn chrf(options: &Value) -> ChrfOptions {
    let default = ChrfOptions::default();
    ChrfOptions {
        char_order: integer(&options["char_order"], default.char_order),
        word_order: integer(&options["word_order"], default.word_order),
        beta: integer(&options["beta"], default.beta as usize) as u32,
        case: either(&options["lowercase"], Case::Lower, Case::Mixed),
        whitespace: either(&options["whitespace"], Whitespace::Counted, Whitespace::Dropped),
        smoothing: either(&options["eps_smoothing"], ChrfSmoothing::Epsilon, ChrfSmoothing::EffectiveOrder),
    }
}

fn ter(options: &Value) -> TerOptions {
    TerOptions {
        normalization: either(&options["normalized"], TercomNormalization::On, TercomNormalization::Off),
        punctuation: either(&options["no_punct"], Punctuation::Removed, Punctuation::Kept),
        asian: either(&options["asian_support"], AsianText::Split, AsianText::Plain),
        case: either(&options["case_sensitive"], Case::Mixed, Case::Lower),
    }
}

fn either<T>(flag: &Value, yes: T, no: T) -> T {
    if flag.as_bool() == Some(true) { yes } else { no }
}

fn integer(value: &Value, default: usize) -> usize {
    value.as_u64().map_or(default, |value| value as usize)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}
