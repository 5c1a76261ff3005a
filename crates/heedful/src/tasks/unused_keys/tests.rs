//! Every key × every task × every family: accepted keys have an effect, rejected keys have none.

use std::collections::BTreeSet;

use crate::data::Input;
use crate::data::corpus::{CorpusFiles, Filters, Pair};
use crate::data::labels::Labels;
use crate::data::tokenizer::VocabularyKind;
use crate::recipe::{
    Averaging, Balance, Family, Key, Literal, Location, Overrides, Pooling, Recipe, RecipeError,
    RecurrentNorm, Task, VocabularyKeys, find_key,
};
use crate::tasks::resolve;

/// Settings of other keys under which every key is tested, in addition to the defaults.
const CONTEXTS: &[&str] = &[
    "",
    "training.schedule=noam",
    "training.schedule=cosine",
    "training.schedule=constant",
    "training.weight_decay=0.1",
    "model.positions=learned",
    "model.attention=none",
    "model.attention=hard",
    "model.score=dot",
    "model.recurrent_norm=layer",
    "model.encoder=convolutional",
    "model.balance=norm",
    "model.pooling=first",
    "data.block=none",
    "data.max_tokens=none",
    "vocabulary.kind=word",
    "vocabulary.file=vocabulary.json",
    "validation.every_time=5m",
    "validation.bleu=false",
    "search.beam=3",
    "checkpoint.average=none",
];

/// Keys that choose the defaults of others; the test varies them as tasks, families and presets.
const STARTING_POINTS: [&str; 3] = ["data.task", "model.family", "model.preset"];

fn resolved(sets: &[String]) -> Result<Recipe, RecipeError> {
    let mut overrides = Overrides::new();
    sets.iter().filter(|set| !set.is_empty()).try_for_each(|set| overrides.set(set))?;
    resolve(overrides)
}

/// Values of its type that differ from the current one.
fn others(key: &Key, current: &Literal) -> Vec<Literal> {
    let text = |text: &str| Literal::Text(text.to_owned());
    let names = key.expects.split('`').skip(1).step_by(2).map(text);
    let numbers = match current {
        Literal::Integer(value) => vec![2 * value, value + 2],
        _ => vec![8],
    };
    let any = [Literal::Boolean(true), Literal::Boolean(false), text("none"), text("elsewhere"), text("7m")];
    let candidates = names
        .chain(any)
        .chain(numbers.into_iter().map(Literal::Integer))
        .chain([0.25, 0.5, 3.0].map(Literal::Float))
        .chain([Literal::List(vec![text("other")])]);
    let fits = |value: &Literal| {
        let mut recipe = Recipe::default();
        (key.set)(&mut recipe, value).is_ok() && key.value(&recipe) != *current
    };
    candidates.filter(fits).collect()
}

/// Everything that a run derives from a recipe. Values that a run uses directly are included as they are.
fn effect(recipe: &Recipe, labels: &Labels) -> Vec<String> {
    let definition = recipe.data.task.definition();
    let mut built = recipe.clone();
    let has_norm = match recipe.model.family {
        Family::Transformer => true,
        Family::Recurrent => recipe.model.recurrent_norm == RecurrentNorm::Layer,
        Family::Convolutional => false,
    };
    if !has_norm && recipe.model.balance == Balance::Scale {
        // It is in the configuration, but such convolutions have no norm.
        built.model.norm_epsilon = Recipe::default().model.norm_epsilon;
    }
    if recipe.training.weight_decay == 0.0 {
        built.training.decayed = Recipe::default().training.decayed;
    }
    if recipe.model.pooling != Pooling::Attention {
        built.model.pooling_score = Recipe::default().model.pooling_score;
    }
    let config = definition.config(&built, crate::tasks::Sizes { vocabularies: [50; 2], labels: 3 });
    let mut effect = vec![
        format!("{}", serde_json::to_value(config).expect("a configuration is JSON")),
        format!("{:?}", built.trainer_options()),
        format!("{:?}", recipe.keep()),
        format!("{:?}", kept_lengths(recipe, labels)),
        vocabulary(recipe),
    ];
    let validation = &recipe.validation;
    let translates = recipe.data.task == Task::Translate;
    let used_directly = |key: &&Key| match key.path().as_str() {
        "training.batch_tokens" | "training.accumulate" | "training.steps" | "training.time" => true,
        "checkpoint.average_count" => recipe.checkpoint.average != Averaging::None,
        "checkpoint.every" | "checkpoint.every_time" | "checkpoint.average" => true,
        "validation.every" => validation.every_time.is_none(),
        "validation.every_time" | "validation.best_by" | "validation.patience" => true,
        "validation.bleu" => translates,
        "validation.bleu_pairs" => translates && validation.bleu,
        "search.length_penalty" => translates && recipe.search.beam > 1,
        "data.src" | "data.tgt" | "data.tsv" | "data.valid_src" | "data.valid_tgt" | "data.valid_tsv" => {
            translates
        }
        "data.label_text" | "data.valid_label_text" => recipe.data.task == Task::Classify,
        "data.text" | "data.valid_text" => matches!(recipe.data.task, Task::Language | Task::Masked),
        "model.init_from" | "training.freeze" => true,
        _ => key.section == "output" || (key.section == "search" && translates),
    };
    let values = Recipe::keys().filter(used_directly);
    effect.extend(values.map(|key| format!("{} = {}", key.path(), key.value(recipe))));
    effect
}

