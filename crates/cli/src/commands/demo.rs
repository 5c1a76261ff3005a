//! `heedful demo`: a model learns to translate while you watch, then shows where it looked.

mod direction;
mod model;
mod plan;

mod folder;
mod phrases;

mod exam;
mod trace;

mod head;
mod page;
mod print;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use heedful::decode::SearchOptions;
use heedful::recipe::Recipe;
use heedful::tasks::translate::Translator;
use heedful::tensor::Device;
use heedful::tensor::cpu::threads;
use heedful::train::run::{self, Ending, Outcome, Start};
use heedful_grammar::Phrase;

pub(super) use self::direction::Direction;
use self::direction::Wanted;
use self::exam::Exam;
use self::model::DemoModel;
use self::phrases::TextFiles;
use self::plan::{NORMAL, QUICK};
pub(super) use self::print::alignment as print_alignment;
pub(super) use self::trace::Traced;
use super::train::{Terminal, Voice};
use crate::interrupt::Interrupt;

/// Train a small Transformer to translate between Chinese and English, then show where it looked.
///
/// `--model rnn,rnn-attention,transformer` trains its predecessors too and shows why attention was invented.
///
/// It needs nothing but this program: a built-in grammar writes hundreds of thousands of phrases, such as
/// 一套自动驾驶解决方案, an autonomous driving solution. The phrases of the exam are never trained on. The folder that it
/// leaves is a model's folder, for `heedful translate`. The same seed gives the same result, with any number of threads.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A few seconds with short phrases and a smaller model; says how far it came
    #[arg(long)]
    quick: bool,
    /// Which way to translate
    #[arg(long, value_enum, default_value = "zh-en")]
    direction: Wanted,
    /// The same as --direction en-zh
    #[arg(long, conflicts_with = "direction")]
    reverse: bool,
    /// Which model learns; several, separated by commas, learn one after the other and are compared in a table
    #[arg(long, value_enum, value_delimiter = ',', value_name = "MODEL", default_value = "transformer")]
    model: Vec<DemoModel>,
    /// Translate this phrase too, and show where the model looked; may be given several times
    #[arg(long, value_name = "PHRASE")]
    text: Vec<String>,
    /// Where model, phrases and report go; the folder of an earlier demo is replaced
    #[arg(long, value_name = "FOLDER", default_value = "heedful-demo")]
    out: PathBuf,
    /// Decides the phrases and the first values of the model
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// One model in one direction.
struct Course<'a> {
    model: DemoModel,
    direction: Direction,
    /// Phrases that the user wants to see, in the source language.
    texts: Vec<&'a str>,
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let courses = arguments.courses()?;
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let interrupt = Interrupt::listen()?;
    folder::claim(&arguments.out)?;
    let plan = if arguments.quick { QUICK } else { NORMAL };
    let (text, phrases) = TextFiles::write(&plan, arguments.seed, &arguments.out.join("data"))?;
    let mut exams = Vec::new();
    for course in &courses {
        let mut recipe = plan.recipe(course.direction, &text, &course.folder, arguments.seed);
        course.model.change(&mut recipe);
        exams.push(course.teach(&recipe, &phrases, plan.pass_mark, interrupt.clone())?);
    }
    if arguments.model.len() > 1 {
        for &direction in arguments.directions() {
            let of_direction = courses.iter().zip(&exams).filter(|(course, _)| course.direction == direction);
            let columns: Vec<(&str, &Exam)> =
                of_direction.map(|(course, exam)| (course.model.name(), exam)).collect();
            print::comparison(direction, &columns, &mut io::stdout().lock())?;
        }
    }
    farewell(&courses, &text)
}

