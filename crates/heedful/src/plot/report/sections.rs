//! The sections of the page; a section without content is an empty string.

use std::fmt::Write;

use super::super::heat_map::{HeatMapOptions, heat_map_svg};
use super::super::line_chart::line_chart_svg;
use super::super::markup::escape;
use super::page::human_step;
use super::{AttentionGrid, Fact, Picture, PictureGroup, Report, SampleHistory, Table};

/// Tables with more columns take the full width of the page.
const MAX_NARROW_COLUMNS: usize = 5;

pub(super) fn results(report: &Report) -> String {
    let tile = |fact: &Fact| {
        let note = if fact.note.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escape(&fact.note))
        };
        let (name, value) = (escape(&fact.name), escape(&fact.value));
        format!(r#"<div class="tile"><dt>{name}</dt><dd>{value}</dd>{note}</div>"#)
    };
    wrapped(r#"<dl class="tiles">"#, report.results.iter().map(tile), "</dl>")
}

pub(super) fn curves(report: &Report) -> String {
    let figure = |chart| format!(r#"<figure class="panel">{}</figure>"#, line_chart_svg(chart));
    wrapped(r#"<div class="curves">"#, report.curves.iter().map(figure), "</div>")
}

pub(super) fn samples(report: &Report) -> String {
    wrapped(r#"<div class="samples">"#, report.samples.iter().map(sample), "</div>")
}

fn sample(sample: &SampleHistory) -> String {
    let mut article = format!(r#"<article class="panel"><p class="source">{}</p>"#, escape(&sample.source));
    if !sample.reference.is_empty() {
        let _ = write!(
            article,
            r#"<p class="reference"><span>reference</span>{}</p>"#,
            escape(&sample.reference)
        );
    }
    article += "<ol>";
    for (step, output) in &sample.outputs {
        let is_correct = !sample.reference.is_empty() && *output == sample.reference;
        let (class, tick) = if is_correct { (r#" class="right""#, " ✓") } else { ("", "") };
        let text = if output.trim().is_empty() { "<i>nothing</i>".into() } else { escape(output) };
        let _ = write!(article, "<li{class}><span>{}</span><q>{text}{tick}</q></li>", human_step(*step));
    }
    article + "</ol></article>"
}

pub(super) fn attention(report: &Report) -> String {
    let grids = report.attention.iter().filter(|grid| !grid.heads.is_empty());
    let legend = r#"<p class="legend">Each row is a token that attends, each column a token that it attends to; the stronger the colour, the larger the weight. <span class="scale"><i></i> 0 to 1</span></p>"#;
    wrapped(legend, grids.map(grid), "")
}

fn grid(grid: &AttentionGrid) -> String {
    let head = |(index, weights): (usize, &Vec<f32>)| {
        let options = HeatMapOptions { title: format!("head {index}"), ..HeatMapOptions::default() };
        format!("<figure>{}</figure>", heat_map_svg(weights, &grid.rows, &grid.columns, &options))
    };
    let heads = grid.heads.iter().enumerate().map(head);
    let title = format!(r#"<div class="panel"><h3>{}</h3><div class="heads">"#, escape(&grid.title));
    wrapped(&title, heads, "</div></div>")
}

pub(super) fn pictures(report: &Report) -> String {
    let group = |group: &PictureGroup| {
        let note = if group.note.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", escape(&group.note))
        };
        let title = escape(&group.title);
        let open = format!(
            r#"<div class="panel" id="{}"><h3>{title}{note}</h3><div class="heads">"#,
            anchor(&group.title)
        );
        wrapped(&open, group.pictures.iter().map(figure), "</div></div>")
    };
    wrapped("", report.pictures.iter().map(group), "")
}

fn figure(picture: &Picture) -> String {
    let Picture { svg, caption } = picture;
    match caption.as_str() {
        "" => format!("<figure>{svg}</figure>"),
        caption => format!("<figure>{svg}<figcaption>{}</figcaption></figure>", escape(caption)),
    }
}

/// The HTML id of a picture group.
fn anchor(title: &str) -> String {
    let name: String = title.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' }).collect();
    format!("pictures-{name}")
}

pub(super) fn tables(report: &Report) -> String {
    let tables = report.tables.iter().map(|one| table(one, &report.pictures));
    wrapped(r#"<div class="tables">"#, tables, "</div>")
}

fn table(table: &Table, pictures: &[PictureGroup]) -> String {
    let cells = |cells: &[String], tag: &str| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let row = |row: &Vec<String>| match row.split_first() {
        Some((first, rest)) if pictures.iter().any(|group| group.title == *first) => {
            let link = format!(r##"<td><a href="#{}">{}</a></td>"##, anchor(first), escape(first));
            format!("<tr>{link}{}</tr>", cells(rest, "td"))
        }
        _ => format!("<tr>{}</tr>", cells(row, "td")),
    };
    let rows: String = table.rows.iter().map(row).collect();
    let class = if table.columns.len() > MAX_NARROW_COLUMNS { "panel full" } else { "panel" };
    format!(
        r#"<div class="{class}"><h3>{}</h3><div class="wide"><table class="numbers"><thead><tr>{}</tr></thead><tbody>{rows}</tbody></table></div></div>"#,
        escape(&table.title),
        cells(&table.columns, "th"),
    )
}

pub(super) fn settings(report: &Report) -> String {
    let groups = report.settings.iter().map(|group| {
        let rows = group.values.iter().map(|(key, value)| row(key, value, ""));
        format!(
            r#"<div class="panel"><h3>{}</h3>{}</div>"#,
            escape(&group.name),
            wrapped(r#"<table class="pairs">"#, rows, "</table>")
        )
    });
    wrapped(r#"<div class="settings">"#, groups, "</div>")
}

pub(super) fn environment(report: &Report) -> String {
    let rows = report.environment.iter().map(|fact| row(&fact.name, &fact.value, &fact.note));
    wrapped(r#"<div class="panel"><table class="pairs">"#, rows, "</table></div>")
}

fn row(name: &str, value: &str, note: &str) -> String {
    let note = if note.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(note)) };
    format!("<tr><th>{}</th><td>{}{note}</td></tr>", escape(name), escape(value))
}

/// The items between `open` and `close`; empty if there are no items.
fn wrapped(open: &str, items: impl Iterator<Item = String>, close: &str) -> String {
    let items: String = items.collect();
    if items.is_empty() { items } else { format!("{open}{items}{close}") }
}