/// The lengths of the examples kept from a small text of short, long, unbalanced and repeated lines.
fn kept_lengths(recipe: &Recipe, labels: &Labels) -> Vec<(usize, usize)> {
    let kind = recipe.data.task.definition().example_kind(&recipe.data, Some(labels));
    let data = &recipe.data;
    let filters = Filters {
        max_tokens: data.max_tokens,
        over_long: data.over_long,
        max_ratio: data.max_ratio,
        duplicates: data.duplicates,
    };
    let mut filter = kind.filter(&filters);
    let mut rest = Vec::new();
    let mut kept = Vec::new();
    for (source, target) in [(3, 3), (3, 3), (2, 40), (300, 300), (600, 600)] {
        let pair = Pair { source: "x".repeat(source), target: "y".repeat(target) };
        let encoded = (vec![7; source], vec![8; target]);
        kept.extend(kind.add(&pair, encoded, &mut rest, &mut filter));
    }
    kept.extend(kind.last(rest, &mut filter));
    kept.iter().map(|(source, target)| (source.len(), target.len())).collect()
}

fn labels() -> Labels {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("labels");
    std::fs::write(&file, "a\tone\nb\ttwo\n").expect("room on the disk");
    let files = CorpusFiles::labelled(&[Input::new(&file)]).expect("a file of labels");
    Labels::collect(&files).expect("two labels")
}

/// The source of the vocabulary, as a run chooses it.
fn vocabulary(recipe: &Recipe) -> String {
    let keys = &recipe.vocabulary;
    let two_sided = recipe.data.task == Task::Translate;
    if let Some(folder) = &recipe.model.init_from {
        return format!("of {}", folder.display());
    }
    if let Some(file) = &keys.file {
        return format!("{}", file.display());
    }
    if two_sided && (keys.source_file.is_some() || keys.target_file.is_some()) {
        return format!("{:?} and {:?}", keys.source_file, keys.target_file);
    }
    let boundaries =
        matches!(keys.kind, VocabularyKind::Bpe | VocabularyKind::Unigram).then_some(keys.boundaries);
    let sharing = two_sided.then_some(keys.sharing);
    let VocabularyKeys { kind, size, normalization, coverage, .. } = keys;
    format!("{kind:?} {size} {normalization:?} {coverage} {boundaries:?} {sharing:?}")
}

#[test]
fn a_key_is_rejected_exactly_if_it_has_no_effect() {
    let [mut rejected, mut accepted, mut contradicted] = [const { BTreeSet::new() }; 3];
    let mut tested = 0;
    let labels = labels();
    for task in Task::ALL {
        for family in Family::ALL {
            let family_and_task = [format!("data.task={task}"), format!("model.family={family}")];
            if resolved(&family_and_task).is_err() {
                assert!(matches!(task, Task::Language | Task::Masked), "{task} {family}");
                continue;
            }
            for &context in CONTEXTS {
                let mut sets = family_and_task.to_vec();
                sets.push(context.to_owned());
                // A context that is invalid here is tested as a key.
                let Ok(base) = resolved(&sets) else { continue };
                for key in Recipe::keys().filter(|key| !STARTING_POINTS.contains(&key.path().as_str())) {
                    if context.starts_with(&format!("{}=", key.path())) {
                        continue;
                    }
                    let with = |value: &Literal| {
                        resolved(&[&sets[..], &[format!("{}={value}", key.path())]].concat())
                    };
                    let own = |unused: &[(Location, String)]| {
                        let place = format!("--set {}=", key.path());
                        let own =
                            unused.iter().find(|(location, _)| location.to_string().starts_with(&place));
                        own.map(|(_, message)| message.clone())
                    };
                    // Values that contradict the context are rejected for another reason.
                    let is_tried = |value: &Literal| match with(value) {
                        Ok(_) => true,
                        Err(RecipeError::Unused(unused)) => own(&unused).is_some(),
                        Err(_) => false,
                    };
                    let Some(value) = others(key, &key.value(&base)).into_iter().find(is_tried) else {
                        contradicted.insert(key.path());
                        continue;
                    };
                    let mut changed = base.clone();
                    (key.set)(&mut changed, &value).expect("a value that fits");
                    let has_effect = effect(&changed, &labels) != effect(&base, &labels);
                    let place = format!("{task}, {family}, {context:?}: {} = {value}", key.path());
                    tested += 1;
                    match with(&value) {
                        Err(RecipeError::Unused(unused)) => {
                            assert!(!has_effect, "{place} is rejected: {unused:?}");
                            let message = own(&unused).expect("it was found above");
                            let here =
                                [format!("family {family}"), format!("task {task}"), " is ".to_owned()];
                            assert!(
                                message.starts_with(&format!("{} is for ", key.path())),
                                "{place}: {message}"
                            );
                            assert!(here.iter().any(|here| message.contains(here)), "{place}: {message}");
                            rejected.insert(key.path());
                        }
                        _ => {
                            assert!(has_effect, "{place} is accepted without effect");
                            accepted.insert(key.path());
                        }
                    }
                }
            }
        }
    }
    assert!(tested > 5000, "{tested}");
    let limited = Recipe::keys().filter(|key| key.scope.is_declared || !key.scope.conditions.is_empty());
    // `vocabulary.file` is rejected only with an existing pretrained model; the tests of the command cover
    // this.
    let limited = limited.map(Key::path).filter(|path| path != "vocabulary.file");
    assert_eq!(rejected, limited.collect(), "every limit of the table was met");
    // One of two files alone, and a folder that does not exist.
    const EXPECTED: [&str; 8] = [
        "data.src",
        "data.tgt",
        "data.valid_src",
        "data.valid_tgt",
        "model.init_from",
        "vocabulary.sharing",
        "vocabulary.source_file",
        "vocabulary.target_file",
    ];
    let never: Vec<&String> = contradicted.difference(&accepted).collect();
    assert!(never.iter().all(|path| EXPECTED.contains(&path.as_str())), "never accepted: {never:?}");
}

