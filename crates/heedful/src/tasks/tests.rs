use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heedful_tensor::DType;

use super::{ModelConfig, resolve};
use crate::layers::Tying;
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::TransformerConfig;
use crate::recipe::{BestBy, Key, Overrides, Preset, Recipe, RecipeError, find_key};
use crate::train::Schedule;
use crate::train::checkpoint::Keep;

fn resolved(text: &str, sets: &[&str]) -> Result<Recipe, RecipeError> {
    let mut overrides = Overrides::new();
    overrides.text(text, Path::new("my.toml"))?;
    sets.iter().try_for_each(|set| overrides.set(set))?;
    resolve(overrides)
}

fn complaint(text: &str) -> String {
    resolved(text, &[]).expect_err("this recipe is bad").to_string()
}

fn set_complaint(set: &str) -> String {
    resolved("", &[set]).expect_err("this setting is bad").to_string()
}

#[test]
fn the_small_preset_is_the_default() {
    assert_eq!(Recipe::preset(Preset::Small), Recipe::default());
}

#[test]
fn presets_are_the_models_of_those_names() {
    for (preset, expected) in [
        (Preset::Tiny, TransformerConfig::tiny(100)),
        (Preset::Small, TransformerConfig::small(100)),
        (Preset::Iwslt, TransformerConfig::iwslt(100)),
        (Preset::Base, TransformerConfig::base(100)),
        (Preset::Big, TransformerConfig::big(100)),
    ] {
        assert_eq!(
            Recipe::preset(preset).model_config([100, 100], 0),
            Ok(EncoderDecoderConfig::Transformer(expected).into())
        );
    }
    let base = Recipe::preset(Preset::Base);
    assert_eq!(base.schedule(), Schedule::noam(512, 4000));
    assert_eq!(base.keep(), Keep { last: 5, best: 5, full: 2 });
}

#[test]
fn later_overrides_win() {
    let text = "[model]\npreset = \"base\"\nheads = 16\n[training]\ndropout = 0.2\nseed = 5\n";
    let mut overrides = Overrides::new();
    overrides.text(text, Path::new("my.toml")).expect("good TOML");
    overrides.flag(find_key("dropout").expect("a key"), &["0.25".to_owned()]);
    overrides.flag(find_key("seed").expect("a key"), &["6".to_owned()]);
    overrides.flag(find_key("src").expect("a key"), &["a".to_owned(), "1".to_owned()]);
    overrides.flag(find_key("tgt").expect("a key"), &["b".to_owned(), "2".to_owned()]);
    overrides.set("dropout=0.3").expect("a good setting");
    let recipe = resolve(overrides).expect("a good recipe");
    assert_eq!((recipe.model.d_model, recipe.model.heads), (512, 16), "the preset lies below all");
    assert_eq!((recipe.training.dropout, recipe.training.seed), (0.3, 6));
    assert_eq!(recipe.data.tgt, [PathBuf::from("b"), PathBuf::from("2")]);
}

#[test]
fn a_preset_on_the_command_line_has_lower_precedence_than_the_file() {
    let recipe = resolved("[model]\nheads = 2\n", &["preset=big"]).expect("a good recipe");
    assert_eq!((recipe.model.d_model, recipe.model.heads), (1024, 2));
}

#[test]
fn a_printed_recipe_parses_to_the_same_recipe() {
    let mut recipe = Recipe::preset(Preset::Big);
    recipe.data.src = vec!["a \"quoted\"\\ name".into(), "b.gz".into()];
    recipe.data.tgt = vec!["c".into(), "d".into()];
    recipe.training.time = Some(Duration::from_secs(5400));
    recipe.training.clip_norm = Some(1.0);
    recipe.training.adam_epsilon = 1e-12;
    recipe.training.compute = DType::F32;
    recipe.model.tying = Tying::TargetOutput;
    recipe.output.out = Some("run".into());
    let text = recipe.to_toml();
    assert_eq!(resolved(&text, &[]).expect("as it was written"), recipe);
    for key in Recipe::keys() {
        let lines = ["", "# "].map(|prefix| format!("\n{prefix}{} = {}\n", key.name, key.value(&recipe)));
        assert!(lines.iter().any(|line| text.contains(line)), "{}", key.path());
    }
    assert!(text.lines().all(|line| line.len() < 110), "comments are broken into lines");
}

