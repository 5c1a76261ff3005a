//! Pages with translated sentences: every tag occurs once, around the right words.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::scan::{Piece, pieces};
use crate::text::{Format, Layout, WordLinks};

/// Words separated by spaces, aligned by pairs of source and target.
fn links(source: &str, target: &str, pairs: &[(usize, usize)]) -> WordLinks {
    WordLinks { pairs: pairs.to_vec(), ..WordLinks::in_order(source, target) }
}

/// A page of one sentence, translated.
fn translated(page: &str, output: &str, pairs: &[(usize, usize)]) -> String {
    let layout = Layout::new(page, Format::Html);
    assert_eq!(layout.sentences.len(), 1, "{page}: {:?}", layout.sentences);
    layout.join(&[output], &[Some(links(&layout.sentences[0], output, pairs))])
}

#[test]
fn tags_enclose_the_translations_of_their_words() {
    let in_order = [(0, 0), (1, 1), (2, 2), (3, 3)];
    for (page, output, pairs, expected) in [
        (
            "<p>A <b>brown dog</b> runs.</p>",
            "Ein brauner Hund läuft.",
            in_order,
            "<p>Ein <b>brauner Hund</b> läuft.</p>",
        ),
        // Order: the dog comes last.
        (
            "<p>A <b>brown dog</b> runs.</p>",
            "Es läuft brauner Hund.",
            [(0, 0), (3, 1), (1, 2), (2, 3)],
            "<p>Es läuft <b>brauner Hund</b>.</p>",
        ),
        // Words of the element that are separated in the output.
        (
            "A <b>brown dog</b> runs.",
            "Brauner läuft Hund ein.",
            [(1, 0), (3, 1), (2, 2), (0, 3)],
            "<b>Brauner läuft Hund</b> ein.",
        ),
        // Elements that change their order, and nested elements.
        (
            "<i>A <u>brown</u></i> <b>dog</b> runs.",
            "Hund braun ein läuft.",
            [(2, 0), (1, 1), (0, 2), (3, 3)],
            "<b>Hund</b> <i><u>braun</u> ein</i> läuft.",
        ),
        // Punctuation stays outside or inside of the element.
        (
            "A brown <a href='x'>dog runs</a>.",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein brauner <a href='x'>Hund läuft</a>.",
        ),
        (
            "A brown <a href='x'>dog runs.</a>",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein brauner <a href='x'>Hund läuft.</a>",
        ),
        (
            "A (<b>brown</b>) dog runs.",
            "Ein (brauner) Hund läuft.",
            in_order,
            "Ein (<b>brauner</b>) Hund läuft.",
        ),
        // An element around a part of a word encloses the whole word.
        ("A <b>bro</b>wn dog runs.", "Ein brauner Hund läuft.", in_order, "Ein <b>brauner</b> Hund läuft."),
        // An element around the whole sentence.
        (
            "<b><i>A brown dog runs.</i></b>",
            "Ein brauner Hund läuft.",
            in_order,
            "<b><i>Ein brauner Hund läuft.</i></b>",
        ),
        // An element without aligned words takes its nearest neighbour.
        (
            "A <b>brown</b> dog runs.",
            "Ein Hund da läuft.",
            [(0, 0), (2, 1), (2, 2), (3, 3)],
            "Ein <b>Hund</b> da läuft.",
        ),
        // Line breaks are spaces.
        (
            "<p>\n  A\n  <b>brown\n  dog</b> runs.\n</p>",
            "Ein brauner Hund läuft.",
            in_order,
            "<p>\n  Ein <b>brauner Hund</b> läuft.\n</p>",
        ),
        // Placeholders stay next to their neighbours, with their spaces.
        (
            "A brown<img src=x> dog runs.",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein brauner<img src=x> Hund läuft.",
        ),
        (
            "A <img src=x>brown dog runs.",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein <img src=x>brauner Hund läuft.",
        ),
        (
            "A <code>x &lt; 1</code> brown dog runs.",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein <code>x &lt; 1</code> brauner Hund läuft.",
        ),
        (
            "A brown <b>dog <i translate=no>Rex</i></b> runs.",
            "Läuft brauner Hund ein.",
            [(3, 0), (1, 1), (2, 2), (0, 3)],
            "Läuft brauner <b>Hund <i translate=no>Rex</i></b> ein.",
        ),
        (
            "A <!-- <b> --><i class=icon></i>brown dog runs.",
            "Ein brauner Hund läuft.",
            in_order,
            "Ein <!-- <b> --><i class=icon></i>brauner Hund läuft.",
        ),
        // Text that looks like markup.
        (
            "A <b>brown</b> &lt;dog&gt; &amp; runs.",
            "<i> & Hund läuft.",
            in_order,
            "&lt;i&gt; <b>&amp;</b> Hund läuft.",
        ),
    ] {
        assert_eq!(translated(page, output, &pairs), expected);
    }
}