#[test]
fn errors_about_unused_keys_name_the_families_and_tasks_that_use_them() {
    for (sets, expected) in [
        (
            vec!["family=recurrent", "window=3"],
            "--set window=3: model.window is for the family transformer; the family recurrent does not use it",
        ),
        (
            vec!["attention=hard"],
            "--set attention=hard: model.attention is for the family recurrent; the family transformer does not use it",
        ),
        (
            vec!["family=recurrent", "positions=none"],
            "--set positions=none: model.positions is for convolutional encoders, and model.encoder is \"recurrent\"",
        ),
        (
            vec!["block=64"],
            "--set block=64: data.block is for the tasks lm and mlm; the task translate does not use it",
        ),
        (
            vec!["task=lm", "text=a", "tying=none"],
            "--set tying=none: model.tying is for the task translate; the task lm does not use it",
        ),
        (
            vec!["schedule=noam", "lr=0.1"],
            "--set lr=0.1: training.lr is for the schedules inverse-sqrt, cosine, trapezoid and constant, and training.schedule is \
             \"noam\"",
        ),
        (
            vec!["vocabulary.file=a", "vocabulary.size=50"],
            "--set vocabulary.size=50: vocabulary.size is for vocabularies that are learned, and vocabulary.file is \"a\"",
        ),
        (
            vec!["src=a", "tgt=b", "patience=3"],
            "--set patience=3: validation.patience is for runs with a validation set, and none is named (--valid-src and \
             --valid-tgt)",
        ),
        (
            vec!["family=recurrent", "heads=3", "norm=pre"],
            "--set heads=3: model.heads is for the family transformer; the family recurrent does not use it\n--set norm=pre: \
             model.norm is for the family transformer; the family recurrent does not use it",
        ),
    ] {
        let sets: Vec<String> = sets.into_iter().map(str::to_owned).collect();
        assert_eq!(resolved(&sets).expect_err("an unused key").to_string(), expected);
    }
}

#[test]
fn a_family_flag_supersedes_keys_of_the_file_and_unused_keys_of_programs_are_dropped() {
    use crate::recipe::Author;
    let text = "[model]\nheads = 2\nd_model = 64\n";
    let with_file = |text: &str, author, sets: &[&str]| {
        let mut overrides = Overrides::new();
        overrides.written_by(author);
        overrides.text(text, std::path::Path::new("my.toml"))?;
        overrides.written_by(Author::User);
        sets.iter().try_for_each(|set| overrides.set(set))?;
        resolve(overrides)
    };
    let superseded = with_file(text, Author::User, &["family=recurrent"]).expect("a good recipe");
    assert_eq!((superseded.model.d_model, superseded.model.heads), (64, Recipe::default().model.heads));
    let own = format!("{text}family = \"recurrent\"\n");
    let error = with_file(&own, Author::User, &[]).expect_err("heads of a recurrent model").to_string();
    assert!(error.starts_with("my.toml:2: model.heads is for the family transformer"), "{error}");
    assert_eq!(with_file(&own, Author::Program, &[]).expect("of a run"), superseded);
    let error = with_file(&own, Author::Program, &["heads=2"]).expect_err("a flag").to_string();
    assert!(error.starts_with("--set heads=2: "), "{error}");
}

#[test]
fn unused_keys_are_printed_as_comments() {
    let recipe = resolved(&["family=recurrent".to_owned()]).expect("a good recipe");
    let text = recipe.to_toml();
    assert!(text.contains("\n# heads = ") && text.contains("\ncell = ") && text.contains("\n# factor = "));
    let mut overrides = Overrides::new();
    overrides.text(&text, std::path::Path::new("printed.toml")).expect("it is TOML");
    assert_eq!(resolve(overrides).expect("as it was printed"), recipe);
    let heads = find_key("model.heads").expect("a key");
    assert!(recipe.why_unused(heads).is_some());
}