#[test]
fn defaults_depend_on_the_number_of_steps_and_explicit_values_are_kept() {
    let of = |file: &str, sets: &[&str]| resolved(file, sets).expect("a good recipe");
    let short = of("", &["steps=5"]);
    assert_eq!((short.training.warmup, short.validation.every, short.checkpoint.every), (1, 1, 1));
    let reached = f64::from(short.schedule().rate(5)) / short.training.lr;
    assert!(reached > 0.4, "the last of five steps has {reached} of the peak");
    assert_eq!(of("", &["steps=5", "warmup=2000"]).training.warmup, 2000);
    assert_eq!(of("[training]\nwarmup = 300\n", &["steps=1000"]).training.warmup, 300);
    assert_eq!(of("", &["preset=base", "steps=1000"]).training.warmup, 100);
    assert_eq!(of("", &["steps=1000", "time=1h"]).training.warmup, 100, "the time is a limit");
    assert_eq!(of("", &["steps=none"]).training.warmup, 2000);
    assert_eq!(of("", &[]).training.warmup, 2000);

    // Defaults of a printed recipe follow a number of steps that is changed in it.
    let printed = short.to_toml();
    assert!(printed.contains("\n# warmup = 1\n") && printed.contains("\nsteps = 5\n"), "{printed}");
    assert_eq!(of(&printed, &[]), short);
    assert_eq!(of(&printed.replace("steps = 5", "steps = 1000"), &[]).training.warmup, 100);
}

#[test]
fn unknown_keys_name_file_line_and_the_nearest_key() {
    assert_eq!(
        complaint("[training]\n# more\ndroput = 0.3\n"),
        "my.toml:3: there is no key `training.droput`: did you mean `training.dropout`?"
    );
    assert_eq!(
        complaint("[model]\ndropout = 0.3\n"),
        "my.toml:2: there is no key `model.dropout`: `dropout` is in [training]"
    );
    assert_eq!(
        complaint("\n\n[trainin]\nseed = 1\n"),
        "my.toml:3: there is no section [trainin]: did you mean [training]?"
    );
    assert_eq!(
        complaint("seed = 1\n"),
        "my.toml:1: `seed` is outside of any section: write it under [training]"
    );
    assert!(
        complaint("[training]\nxylophone = 1\n").ends_with("`heedful train --print-recipe` lists all keys")
    );
    assert!(complaint("[training.deep]\nseed = 1\n").contains("my.toml:1: there is no key `training.deep`"));
}