#[test]
fn elements_across_sentences_keep_their_tags() {
    let layout = Layout::new("<p>One <b>two. Three</b> four. <i>Five.</i></p>", Format::Html);
    assert_eq!(layout.sentences, ["One two.", "Three four.", "Five."]);
    assert_eq!(
        layout.join(&["Eins zwei.", "Drei vier.", "Fünf."], &[]),
        "<p>Eins <b>zwei. Drei</b> vier. <i>Fünf.</i></p>"
    );
    let swapped = [
        Some(links("One two.", "Zwei eins.", &[(1, 0), (0, 1)])),
        Some(links("Three four.", "Vier drei.", &[(1, 0), (0, 1)])),
        None,
    ];
    let page = layout.join(&["Zwei eins.", "Vier drei.", "Fünf."], &swapped);
    assert_eq!(structure(&page), ["<p>", "<b>", "</b>", "<i>", "</i>", "</p>"], "{page}");
}

#[test]
fn a_space_between_sentences_is_added_after_end_tags() {
    let layout = Layout::new("<p>你好。<b>再见。</b></p><p><i>你好。</i>好。</p>", Format::Html);
    assert_eq!(
        layout.join(&["Hello.", "Bye.", "Hello.", "Good."], &[]),
        "<p>Hello. <b>Bye.</b></p><p><i>Hello.</i> Good.</p>"
    );
    assert_eq!(
        layout.join(&["你好。", "再见。", "你好。", "好。"], &[]),
        "<p>你好。<b>再见。</b></p><p><i>你好。</i>好。</p>"
    );
}

#[test]
fn everything_but_sentences_is_kept_byte_for_byte() {
    let page = "<!doctype html>\n<html><head><title>A dog.</title><style>b{}</style></head>\r\n<body>&#160;<p>&nbsp; One.&#x20;\n\
                <br>Two.<pre>a\n b</pre></p>\t<p translate=\"no\">Three.</p><ul><li><b> </b></li></ul></body></html>\n";
    let layout = Layout::new(page, Format::Html);
    assert_eq!(layout.sentences, ["A dog.", "One.", "Two."]);
    let same: Vec<&str> = layout.sentences.iter().map(String::as_str).collect();
    assert_eq!(layout.join(&same, &[]), page);
}

#[test]
fn pages_that_consist_of_tags_take_linear_time() {
    for page in [
        "<b>".repeat(100_000) + "a b" + &"</b>".repeat(100_000),
        format!("a {} b.", "<i></i>".repeat(50_000)),
        format!("a {} b.", "</i><i>".repeat(50_000)),
        format!("a {}b{} c.", "<b>".repeat(50_000), "</b>".repeat(50_000)),
    ] {
        let layout = Layout::new(&page, Format::Html);
        let joined = layout.join(&["x y z"], &[]);
        assert_eq!(structure(&joined).len(), structure(&page).len());
        assert!(is_well_nested(&joined) == is_well_nested(&page));
    }
}

/// The markup of a page, in order.
fn structure(page: &str) -> Vec<&str> {
    let is_markup = |piece: &Piece<'_>| !matches!(piece, Piece::Text(_));
    pieces(page).into_iter().filter(is_markup).map(Piece::html).collect()
}

fn counts<'p>(markup: &[&'p str]) -> BTreeMap<&'p str, usize> {
    let mut counts = BTreeMap::new();
    for &html in markup {
        *counts.entry(html).or_default() += 1;
    }
    counts
}

/// Whether every end tag of a generated page closes the last open element. Untranslated elements contain no
/// tags there.
fn is_well_nested(page: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for tag in structure(page) {
        let name = tag.trim_start_matches(['<', '/']).split([' ', '>']).next().unwrap_or_default();
        let is_whole = tag.starts_with("<!") || tag.matches('<').count() > 1;
        if is_whole || ["br", "img", "hr"].contains(&name) {
            continue;
        }
        if !tag.starts_with("</") {
            open.push(name);
        } else if open.pop() != Some(name) {
            return false;
        }
    }
    open.is_empty()
}

