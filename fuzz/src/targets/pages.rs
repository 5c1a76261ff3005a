//! Texts from clients: HTML pages, and sentence splitting.

use std::path::Path;

use heedful_server::fuzzing;

use super::small_model::LINES;
use super::{Opened, Target, Verdict, target};

const TAGS: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<script>",
    "<style>",
    "<b>",
    "</b>",
    "<p>",
    "<br>",
    "<td>",
    "&amp;",
    "&#x41;",
    "&#0;",
    "&#xD800;",
    "&",
    "\"",
    "'",
    "=",
    "<?",
    "é",
    "一",
    "\u{a0}",
    "<svg>",
    "<pre>\n",
    "。",
    ". ",
    "\0",
];

const PUNCTUATION: &[&str] = &[
    ".", "。", "! ", "?\n", "“", "”", "(", "e.g. ", "Mr. ", "\u{2028}", "\u{85}", "\r\n", "…", "\u{200d}",
    "\u{200f}", "\u{3000}", "「", "1.5", "... ", "z.B. ", ", ", "\u{ad}", "\u{fffd}",
];

pub(super) fn targets() -> Vec<Target> {
    vec![target("html", html, TAGS, 2000), target("sentences", sentences, PUNCTUATION, 2000)]
}

/// Converts the input to text. The server rejects requests that are not UTF-8 before this, so invalid bytes
/// are replaced.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn html(_: &Path) -> Opened {
    let seeds = [
        "<p>A <b>brown <i>dog</i></b> runs. It <a href='x.html?a=1&amp;b=2'>barks</a>!</p>\n<script>var a = '<p>';</script>\n",
        "<!DOCTYPE html><html lang=en><head><title>T &amp; U</title><style>p { }</style></head><body><ul><li>One.</li>\
         <li>Two <code>x &lt; 1</code>.</li></ul><!-- no --></body></html>",
        "A <img src=x>brown <span translate=\"no\">Rex</span> runs.<br>Mr. <b class='notranslate'>Smith</b> &eacute; &#233;",
        "<table><tr><td>一只狗。<td>两只猫<b>在睡觉</b>。</table><textarea>a < b</textarea><pre>  x\n  y</pre>",
    ];
    let read = |bytes: &[u8]| {
        let page = text(bytes);
        fuzzing::page(&page, &[]);
        // An arbitrary alignment, derived from the input.
        let pairs: Vec<(usize, usize)> = bytes
            .windows(2)
            .take(12)
            .map(|pair| (usize::from(pair[0] % 8), usize::from(pair[1] % 8)))
            .collect();
        fuzzing::page(&page, &pairs);
        Verdict::Accepted
    };
    Opened { seeds: seeds.map(|page| page.as_bytes().to_vec()).to_vec(), read: Box::new(read) }
}

fn sentences(_: &Path) -> Opened {
    let mut seeds: Vec<Vec<u8>> = LINES.iter().map(|line| line.as_bytes().to_vec()).collect();
    seeds.push(LINES.join(" ").into_bytes());
    seeds.push("👩‍👩‍👧 e\u{301}. 👩‍👩‍👧".into());
    seeds.push((LINES.join(", ").replace(['.', '。'], "")).repeat(4).into_bytes());
    let read = |bytes: &[u8]| {
        let text = text(bytes);
        // A space may be inserted between two sentences.
        let dense = |text: &str| text.replace(' ', "");
        assert_eq!(
            dense(&fuzzing::text(&text)),
            dense(&text),
            "sentences and their separators must be the text"
        );
        Verdict::Accepted
    };
    Opened { seeds, read: Box::new(read) }
}
