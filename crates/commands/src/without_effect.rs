//! Flags that have no effect beside others: refused, so that nobody waits for what does not come.
//!
//! What clap can say for one flag alone (`requires`, `conflicts_with`) stands beside that flag. The flags of a recipe have a table
//! of their own, in the library.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Flags of one command, and when they have an effect.
struct Rule {
    /// `explain heads`.
    command: &'static str,
    flags: &'static [&'static str],
    has_effect: fn(&ArgMatches) -> bool,
    /// Why there is none, to follow "has no effect".
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        command: "translate",
        flags: &["beam"],
        has_effect: |given| !given.get_flag("sample"),
        why: "with --sample, which draws translations instead of searching for them",
    },
    Rule {
        command: "generate",
        flags: &["temperature", "top_k", "top_p", "seed"],
        has_effect: |given| !is_given(given, "beam"),
        why: "with --beam, which searches for a text instead of drawing one",
    },
    Rule {
        command: "generate",
        flags: &["top_k", "top_p", "seed"],
        has_effect: |given| given.get_one::<f32>("temperature") != Some(&0.0),
        why: "with --temperature 0, which always takes the most probable token",
    },
    Rule {
        command: "classify",
        flags: &["words"],
        has_effect: |given| !is_given(given, "label_text") || is_given(given, "output"),
        why: "with --label-text, which prints a report, unless -o FILE takes the lines of labels",
    },
    Rule {
        command: "explain",
        flags: &["view"],
        has_effect: |given| output_is(given, &["svg", "png"]),
        why: "without -o FILE.svg or FILE.png: the terminal shows a matrix, a page every view",
    },
    Rule {
        command: "explain",
        flags: &["layer", "head", "level"],
        has_effect: |given| !output_is(given, &["html", "json"]),
        why: "in .html and .json, which have every layer and head",
    },
    Rule {
        command: "explain",
        flags: &["weights"],
        has_effect: |given| output_is(given, &["json"]),
        why: "without -o FILE.json",
    },
    Rule {
        command: "explain",
        flags: &["raw_scores"],
        has_effect: |given| output_is(given, &["html", "json"]),
        why: "without -o FILE.json or FILE.html: pictures show weights",
    },
    Rule {
        command: "explain",
        flags: &["n_best"],
        has_effect: |given| output_is(given, &["html", "json"]),
        why: "without -o FILE.html or FILE.json: the others show the best output",
    },
    Rule {
        command: "explain",
        flags: &["beam", "n_best"],
        has_effect: |given| !is_given(given, "target"),
        why: "with --target, which is explained instead of what a search finds",
    },
    Rule {
        command: "evaluate",
        flags: &["resamples", "seed"],
        has_effect: |given| given.get_flag("confidence") || is_given(given, "compare"),
        why: "without --confidence or --compare",
    },
    Rule {
        command: "evaluate",
        flags: &["trials"],
        has_effect: |given| is_given(given, "compare"),
        why: "without --compare",
    },
    Rule {
        command: "evaluate",
        flags: &["tokenize"],
        has_effect: |given| measures(given, &["bleu", "bleu-teaching"]),
        why: "without --metric bleu or bleu-teaching",
    },
    Rule {
        command: "evaluate",
        flags: &["smooth", "smooth_value"],
        has_effect: |given| measures(given, &["bleu"]),
        why: "without --metric bleu",
    },
    Rule {
        command: "evaluate",
        flags: &["teaching_order"],
        has_effect: |given| measures(given, &["bleu-teaching"]),
        why: "without --metric bleu-teaching",
    },
    Rule {
        command: "evaluate",
        flags: &["chrf_char_order", "chrf_beta", "chrf_whitespace", "chrf_eps_smoothing"],
        has_effect: |given| measures(given, &["chrf", "chrf++"]),
        why: "without --metric chrf or chrf++",
    },
    Rule {
        command: "evaluate",
        flags: &["ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive"],
        has_effect: |given| measures(given, &["ter"]),
        why: "without --metric ter",
    },
    Rule {
        command: "evaluate",
        flags: &["ter_asian_support"],
        has_effect: |given| given.get_flag("ter_normalized") || given.get_flag("ter_no_punct"),
        why: "without --ter-normalized or --ter-no-punct",
    },
    Rule {
        command: "evaluate",
        flags: &["lowercase"],
        has_effect: |given| measures(given, &["bleu", "bleu-teaching", "chrf", "chrf++"]),
        why: "with --metric ter alone, which ignores case unless --ter-case-sensitive is given",
    },
    Rule {
        command: "vocab",
        flags: &[
            "src",
            "tgt",
            "tsv",
            "kind",
            "size",
            "separate",
            "normalize",
            "boundaries",
            "min_frequency",
            "coverage",
        ],
        has_effect: |given| is_given(given, "out"),
        why: "without --out: a vocabulary that exists is applied as it is",
    },
    Rule {
        command: "vocab",
        flags: &["boundaries"],
        has_effect: |given| {
            text(given, "kind").is_none_or(|kind| ["bpe", "unigram"].contains(&kind.as_str()))
        },
        why: "with --kind word or character, which have boundaries of their own",
    },
    Rule {
        command: "vocab",
        flags: &["min_frequency"],
        has_effect: |given| text(given, "kind").is_none_or(|kind| kind != "character"),
        why: "with --kind character",
    },
];

/// The first flag that has no effect, as a sentence; `None` if all have one.
pub(crate) fn find(matches: &ArgMatches) -> Option<String> {
    let (mut path, mut given) = (Vec::new(), matches);
    while let Some((name, below)) = given.subcommand() {
        path.push(name);
        given = below;
    }
    let command = path.join(" ");
    RULES.iter().filter(|rule| rule.command == command && !(rule.has_effect)(given)).find_map(|rule| {
        let flag = rule.flags.iter().find(|flag| is_given(given, flag))?;
        Some(format!("--{} has no effect {}: remove it", flag.replace('_', "-"), rule.why))
    })
}