impl Arguments {
    fn courses(&self) -> Result<Vec<Course<'_>>> {
        let directions = self.directions();
        if let Some(twice) = self.model.iter().enumerate().find(|(i, model)| self.model[..*i].contains(model))
        {
            bail!("--model names {} twice", twice.1.name());
        }
        for text in &self.text {
            let needed = Direction::of_text(text)?;
            if !directions.contains(&needed) {
                bail!("“{text}” is for {needed}: add --direction {} or --direction both", needed.name());
            }
        }
        let models =
            self.model.iter().flat_map(|&model| directions.iter().map(move |&direction| (model, direction)));
        let course = |(number, (model, direction)): (usize, (DemoModel, Direction))| Course {
            model,
            direction,
            texts: self
                .text
                .iter()
                .filter(|text| Direction::of_text(text).is_ok_and(|needed| needed == direction))
                .map(String::as_str)
                .collect(),
            // The first model is the folder's own, so that there is one name to remember.
            folder: match (number, self.model.first() == Some(&model)) {
                (0, _) => self.out.clone(),
                (_, true) => self.out.join(direction.name()),
                (_, false) if directions.len() == 1 => self.out.join(model.name()),
                (_, false) => self.out.join(format!("{}-{}", model.name(), direction.name())),
            },
        };
        Ok(models.enumerate().map(course).collect())
    }

    fn directions(&self) -> &'static [Direction] {
        if self.reverse { Wanted::EnZh.directions() } else { self.direction.directions() }
    }
}

impl Course<'_> {
    /// Trains a model, examines it, and shows what it can do and where it looks.
    fn teach(
        &self,
        recipe: &Recipe,
        phrases: &[Phrase],
        pass_mark: f64,
        interrupt: Interrupt,
    ) -> Result<Exam> {
        let begun = Instant::now();
        let compute = recipe.training.compute;
        let (device, threads) = (Device::Cpu, threads::thread_count());
        eprintln!("{}: {}, in {compute} on {device}, {threads} threads", self.direction, self.model);
        let outcome = train(recipe, interrupt)?;
        let translator = Translator::open(&self.folder)?;
        // One hypothesis is enough: a phrase has one translation.
        let options = SearchOptions { beam: 1, compute, ..SearchOptions::default() };
        let exam = Exam::sit(&translator, self.direction, phrases, &options)?;
        let shown = [self.direction.example()[0]].into_iter().chain(self.texts.iter().copied());
        let traced: Vec<Traced<'_>> =
            shown.map(|text| Traced::new(&translator, text, &options)).collect::<Result<_>>()?;
        let page = self.folder.join("report.html");
        page::write(run::report(recipe, &outcome)?, (self.model, self.direction), &exam, &traced, &page)?;
        eprintln!("learned and examined in {:.1} s\n", begun.elapsed().as_secs_f64());
        self.show(&exam, &traced)?;
        let found = exam.exact_match();
        // What the others can learn in this time is for the table to tell.
        if self.model == DemoModel::Transformer && found.share() < pass_mark {
            bail!(
                "only {} of the unseen phrases are right, {:.0} % should be. Another --seed may do; if several fail, \
                 this is a bug",
                found.percent(),
                100.0 * pass_mark
            );
        }
        Ok(exam)
    }

    fn show(&self, exam: &Exam, traced: &[Traced<'_>]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        print::exam((self.model, self.direction), exam, &mut out)?;
        for (number, traced) in traced.iter().enumerate() {
            let lesson = (number == 0).then(|| self.direction.lesson());
            print::alignment(traced, lesson.as_ref(), &mut out)?;
        }
        writeln!(out)
    }
}

/// Trains as the recipe says, with a progress bar.
fn train(recipe: &Recipe, interrupt: Interrupt) -> Result<Outcome> {
    let mut watcher = Terminal::new(Voice::Talking, interrupt);
    let outcome = run::train(recipe, Start::Fresh, &mut watcher);
    watcher.finish();
    let outcome = outcome?;
    if outcome.ending == Ending::Interrupted {
        bail!("interrupted after step {}: the demo begins anew next time", outcome.step);
    }
    Ok(outcome)
}

/// What to try next.
fn farewell(courses: &[Course<'_>], text: &TextFiles) -> Result<()> {
    let mut out = io::stdout().lock();
    for Course { direction, folder, .. } in courses {
        let name = folder.display();
        let [source, reference] = text.exam(*direction).map(|file| file.display().to_string());
        let tokenize = direction.tokenize().name();
        writeln!(
            out,
            "{direction}: the model is in {name}, curves and attention are in {name}/report.html. Try:\n\n  \
             echo '{}' | heedful translate {name}\n  \
             heedful translate {name} {source} -o out.txt\n  \
             heedful evaluate out.txt --ref {reference} --tokenize {tokenize}\n",
            direction.example()[0]
        )?;
    }
    Ok(())
}
