use super::super::{Highlight, LineChart, Scale, Series};
use super::*;

/// The report of a training run.
fn example() -> Report {
    let steps = || (1..=160).map(|i| f64::from(i) * 50.0);
    let wobble = |step: f64| (step * 12.9898).sin() * 0.12;
    let line = |name: &str, highlight, value: &dyn Fn(f64) -> f64| Series {
        name: name.to_owned(),
        points: steps().map(|step| (step, value(step))).collect(),
        highlight,
    };
    let chart = |title: &str, scale, series| LineChart {
        title: title.to_owned(),
        x_label: "step".to_owned(),
        scale,
        series,
        ..LineChart::default()
    };
    let falling = |step: f64| 1.35 + 6.5 * (-step / 900.0).exp();
    let validation = |step: f64| falling(step) + 0.25 + step / 30_000.0;
    let tokens = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (rows, columns) =
        (tokens("an autonomous driving solution <eos>"), tokens("一 套 自动驾驶 解决方案 <eos>"));
    let head = |head: usize| {
        let mut weights: Vec<f32> = (0..25)
            .map(|i| if i % 5 == (i / 5 * (head + 1) + 2 * (head % 2)) % 5 { 0.8 } else { 0.05 })
            .collect();
        weights[head % 25] += 0.1;
        weights
    };
    Report {
        title: "Multi30k English → German".to_owned(),
        subtitle: "Transformer 4+4, d 128, 2.9 M parameters · bf16 on 2 threads".to_owned(),
        status: Status::Finished { step: 8000, reason: "all steps done".to_owned() },
        results: vec![
            Fact::new("test BLEU", "38.02").with_note("13a, beam 5"),
            Fact::new("validation loss", "1.62").with_note("best, step 6 400"),
            Fact::new("perplexity", "5.05"),
            Fact::new("accuracy", "68.4 %"),
            Fact::new("speed", "14.2k").with_note("target tokens a second"),
            Fact::new("time", "38 min"),
        ],
        curves: vec![
            chart(
                "loss",
                Scale::Linear,
                vec![
                    line("training", Highlight::None, &|step| falling(step) + wobble(step)),
                    line("validation", Highlight::Lowest, &validation),
                ],
            ),
            chart(
                "perplexity",
                Scale::Log,
                vec![line("validation", Highlight::Lowest, &|step| validation(step).exp())],
            ),
            chart(
                "BLEU",
                Scale::Linear,
                vec![line("validation", Highlight::Highest, &|step| {
                    38.0 * (1.0 - (-step / 1500.0).exp()) - (step / 8000.0).powi(4) + wobble(step)
                })],
            ),
            chart(
                "learning rate",
                Scale::Linear,
                vec![line("rate", Highlight::Peak, &|step| {
                    0.005 * (step / 1000.0).min((1000.0 / step).sqrt())
                })],
            ),
            chart(
                "gradient norm",
                Scale::Log,
                vec![line("norm", Highlight::None, &|step| {
                    (2.0 * wobble(step)).exp() * (0.4 + 5.0 * (-step / 500.0).exp())
                })],
            ),
            chart(
                "tokens a second",
                Scale::Linear,
                vec![line("speed", Highlight::None, &|step| 14_000.0 + 2000.0 * wobble(step))],
            ),
        ],
        samples: vec![
            SampleHistory {
                source: "一套自动驾驶解决方案".to_owned(),
                reference: "an autonomous driving solution".to_owned(),
                outputs: vec![
                    (500, "a a a car".to_owned()),
                    (1000, "an online payment system".to_owned()),
                    (8000, "an autonomous driving solution".to_owned()),
                ],
            },
            SampleHistory {
                source: "<script>alert('source')</script> Two dogs play in the snow.".to_owned(),
                reference: "Zwei Hunde spielen im Schnee.".to_owned(),
                outputs: vec![
                    (500, "Ein Mann in einem Hemd.".to_owned()),
                    (8000, "Zwei Hunde spielen im tiefen Schnee.".to_owned()),
                ],
            },
        ],
        attention: (1..=2)
            .map(|layer| AttentionGrid {
                title: format!("decoder layer {layer}, cross attention"),
                heads: (0..4).map(|h| head(h + layer)).collect(),
                rows: rows.clone(),
                columns: columns.clone(),
            })
            .collect(),
        pictures: vec![PictureGroup {
            title: "a < b".to_owned(),
            note: String::new(),
            pictures: vec!["<svg></svg>".to_owned().into()],
        }],
        tables: vec![Table {
            title: "Corpus".to_owned(),
            columns: tokens("file read kept empty too-long duplicate"),
            rows: vec![
                tokens("train.en/train.de 29000 28871 0 129 0"),
                tokens("valid.en/valid.de 1014 1014 0 0 0"),
            ],
        }],
        settings: vec![
            SettingsGroup {
                name: "model".to_owned(),
                values: vec![
                    ("d_model".to_owned(), "128".to_owned()),
                    ("n_heads".to_owned(), "4".to_owned()),
                ],
            },
            SettingsGroup {
                name: "train".to_owned(),
                values: vec![
                    ("batch_tokens".to_owned(), "4096".to_owned()),
                    ("dropout".to_owned(), "0.3".to_owned()),
                ],
            },
        ],
        environment: vec![
            Fact::new("version", env!("CARGO_PKG_VERSION")),
            Fact::new("instructions", "amx").with_note("bf16 tiles"),
        ],
    }
}