/// Text with sentence ends, references, line breaks and other scripts.
fn text() -> impl Strategy<Value = String> {
    let words = [
        "A",
        "dog",
        "runs. ",
        "Then",
        " ",
        "\n",
        "&amp;",
        "&nbsp;",
        "3 < 4",
        "你好。",
        "再见",
        "(x)",
        "Mr. ",
        "é",
        "e.g.",
        "! ",
    ];
    vec(select(words.to_vec()), 1..5).prop_map(|words| words.join(" "))
}

/// Pages in which every element is closed. Begin tags are numbered, so that duplicates are detected.
fn page() -> impl Strategy<Value = String> {
    let kept = [
        "<br>",
        "<img>",
        "<hr>",
        "<!-- <b> -->",
        "<script>if (a<b) x</script>",
        "<code>x</code>",
        "<b translate=no>no</b>",
        "<pre>x\n</pre>",
    ];
    let leaf = prop_oneof![3 => text(), 1 => select(kept.to_vec()).prop_map(str::to_owned)];
    let nested = leaf.prop_recursive(5, 60, 5, |inner| {
        let names = select(vec!["b", "i", "a", "span", "em", "p", "div", "li", "SPAN"]);
        (names, vec(inner, 0..5)).prop_map(|(name, inner)| format!("<{name} #>{}</{name}>", inner.concat()))
    });
    vec(nested, 1..6).prop_map(|nodes| {
        let mut numbered = String::new();
        for (number, part) in nodes.concat().split('#').enumerate() {
            numbered.push_str(part);
            numbered.push_str(&format!("n={number}"));
        }
        let end = numbered.rfind("n=").unwrap_or(0);
        numbered.truncate(end);
        numbered
    })
}

/// Fragments of markup in random order.
fn malformed() -> impl Strategy<Value = String> {
    let pieces = [
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<p>",
        "</p>",
        "<a href='x'>",
        "</a>",
        "<br/>",
        "<img>",
        "<b",
        "</",
        "<",
        ">",
        "&",
        "&amp",
        "&#",
        ";",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<div translate=no>",
        "</div>",
        "'",
        "\"",
        "=",
        "<svg>",
        "</svg>",
        "<code>",
        "</code>",
        "<li class=notranslate>",
        "<![CDATA[",
        "]]>",
        "<?x",
        "A dog runs. ",
        "Then ",
        "word",
        "你好。",
        " ",
        "\n",
        "\u{0}",
    ];
    vec(select(pieces.to_vec()), 0..30).prop_map(|pieces| pieces.concat())
}

/// An output and an alignment.
type TranslatedSentence = (String, Option<Vec<(usize, usize)>>);

/// Random outputs and alignments, unrelated to the page.
fn random_outputs() -> impl Strategy<Value = Vec<TranslatedSentence>> {
    let output = vec(select(vec!["ein", "Hund", "läuft.", "<b>", "&", "好", "。", ""]), 0..9)
        .prop_map(|words| words.join(" "));
    let pairs = proptest::option::of(vec((0..12_usize, 0..12_usize), 0..12).prop_map(|mut pairs| {
        pairs.sort_by_key(|pair| pair.1);
        pairs
    }));
    vec((output, pairs), 1..12)
}

fn replaced(page: &str, random_outputs: &[TranslatedSentence]) -> String {
    let layout = Layout::new(page, Format::Html);
    let count = layout.sentences.len();
    let translated: Vec<_> = random_outputs.iter().cycle().take(count).collect();
    let outputs: Vec<&str> = translated.iter().map(|(output, _)| output.as_str()).collect();
    let linked: Vec<Option<WordLinks>> = (0..count)
        .map(|at| translated[at].1.as_ref().map(|pairs| links(&layout.sentences[at], outputs[at], pairs)))
        .collect();
    layout.join(&outputs, &linked)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_tag_is_lost_or_duplicated_and_nesting_is_kept(page in page(), random_outputs in random_outputs()) {
        prop_assume!(is_well_nested(&page));
        let translated = replaced(&page, &random_outputs);
        prop_assert_eq!(counts(&structure(&translated)), counts(&structure(&page)), "{} became {}", page, translated);
        prop_assert!(is_well_nested(&translated), "{} became {}", page, translated);
    }

    #[test]
    fn malformed_markup_keeps_all_its_tags(page in malformed(), random_outputs in random_outputs()) {
        let translated = replaced(&page, &random_outputs);
        prop_assert_eq!(counts(&structure(&translated)), counts(&structure(&page)), "{:?} became {:?}", page, translated);
    }
}
