//! The HTML page around the sections.

use std::fmt::Write;

use super::super::markup::escape;
use super::{Report, Status, sections};

const STYLE: &str = include_str!("report.css");
/// Seconds after which the page of a run in progress reloads itself.
const RELOAD: u32 = 30;

pub(super) fn page(report: &Report) -> String {
    let sections = [
        ("results", "Results", sections::results(report)),
        ("curves", "Curves", sections::curves(report)),
        ("samples", "Samples", sections::samples(report)),
        ("attention", "Attention", sections::attention(report)),
        ("pictures", "Pictures", sections::pictures(report)),
        ("tables", "Tables", sections::tables(report)),
        ("settings", "Settings", sections::settings(report)),
        ("environment", "Environment", sections::environment(report)),
    ];
    let sections = sections.into_iter().filter(|(_, _, content)| !content.is_empty());
    let (mut contents, mut body) = (String::new(), String::new());
    for (id, title, content) in sections {
        let _ = write!(contents, r##"<a href="#{id}">{title}</a>"##);
        let _ = writeln!(body, r#"<section id="{id}"><h2>{title}</h2>{content}</section>"#);
    }
    let reload = match report.status {
        Status::Running { .. } => format!("<meta http-equiv=\"refresh\" content=\"{RELOAD}\">\n"),
        _ => String::new(),
    };
    let title = escape(&report.title);
    let subtitle = match report.subtitle.as_str() {
        "" => String::new(),
        subtitle => format!("<p class=\"subtitle\">{}</p>\n", escape(subtitle)),
    };
    // The policy guarantees that no script runs and nothing is fetched, whatever the texts contain.
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n{reload}\
         <title>{title} · heedful</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><p class=\"brand\">heedful <span>report</span></p>\n\
         <div class=\"title\"><h1>{title}</h1>{status}</div>\n{subtitle}<nav>{contents}</nav></header>\n\
         <main>\n{body}</main>\n</body>\n</html>\n",
        status = status(&report.status),
    )
}

fn status(status: &Status) -> String {
    let (class, word, step, reason) = match status {
        Status::Waiting => return r#"<p class="status"><b>waiting</b></p>"#.to_owned(),
        Status::Absent => return String::new(),
        Status::Compared { done, of } => {
            let class = if done == of { "good" } else { "warning" };
            return format!(r#"<p class="status {class}"><b>{done} of {of}</b> done</p>"#);
        }
        Status::Running { step, progress } => {
            let percent = progress.map(|progress| format!("{:.0} %", 100.0 * progress.clamp(0.0, 1.0)));
            ("running", "running", *step, percent.unwrap_or_default())
        }
        Status::Finished { step, reason } => ("good", "finished", *step, reason.clone()),
        Status::Stopped { step, reason } => ("warning", "stopped", *step, reason.clone()),
        Status::Diverged { step, reason } => ("bad", "diverged", *step, reason.clone()),
    };
    let reason = if reason.is_empty() { reason } else { format!(" · {}", escape(&reason)) };
    format!(r#"<p class="status {class}"><b>{word}</b> at step {}{reason}</p>"#, human_step(step))
}

/// A step with all its digits, in groups of three.
pub(super) fn human_step(step: u64) -> String {
    let digits = step.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202F}');
        }
        grouped.push(digit);
    }
    grouped
}