/// Whether the user wrote a flag, whatever its default is.
fn is_given(given: &ArgMatches, flag: &str) -> bool {
    given.value_source(flag) == Some(ValueSource::CommandLine)
}

fn output_is(given: &ArgMatches, extensions: &[&str]) -> bool {
    let output = given.get_one::<PathBuf>("output");
    output
        .and_then(|path: &PathBuf| Path::extension(path))
        .is_some_and(|found| extensions.iter().any(|one| found.eq_ignore_ascii_case(one)))
}

fn measures(given: &ArgMatches, metrics: &[&str]) -> bool {
    texts(given, "metrics").iter().any(|name| name.split(',').any(|name| metrics.contains(&name)))
}

/// What the user wrote after a flag.
fn text(given: &ArgMatches, flag: &str) -> Option<String> {
    texts(given, flag).pop()
}

fn texts(given: &ArgMatches, flag: &str) -> Vec<String> {
    let raw = given.get_raw(flag).into_iter().flatten();
    raw.map(|value| value.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Arguments;

    fn found(line: &str) -> Option<String> {
        let words = std::iter::once("heedful").chain(line.split_whitespace());
        let matches = Arguments::command().try_get_matches_from(words);
        find(&matches.unwrap_or_else(|error| panic!("{line}: {error}")))
    }

    #[test]
    fn a_flag_without_effect_is_named_with_the_reason() {
        for (line, expected) in [
            ("translate run --sample --beam 3", "--beam has no effect with --sample"),
            ("generate run --beam 3 --temperature 0.5", "--temperature has no effect with --beam"),
            ("generate run --beam 3 --top-k 5", "--top-k has no effect with --beam"),
            ("generate run --temperature 0 --seed 3", "--seed has no effect with --temperature 0"),
            ("classify news --label-text a.tsv --words 2", "--words has no effect with --label-text"),
            ("explain run text --view grid", "--view has no effect without -o FILE.svg"),
            ("explain run text -o a.html --layer cross", "--layer has no effect in .html and .json"),
            ("explain run text -o a.json --head 1", "--head has no effect in .html and .json"),
            ("explain run text -o a.html --weights none", "--weights has no effect without -o FILE.json"),
            ("explain run text -o a.svg --raw-scores", "--raw-scores has no effect without -o FILE.json"),
            ("explain run text --n-best 2", "--n-best has no effect without -o FILE.html"),
            ("explain run text --target a --beam 2", "--beam has no effect with --target"),
            ("evaluate a --ref b --seed 3", "--seed has no effect without --confidence or --compare"),
            ("evaluate a --ref b --resamples 3", "--resamples has no effect without --confidence"),
            ("evaluate a --ref b --confidence --trials 3", "--trials has no effect without --compare"),
            (
                "evaluate a --ref b --metric ter --tokenize zh",
                "--tokenize has no effect without --metric bleu",
            ),
            (
                "evaluate a --ref b --metric chrf --smooth none",
                "--smooth has no effect without --metric bleu",
            ),
            ("evaluate a --ref b --teaching-order 2", "--teaching-order has no effect without --metric"),
            ("evaluate a --ref b --chrf-beta 3", "--chrf-beta has no effect without --metric chrf"),
            ("evaluate a --ref b --ter-no-punct", "--ter-no-punct has no effect without --metric ter"),
            ("evaluate a --ref b --metric ter --ter-asian-support", "without --ter-normalized or"),
            (
                "evaluate a --ref b --metric ter --lowercase",
                "--lowercase has no effect with --metric ter alone",
            ),
            ("vocab --show v --size 5", "--size has no effect without --out"),
            ("vocab --encode v --separate", "--separate has no effect without --out"),
            ("vocab --out v --src a --tgt b --kind word --boundaries spaces", "--boundaries has no effect"),
            (
                "vocab --out v --src a --tgt b --kind character --min-frequency 3",
                "--min-frequency has no effect",
            ),
        ] {
            let sentence = found(line).unwrap_or_else(|| panic!("{line} is accepted"));
            assert!(sentence.contains(expected) && sentence.ends_with(": remove it"), "{line}: {sentence}");
        }
    }

    #[test]
    fn flags_with_an_effect_and_defaults_are_accepted() {
        for line in [
            "translate run --sample --temperature 0.5 --n-best 3",
            "translate run --beam 3",
            "generate run --temperature 0.5 --top-k 5 --seed 3",
            "generate run --temperature 0",
            "generate run --beam 3 --n 3",
            "classify news --label-text a.tsv --words 2 -o labels",
            "explain run text --layer cross --head 1 --level word",
            "explain run text -o a.png --view grid",
            "explain run text -o a.json --weights packed --n-best 3",
            "explain heads run --src a --tgt b",
            "evaluate a --ref b --tokenize zh --lowercase --smooth floor --smooth-value 0.1",
            "evaluate a --ref b --metric bleu,chrf++ --chrf-beta 3 --confidence --seed 3",
            "evaluate a --ref b --compare c --trials 5",
            "vocab --out v --src a --tgt b --size 50 --boundaries spaces --min-frequency 3",
            "vocab --encode v --pieces",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }

    #[test]
    fn rules_name_flags_that_exist() {
        for rule in RULES {
            let mut command = Arguments::command();
            for name in rule.command.split(' ') {
                command = command.find_subcommand(name).expect("a command").clone();
            }
            for flag in rule.flags {
                assert!(
                    command.get_arguments().any(|known| known.get_id() == flag),
                    "{}: {flag}",
                    rule.command
                );
            }
        }
    }
}