#[test]
fn errors_about_types_and_ranges_name_file_line_and_expected_value() {
    for (line, expected) in [
        ("dropout = \"much\"", "my.toml:2: training.dropout must be a number, not \"much\""),
        ("dropout = 1.0", "my.toml:2: training.dropout must be at least 0 and below 1, not 1.0"),
        ("dropout = nan", "my.toml:2: training.dropout must be at least 0 and below 1, not NaN"),
        ("seed = -1", "my.toml:2: training.seed must be a whole number, not -1"),
        (
            "seed = 99999999999999999999",
            "my.toml:2: training.seed must be a whole number, not a number too large",
        ),
        ("r_drop_alpha = 0", "my.toml:2: training.r_drop_alpha must be more than 0, not 0"),
        (
            "r_drop = 2.5",
            "my.toml:2: `training.r_drop` was half of the paper's α: write `training.r_drop_alpha`",
        ),
        ("batch_tokens = 0", "my.toml:2: training.batch_tokens must be at least 1, not 0"),
        ("time = 30", "my.toml:2: training.time must be a time such as 90s, 30m or 1h30m, not 30"),
        ("compute = \"f16\"", "my.toml:2: training.compute must be `bf16` or `f32`, not \"f16\""),
        ("seed = 1979-05-27", "my.toml:2: training.seed must be a whole number, not a date"),
        ("seed = 1\nseed = 2", "my.toml:3: this is not TOML: duplicate key"),
        ("seed =", "my.toml:2: this is not TOML: "),
    ] {
        let message = complaint(&format!("[training]\n{line}\n"));
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
}

#[test]
fn settings_are_found_by_their_short_names() {
    let recipe = resolved("", &["training.lr=5e-3", "beam = 4", "batch-tokens=1000", "time=1h30m"]);
    let recipe = recipe.expect("good settings");
    assert_eq!((recipe.training.lr, recipe.search.beam, recipe.training.batch_tokens), (5e-3, 4, 1000));
    assert_eq!(recipe.training.time, Some(Duration::from_secs(5400)));
    assert_eq!(
        set_complaint("every=5"),
        "--set every=5: `every` may mean validation.every or checkpoint.every: name the section too"
    );
    assert_eq!(
        set_complaint("warm_up=5"),
        "--set warm_up=5: there is no key `warm_up`: did you mean `training.warmup`?"
    );
    assert_eq!(set_complaint("dropout"), "--set dropout: write key=value");
    assert!(set_complaint("dropout=2").starts_with("--set dropout=2: training.dropout must be at least 0"));
}

#[test]
fn an_old_recipe_with_r_drop_none_is_accepted() {
    let recipe = resolved("[training]\nr_drop = \"none\"\n", &[]).expect("a recipe of an earlier version");
    assert_eq!(recipe.training.r_drop_alpha, None);
}

#[test]
fn contradictory_values_are_rejected() {
    assert!(set_complaint("heads=5").contains("5 heads do not divide d_model 256"));
    assert!(set_complaint("sharing=separate").contains("model.tying"));
    assert!(set_complaint("src=a").contains("data.src and data.tgt name 1 and 0 files"));
    let nothing_dropped = "two passes that differ in their dropout masks, and nothing is dropped";
    for family in ["transformer", "recurrent", "convolutional"] {
        let family = format!("family={family}");
        let sets = [&family, "dropout=0", "r_drop_alpha=5"];
        assert!(resolved("", &sets).expect_err("equal passes").to_string().contains(nothing_dropped));
        assert!(resolved("", &[&family, "r_drop_alpha=5"]).is_ok());
    }
    assert!(resolved("", &["dropout=0", "attention_dropout=0.1", "r_drop_alpha=5"]).is_ok());
    let message = resolved("", &["best_by=bleu", "bleu=false"]).expect_err("no BLEU").to_string();
    assert!(message.contains("validation.bleu is false"), "{message}");
    let message = resolved("", &["schedule=cosine", "steps=none"]).expect_err("no end").to_string();
    assert!(message.contains("set training.steps"), "{message}");
}

#[test]
fn each_task_has_its_own_defaults_files_and_model() {
    let lm = resolved("", &["task=lm", "text=a"]).expect("good settings");
    assert_eq!((lm.data.block, lm.training.label_smoothing), (Some(256), 0.0));
    assert_eq!(resolved("", &["block=none", "task=lm", "text=a"]).expect("good settings").data.block, None);
    assert!(matches!(lm.model_config([50; 2], 0), Ok(ModelConfig::Language(_))));
    let classify = resolved("", &["task=classify", "label_text=a"]).expect("good settings");
    assert_eq!((classify.data.block, classify.validation.best_by), (None, BestBy::Accuracy));
    assert!(matches!(classify.model_config([50; 2], 3), Ok(ModelConfig::Classify(_))));
    assert!(classify.model_config([50; 2], 1).is_err());
    let mlm = resolved("", &["task=mlm", "text=a"]).expect("good settings");
    assert!(matches!(mlm.model_config([50; 2], 0), Ok(ModelConfig::Masked(_))));
    for (sets, expected) in [
        (
            ["task=lm", "src=a", "tgt=b"],
            "data.src is for the task translate; the task lm does not use it: it reads data.text",
        ),
        (
            ["text=a", "seed=1", "seed=2"],
            "data.text is for the tasks lm and mlm; the task translate does not use it",
        ),
        (["task=mlm", "valid_text=a", "best_by=bleu"], "has no BLEU"),
        (["task=classify", "label_text=a", "block=5"], "data.block is for the tasks lm and mlm"),
        (["task=mlm", "text=a", "init_from=b"], "model.init_from: "),
        (
            ["task=mlm", "text=a", "r_drop_alpha=5"],
            "predict the same tokens, and the task mlm masks others in each",
        ),
    ] {
        let message = resolved("", &sets).expect_err("a contradiction").to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_file_may_have_any_name() {
    for name in ["2016", "1e5", "true", "a b"] {
        let recipe = resolved("", &[&format!("out={name}")]).expect("a good setting");
        assert_eq!(recipe.output.out, Some(name.into()));
    }
    let recipe = resolved("", &["src=[\"1\", \"2\"]", "tgt=[\"3\", \"4\"]"]).expect("good settings");
    assert_eq!(recipe.data.src, [PathBuf::from("1"), PathBuf::from("2")]);
}

#[test]
fn former_names_of_keys_are_read_and_keep_the_fingerprint() {
    let former = "[training]\nschedule = \"cosine\"\npeak = 2e-3\nfloor = 1e-5\nexplosion = 50\n[model]\nfamily = \"convolutional\"\ntaps = 5\n";
    let current =
        former.replace("peak", "lr").replace("floor", "min_lr").replace("explosion", "max_grad_norm_ratio");
    let [former, current] =
        [former, &current.replace("taps", "kernel_size")].map(|text| resolved(text, &[]).expect("good keys"));
    assert_eq!((former.training.lr, former.training.min_lr, former.model.kernel_size), (2e-3, 1e-5, 5));
    assert_eq!(former.training.max_grad_norm_ratio, Some(50.0));
    assert_eq!((former.to_toml(), former.fingerprint()), (current.to_toml(), current.fingerprint()));
}

#[test]
fn the_fingerprint_covers_the_keys_that_determine_the_weights() {
    let of = |sets: &[&str]| resolved("", sets).expect("good settings").fingerprint();
    assert_eq!(of(&[]), of(&["steps=30000", "time=5m", "keep_last=9", "out=elsewhere"]));
    assert_ne!(of(&[]), of(&["steps=7"]), "its warmup is shorter");
    assert_eq!(of(&[]), of(&["steps=7", "warmup=2000"]));
    assert_ne!(of(&[]), of(&["dropout=0.2"]));
    assert_ne!(of(&[]), of(&["r_drop_alpha=5"]));
    assert_ne!(of(&["r_drop_alpha=4"]), of(&["r_drop_alpha=5"]));
    assert_ne!(of(&["schedule=cosine"]), of(&["schedule=cosine", "steps=7"]));
    let differences = Recipe::default().differences(&resolved("", &["dropout=0.2"]).expect("a good setting"));
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].0.path(), "training.dropout");
}

#[test]
fn a_configuration_round_trips_through_a_recipe() {
    let families: [(&str, &[&str]); 3] = [
        (
            "transformer",
            &[
                "d_ff=96",
                "heads=8",
                "key_width=64",
                "norm=pre",
                "norm_kind=batch",
                "norm_epsilon=1e-6",
                "activation=silu",
                "positions=marian",
                "positions=learned max_positions=77",
                "scale_embeddings=false",
                "embedding_norm=true",
                "score=dot",
                "window=5",
                "decoder_layer=ssru",
                "surround_text=true",
            ],
        ),
        (
            "recurrent",
            &[
                "cell=gru",
                "attention=none",
                "attention=hard reward=0.3 entropy=0.02",
                "attention=straight-through attend=feeding",
                "score=general",
                "score_width=24",
                "directions=forward",
                "d_encoder=48",
                "recurrent_norm=layer norm_epsilon=1e-4",
                "encoder=convolutional taps=5 dilation=2 convolution=relu balance=norm positions=none",
            ],
        ),
        (
            "convolutional",
            &["taps=5", "dilation=2", "convolution=relu", "balance=norm", "positions=learned", "score=dot"],
        ),
    ];
    let tasks: [(&str, &[&str]); 4] = [
        ("translate", &["tying=none", "output_bias=true", "encoder_layers=2", "decoder_layers=1"]),
        ("classify", &["pooling=first pooler=true label_bias=true", "pooling_score=dot", "encoder_layers=2"]),
        ("lm", &["output_bias=true", "decoder_layers=2"]),
        ("mlm", &["output_bias=true", "encoder_layers=2"]),
    ];
    let mut tried = 0;
    for (task, of_task) in tasks {
        for (family, of_family) in families {
            for sets in ["d_model=32"].iter().chain(of_task).chain(of_family) {
                let sets: Vec<String> = [format!("task={task}"), format!("family={family}")]
                    .into_iter()
                    .chain(sets.split(' ').map(str::to_owned))
                    .collect();
                let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
                // Not every task uses every key.
                let Ok(recipe) = resolved("", &sets) else { continue };
                let config = recipe.model_config([50; 2], 3).expect("it was checked");
                let mut described = Recipe { model: Recipe::default().model, ..recipe };
                config.describe(&mut described);
                assert_eq!(described.model_config([50; 2], 3), Ok(config), "{sets:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn flags_are_unique() {
    let mut flags: Vec<String> = Recipe::keys().map(Key::flag).collect();
    let count = flags.len();
    flags.sort();
    flags.dedup();
    assert_eq!(flags.len(), count);
    assert!(
        ["dropout", "batch-tokens", "valid-src", "steps", "time", "preset", "out", "vocabulary-size"]
            .iter()
            .all(|flag| flags.iter().any(|known| known == flag))
    );
}

#[test]
fn every_recipe_of_the_project_resolves_and_comments_each_key() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the project has recipes") {
        let path = entry.expect("an entry").path();
        let mut overrides = Overrides::new();
        overrides.file(&path).and_then(|()| resolve(overrides)).expect("a good recipe");
        let text = fs::read_to_string(&path).expect("it was read before");
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let is_key = pair[1].contains(" = ") && !pair[1].starts_with('#');
            let commented = pair[0].starts_with('#') || pair[1].contains(" # ");
            assert!(!is_key || commented, "{}: {} has no comment", path.display(), pair[1]);
        }
        count += 1;
    }
    assert!(count > 0, "there are none");
}