#[test]
fn text_is_escaped_and_nothing_is_fetched() {
    let evil = "<script src=\"http://x\">alert(1)</script><img src=x onerror=alert(1)>".to_owned();
    let mut report = example();
    report.title = evil.clone();
    report.subtitle = evil.clone();
    report.status = Status::Diverged { step: 3, reason: evil.clone() };
    report.results.push(Fact::new(&evil, &evil).with_note(&evil));
    report.curves[0].series[0].name = evil.clone();
    report.samples[0].outputs.push((9, evil.clone()));
    report.attention[0].rows[0] = evil.clone();
    report.tables[0].rows[0][0] = evil.clone();
    report.settings[0].values[0] = (evil.clone(), evil.clone());
    report.environment.push(Fact::new(&evil, &evil));
    let html = report.to_html();
    assert!(!html.contains("<script") && !html.contains("<img"));
    for fetching in ["src=\"", "url(", "@import", "<link"] {
        assert!(!html.contains(fetching), "{fetching}");
    }
}

#[test]
fn a_table_row_links_to_the_picture_group_of_its_name() {
    let picture = Picture { svg: "<svg></svg>".to_owned(), caption: "c < d".to_owned() };
    let cells = |name: &str| vec![name.to_owned(), "0.5".to_owned()];
    let report = Report {
        pictures: vec![PictureGroup {
            title: "enc.0.1".to_owned(),
            note: "head 2 < 3".to_owned(),
            pictures: vec![picture],
        }],
        tables: vec![Table {
            title: "Heads".to_owned(),
            columns: cells("head"),
            rows: ["enc.0.0", "enc.0.1"].map(cells).to_vec(),
        }],
        ..Report::default()
    };
    let html = report.to_html();
    assert!(html.contains(r#"id="pictures-enc.0.1""#), "{html}");
    assert!(html.contains(r##"<td>enc.0.0</td><td>0.5</td>"##), "{html}");
    assert!(html.contains(r##"<td><a href="#pictures-enc.0.1">enc.0.1</a></td><td>0.5</td>"##), "{html}");
    assert!(html.contains("<figcaption>c &lt; d</figcaption>"), "{html}");
    assert!(html.contains("<h3>enc.0.1 <small>head 2 &lt; 3</small></h3>"), "{html}");
}

#[test]
fn empty_sections_are_omitted() {
    let html = Report { title: "a run".to_owned(), ..Report::default() }.to_html();
    assert!(!html.contains("<section") && html.contains("<h1>a run</h1>"), "{html}");
    assert!(example().to_html().matches("<section").count() == 8);
}

#[test]
fn the_status_is_shown_and_only_a_running_page_reloads() {
    let with = |status| Report { status, ..Report::default() }.to_html();
    let running = with(Status::Running { step: 12_345, progress: Some(0.5) });
    assert!(running.contains("<b>running</b> at step 12\u{202F}345 · 50 %") && running.contains("refresh"));
    let diverged = with(Status::Diverged { step: 7, reason: "the loss is NaN".to_owned() });
    assert!(
        diverged.contains("<b>diverged</b> at step 7 · the loss is NaN") && !diverged.contains("refresh")
    );
}

#[test]
fn tags_are_balanced() {
    let html = example().to_html();
    for tag in ["section", "div", "figure", "svg", "table", "tr", "td", "article", "ol", "li", "g", "dl"] {
        let opened = html.matches(&format!("<{tag} ")).count() + html.matches(&format!("<{tag}>")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

/// `HEEDFUL_REPORT=report.html cargo test -p heedful writes_an_example_page -- --ignored`
#[test]
#[ignore = "writes a page for people to look at"]
fn writes_an_example_page() {
    let path = std::env::var_os("HEEDFUL_REPORT").expect("HEEDFUL_REPORT names the output file");
    std::fs::write(path, example().to_html()).expect("written");
}

#[test]
fn grids_are_truncated_until_all_heads_fit() {
    let text = |count: usize| (0..count).map(|i| i.to_string()).collect::<Vec<_>>();
    let grid = |rows: usize, columns: usize| AttentionGrid {
        title: String::new(),
        heads: vec![(0..rows * columns).map(|i| i as f32).collect(); 2],
        rows: text(rows),
        columns: text(columns),
    };
    let grids = [grid(1, 5), grid(4, 5)];
    let untruncated = AttentionGrid::bounded(&grids, 48, 1000);
    assert_eq!(untruncated[1].heads, grids[1].heads);
    // 2 · (1 · 3 + 3 · 3) = 24 cells.
    let truncated = AttentionGrid::bounded(&grids, 48, 24);
    assert_eq!((truncated[0].rows.len(), truncated[0].columns.len()), (1, 3));
    assert_eq!(truncated[1].heads[1], [0.0, 1.0, 2.0, 5.0, 6.0, 7.0, 10.0, 11.0, 12.0]);
    assert_eq!(AttentionGrid::bounded(&grids, 48, 0)[1].heads[0], [0.0]);
    assert_eq!(AttentionGrid::bounded(&grids, 2, 1000)[1].rows, ["0", "1"]);
}
