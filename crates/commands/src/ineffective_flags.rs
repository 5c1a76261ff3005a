//! Refuses flags that have no effect in combination with other flags.
//!
//! Rules that clap supports (`requires`, `conflicts_with`) are declared at the flag. The flags of a recipe
//! have their own table in the library.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Flags of one command, and the condition under which they have an effect.
struct Rule {
    /// Path of the command, for example `explain heads`.
    command: &'static str,
    flags: &'static [&'static str],
    has_effect: fn(&ArgMatches) -> bool,
    /// The reason, to follow "has no effect".
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        command: "translate",
        flags: &["beam"],
        has_effect: |given| !given.get_flag("sample"),
        reason: "with --sample, which draws translations instead of searching for them",
    },
    Rule {
        command: "generate",
        flags: &["temperature", "top_k", "top_p", "seed"],
        has_effect: |given| !is_given(given, "beam"),
        reason: "with --beam, which searches for a text instead of drawing one",
    },
    Rule {
        command: "generate",
        flags: &["top_k", "top_p", "seed"],
        has_effect: |given| given.get_one::<f32>("temperature") != Some(&0.0),
        reason: "with --temperature 0, which always takes the most probable token",
    },
    Rule {
        command: "classify",
        flags: &["words"],
        has_effect: |given| !is_given(given, "label_text") || is_given(given, "output"),
        reason: "with --label-text, which prints a report, unless -o FILE takes the lines of labels",
    },
    Rule {
        command: "explain",
        flags: &["view"],
        has_effect: |given| output_is(given, &["svg", "png"]),
        reason: "without -o FILE.svg or FILE.png: the terminal shows a matrix, a page every view",
    },
    Rule {
        command: "explain",
        flags: &["layer", "head", "level"],
        has_effect: |given| !output_is(given, &["html", "json"]),
        reason: "in .html and .json, which have every layer and head",
    },
    Rule {
        command: "explain",
        flags: &["weights"],
        has_effect: |given| output_is(given, &["json"]),
        reason: "without -o FILE.json",
    },
    Rule {
        command: "explain",
        flags: &["raw_scores"],
        has_effect: |given| output_is(given, &["html", "json"]),
        reason: "without -o FILE.json or FILE.html: pictures show weights",
    },
    Rule {
        command: "explain",
        flags: &["n_best"],
        has_effect: |given| output_is(given, &["html", "json"]),
        reason: "without -o FILE.html or FILE.json: the others show the best output",
    },
    Rule {
        command: "explain",
        flags: &["beam", "n_best"],
        has_effect: |given| !is_given(given, "target"),
        reason: "with --target, which is explained instead of a search's result",
    },
    Rule {
        command: "evaluate",
        flags: &["resamples", "seed"],
        has_effect: |given| given.get_flag("confidence") || is_given(given, "compare"),
        reason: "without --confidence or --compare",
    },
    Rule {
        command: "evaluate",
        flags: &["trials"],
        has_effect: |given| is_given(given, "compare"),
        reason: "without --compare",
    },
    Rule {
        command: "evaluate",
        flags: &["tokenize"],
        has_effect: |given| measures(given, &["bleu", "bleu-teaching"]),
        reason: "without --metric bleu or bleu-teaching",
    },
    Rule {
        command: "evaluate",
        flags: &["smooth", "smooth_value"],
        has_effect: |given| measures(given, &["bleu"]),
        reason: "without --metric bleu",
    },
    Rule {
        command: "evaluate",
        flags: &["teaching_order"],
        has_effect: |given| measures(given, &["bleu-teaching"]),
        reason: "without --metric bleu-teaching",
    },
    Rule {
        command: "evaluate",
        flags: &["chrf_char_order", "chrf_beta", "chrf_whitespace", "chrf_eps_smoothing"],
        has_effect: |given| measures(given, &["chrf", "chrf++"]),
        reason: "without --metric chrf or chrf++",
    },
    Rule {
        command: "evaluate",
        flags: &["ter_normalized", "ter_no_punct", "ter_asian_support", "ter_case_sensitive"],
        has_effect: |given| measures(given, &["ter"]),
        reason: "without --metric ter",
    },
    Rule {
        command: "evaluate",
        flags: &["ter_asian_support"],
        has_effect: |given| given.get_flag("ter_normalized") || given.get_flag("ter_no_punct"),
        reason: "without --ter-normalized or --ter-no-punct",
    },
    Rule {
        command: "evaluate",
        flags: &["lowercase"],
        has_effect: |given| measures(given, &["bleu", "bleu-teaching", "chrf", "chrf++"]),
        reason: "with --metric ter alone, which ignores case unless --ter-case-sensitive is given",
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
        reason: "without --out: an existing vocabulary is applied unchanged",
    },
    Rule {
        command: "vocab",
        flags: &["boundaries"],
        has_effect: |given| {
            text(given, "kind").is_none_or(|kind| ["bpe", "unigram"].contains(&kind.as_str()))
        },
        reason: "with --kind word or character, which define their own boundaries",
    },
    Rule {
        command: "vocab",
        flags: &["min_frequency"],
        has_effect: |given| text(given, "kind").is_none_or(|kind| kind != "character"),
        reason: "with --kind character",
    },
];

/// A sentence about the first flag without effect; `None` if all flags have an effect.
pub(crate) fn find(matches: &ArgMatches) -> Option<String> {
    let (mut path, mut given) = (Vec::new(), matches);
    while let Some((name, below)) = given.subcommand() {
        path.push(name);
        given = below;
    }
    let command = path.join(" ");
    RULES.iter().filter(|rule| rule.command == command && !(rule.has_effect)(given)).find_map(|rule| {
        let flag = rule.flags.iter().find(|flag| is_given(given, flag))?;
        Some(format!("--{} has no effect {}: remove it", flag.replace('_', "-"), rule.reason))
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

/// The last value of a flag, as the user wrote it.
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
