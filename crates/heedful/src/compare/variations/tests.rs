use super::*;
use crate::recipe::{Family, PositionKind, Preset};

fn base(preset: Preset) -> Recipe {
    let mut recipe = Recipe::preset(preset);
    recipe.data.src = vec!["train.en".into()];
    recipe.data.tgt = vec!["train.de".into()];
    recipe.data.valid_src = vec!["valid.en".into()];
    recipe.data.valid_tgt = vec!["valid.de".into()];
    recipe.output.out = Some("folder".into());
    recipe
}

fn names(plan: &VariationPlan) -> Vec<&str> {
    plan.variations.iter().map(|variation| variation.name.as_str()).collect()
}

#[test]
fn the_base_preset_gives_the_rows_of_the_paper() {
    let plan = plan(&base(Preset::Base), VariationGroup::PAPER).expect("a plan");
    let expected = [
        "base",
        "heads-1",
        "heads-2",
        "heads-4",
        "heads-16",
        "key-width-128",
        "key-width-256",
        "layers-2",
        "layers-4",
        "layers-8",
        "d-model-256",
        "d-model-1024",
        "d-ff-1024",
        "d-ff-4096",
        "dropout-0.0",
        "dropout-0.2",
        "label-smoothing-0.0",
        "label-smoothing-0.2",
        "positions-learned",
        "positions-none",
    ];
    assert_eq!(names(&plan), expected);
    assert_eq!(plan.skipped, []);
    let layers = &plan.variations[7];
    assert_eq!(layers.changes, "encoder_layers = 2, decoder_layers = 2");
    let folder = layers.recipe.output.out.as_ref().expect("a folder");
    assert!(folder.is_absolute() && folder.ends_with("folder/layers-2"));
    let none = plan.variations.last().expect("the last");
    assert_eq!(none.recipe.model.positions, PositionKind::None);
}

#[test]
fn a_variation_differs_only_in_its_keys_and_its_folder() {
    let plan = plan(&base(Preset::Small), &[VariationGroup::Heads, VariationGroup::Dropout]).expect("a plan");
    let base = &plan.variations[0].recipe;
    for variation in &plan.variations[1..] {
        let differs: Vec<String> =
            base.differences(&variation.recipe).iter().map(|(key, ..)| key.path()).collect();
        assert_eq!(differs.len(), 2, "{}: {differs:?}", variation.name);
        assert_eq!(differs[1], "output.out");
    }
}

#[test]
fn every_seed_is_a_separate_run() {
    let plan = plan(&base(Preset::Small), &[VariationGroup::Dropout]).expect("a plan").with_seeds(3);
    assert_eq!(names(&plan)[..4], ["base", "base", "base", "dropout-0.0"]);
    let of = |number: usize| (plan.variations[number].run(), plan.variations[number].recipe.training.seed);
    assert_eq!((of(0), of(5)), (("base".to_owned(), 1), ("dropout-0.0-seed-3".to_owned(), 3)));
    assert_eq!(plan.variations[5].changes, "dropout = 0.0");
}

#[test]
fn variations_that_are_invalid_or_change_nothing_are_skipped() {
    let mut odd = base(Preset::Tiny);
    odd.model.d_model = 36;
    let plan = plan(&odd, &[VariationGroup::Heads]).expect("a plan");
    assert_eq!(names(&plan), ["base", "heads-1", "heads-4"]);
    let skipped: Vec<&str> = plan.skipped.iter().map(|variation| variation.name.as_str()).collect();
    assert_eq!(skipped, ["heads-8", "heads-16"]);
    assert!(plan.skipped[0].reason.contains("8 heads do not divide d_model 36"), "{:?}", plan.skipped);

    let mut recurrent = base(Preset::Tiny);
    recurrent.model.family = Family::Recurrent;
    recurrent.model.score = crate::layers::AttentionScore::Additive;
    let plan = super::plan(&recurrent, &[VariationGroup::Heads, VariationGroup::Layers]).expect("a plan");
    assert_eq!(names(&plan), ["base", "layers-2"]);
    assert_eq!(plan.skipped[0].reason, "it changes nothing in a recurrent model");
}

#[test]
fn recipes_without_out_validation_or_files_are_errors() {
    let error = |change: fn(&mut Recipe)| {
        let mut recipe = base(Preset::Tiny);
        change(&mut recipe);
        plan(&recipe, &VariationGroup::ALL).expect_err("no plan").to_string()
    };
    assert!(error(|recipe| recipe.output.out = None).contains("--out"));
    assert!(error(|recipe| recipe.data.valid_src.clear()).contains("--valid-src"));
    assert!(error(|recipe| recipe.data.src = vec!["-".into()]).contains("standard input"));
    assert!(error(|recipe| recipe.model.init_from = Some("model".into())).contains("init_from"));
}

#[test]
fn choices_beyond_the_paper_have_their_own_groups() {
    let of = |base: &Recipe, group: VariationGroup| plan(base, &[group]).expect("a plan");
    let transformer = base(Preset::Tiny);
    let norm = of(&transformer, VariationGroup::Norm);
    assert_eq!(names(&norm), ["base", "norm-pre-layer", "norm-post-batch", "norm-pre-batch"]);
    assert_eq!(norm.variations[3].changes, "norm = pre, norm_kind = batch");
    let window = of(&transformer, VariationGroup::Window);
    assert_eq!(names(&window), ["base", "window-1", "window-2", "window-4", "window-8"]);
    let score = of(&transformer, VariationGroup::Score);
    assert_eq!((names(&score), score.skipped.len()), (vec!["base", "score-dot"], 2));
    let family = of(&transformer, VariationGroup::Family);
    let expected = ["base", "family-recurrent-without-attention", "family-recurrent", "family-convolutional"];
    assert_eq!(names(&family), expected);
    assert_eq!(family.variations[2].recipe.model.score, crate::layers::AttentionScore::Additive);
    let pooling = of(&transformer, VariationGroup::Pooling);
    assert_eq!((names(&pooling), pooling.skipped.len()), (vec!["base"], 4));

    let mut recurrent = base(Preset::Tiny);
    recurrent.start_from_family(Family::Recurrent);
    let score = of(&recurrent, VariationGroup::Score);
    assert_eq!(score.variations.len(), 4, "{:?}", score.skipped);
    let family = of(&recurrent, VariationGroup::Family);
    let expected =
        ["base", "family-recurrent-without-attention", "family-convolutional", "family-transformer"];
    assert_eq!(names(&family), expected);

    let mut classifier = Recipe::preset(Preset::Tiny);
    classifier.data.task = crate::recipe::Task::Classify;
    classifier.data.label_text = vec!["train.tsv".into()];
    classifier.data.valid_label_text = vec!["valid.tsv".into()];
    classifier.output.out = Some("folder".into());
    let pooling = of(&classifier, VariationGroup::Pooling);
    assert_eq!(names(&pooling), ["base", "pooling-first", "pooling-last", "pooling-mean", "pooling-max"]);
    let family = of(&classifier, VariationGroup::Family);
    assert_eq!(names(&family), ["base", "family-recurrent-without-attention", "family-convolutional"]);
    assert!(
        family.skipped[0].reason.contains("the same model as family-recurrent-without"),
        "{:?}",
        family.skipped
    );
}

#[test]
fn groups_are_found_by_their_names() {
    for group in VariationGroup::ALL {
        assert_eq!(VariationGroup::named(group.name()), Some(group));
    }
    assert_eq!(VariationGroup::named("head"), None);
}
