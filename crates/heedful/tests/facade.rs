//! The crate root's API: train from a recipe, open the model, and translate like the command line.

use std::fs;

use heedful::tasks::folder::ModelFolder;
use heedful::{
    DeviceChoice, Event, MaxLength, OpenOptions, Precision, Recipe, SearchOptions, Start, Trainer, Translator,
};

const RECIPE: &str = "[data]\nsrc = \"SRC\"\ntgt = \"TGT\"\n[vocabulary]\nkind = \"character\"\nsize = 300\n\
                      [model]\npreset = \"tiny\"\n[training]\nsteps = 3\nbatch_tokens = 64\n";

#[test]
fn a_recipe_becomes_a_translator_that_chooses_its_own_precision() {
    let root = tempfile::tempdir().expect("a folder");
    let [src, tgt, out] = ["train.en", "train.de", "run"].map(|name| root.path().join(name));
    fs::write(&src, "a dog\nthe cat\n".repeat(20)).expect("room on the disk");
    fs::write(&tgt, "ein hund\ndie katze\n".repeat(20)).expect("room on the disk");
    let recipe = RECIPE.replace("SRC", &src.display().to_string()).replace("TGT", &tgt.display().to_string());
    let trainer = Trainer::new(Recipe::parse(&recipe).expect("a good recipe")).out(&out);
    let mut steps = Vec::new();
    let outcome = trainer.watch(|event| {
        if let Event::Step(pace) = event {
            steps.push(pace.step);
        }
    });
    assert_eq!((outcome.expect("a good run").step, steps), (3, vec![1, 2, 3]));
    let resumed = trainer.clone().start(Start::Resume).device(DeviceChoice::Cpu).run();
    assert_eq!(resumed.expect("a run that has ended").step, 3);
    let error = trainer.run().expect_err("a run is there").to_string();
    assert!(error.contains("already holds a run of 3 steps"), "{error}");

    let translator = Translator::open(&out).expect("a model");
    assert_eq!(translator.compute(), Precision::Bf16);
    let exact = OpenOptions::new().compute(Precision::F32).max_tokens(64);
    let exact = Translator::open_with(&out, &exact).expect("a model");
    assert_eq!((exact.compute(), exact.source_limit().tokens()), (Precision::F32, 64));
    let folder = ModelFolder::open(&out).expect("a model");
    let small = folder.copy_to(&root.path().join("small")).expect("room on the disk");
    small.save_narrow(exact.model().params(), Precision::Int8).expect("room on the disk");
    let small = Translator::open(root.path().join("small")).expect("a model");
    assert_eq!(small.compute(), Precision::Int8);

    let options = SearchOptions { max_length: MaxLength::Absolute(5), ..SearchOptions::default() };
    let texts = ["a dog", "", "the cat"];
    for translator in [translator, exact, small] {
        let named = SearchOptions { compute: Some(translator.compute()), ..options.clone() };
        let found = translator.translate(texts, &options).expect("good texts");
        assert_eq!(found, translator.translate(texts.map(str::to_owned), &named).expect("good texts"));
        let all = translator.translate_iter(texts, &options).expect("good options");
        let all: Vec<String> = all.map(|text| text.expect("a good text").best()).collect();
        assert_eq!(all, found.iter().map(|found| found.best()).collect::<Vec<_>>());
    }
    let error = Translator::open(root.path().join("none")).err().expect("nothing is there");
    assert!(error.to_string().contains("is not a folder: give the folder of a model"), "{error}");
    assert!(!error.is_cancelled());
}
