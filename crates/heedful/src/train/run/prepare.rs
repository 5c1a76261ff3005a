//! Prepares a run: folder, vocabularies, encoded training text, validation set, model.

use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;

use super::error::{no_folder, not_a_run, occupied};
use super::starting_point::StartingPoint;
use super::{Event, Start, Watcher, frozen, memory};
use crate::data::batch::BatchLayout;
use crate::data::batches::BatchOptions;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::{EncodedCorpus, Examples};
use crate::data::labels::Labels;
use crate::data::special::NAMES;
use crate::data::tokenizer::{Tokenizers, VocabularyOptions};
use crate::data::{Filters, Input, SpecialTokens, Tokenizer};
use crate::exchange::origin::copy_origin;
use crate::models::Model;
use crate::recipe::{DataKeys, Recipe, TrainingKeys, VocabularyKeys};
use crate::store::durable::{self, WriteError};
use crate::store::output;
use crate::tasks::folder::{MODEL, MODEL_FILES, ModelFolder, TokenizerFiles};
use crate::tasks::pretrained::AddedPieces;
use crate::tasks::validation::ValidationSet;
use crate::tasks::{Assembled, Materials};
use crate::train::checkpoint::Checkpoints;
use crate::{Error, Result};

const RECIPE: &str = "recipe.toml";
const CORPUS: &str = "corpus.bin";
const CHECKPOINTS: &str = "checkpoints";

/// The inputs of a training session.
pub(super) struct Prepared {
    pub(super) folder: ModelFolder,
    pub(super) checkpoints: Checkpoints,
    pub(super) tokenizers: Tokenizers,
    pub(super) corpus: Arc<EncodedCorpus>,
    pub(super) layout: BatchLayout,
    pub(super) validation: Option<Box<dyn ValidationSet>>,
    pub(super) model: Arc<dyn Model>,
}

/// The text of a training session.
pub(super) struct Text {
    path: PathBuf,
    pub(super) checkpoints: Checkpoints,
    starting_point: StartingPoint,
    pub(super) tokenizers: Tokenizers,
    pieces: AddedPieces,
    labels: Option<Labels>,
    pub(super) corpus: Arc<EncodedCorpus>,
    pub(super) layout: BatchLayout,
}

/// Prepares the text of a run in its output folder, where vocabularies and encoded text are saved.
pub(super) fn text(recipe: &Recipe, start: Start, watcher: &mut dyn Watcher) -> Result<Text> {
    let path = recipe.output.out.clone().ok_or_else(no_folder)?;
    // With the smallest possible vocabularies, before anything is written.
    memory::check(recipe, [NAMES.len(); 2], 2)?;
    frozen::check(recipe)?;
    let task = recipe.data.task.definition();
    let files = training_files(recipe, &path, start)?;
    let checkpoints = claim(&path, start)?;
    let files = if files.reads_standard_input() { files.copy_into(&saved_text(&path))? } else { files };
    write_recipe(recipe, &path)?;
    let starting_point = StartingPoint::of(recipe, &path, &checkpoints, watcher)?;
    let (tokenizers, pieces) = vocabularies(recipe, &files, &path, &starting_point, start, watcher)?;
    let labels = labels(recipe, &files, &path, start)?;
    memory::check(recipe, sizes(&tokenizers), labels.as_ref().map_or(2, Labels::count))?;
    let kind = task.example_kind(&recipe.data, labels.as_ref());
    let examples = Examples { files: &files, tokenizers: &tokenizers, kind };
    let corpus = encode(recipe, &examples, &path, start, watcher)?;
    let layout = kind.layout();
    let corpus = Arc::new(corpus);
    Ok(Text { path, checkpoints, starting_point, tokenizers, pieces, labels, corpus, layout })
}

/// Prepares model and validation set.
pub(super) fn model(recipe: &Recipe, text: Text) -> Result<Prepared> {
    let Text { path, checkpoints, starting_point, tokenizers, pieces, labels, corpus, layout } = text;
    let task = recipe.data.task.definition();
    memory::check(recipe, sizes(&tokenizers), labels.as_ref().map_or(2, Labels::count))?;
    let special = starting_point.special_tokens();
    let materials = Materials { recipe, tokenizers: &tokenizers, labels: labels.as_ref(), special };
    let Assembled { config, model, validation } = task.assemble(materials)?;
    if let StartingPoint::Pretrained(pretrained) = &starting_point {
        pretrained.install(&*model, recipe.data.task, labels.as_ref(), &pieces)?;
        copy_origin(pretrained.path(), &path)?;
    }
    frozen::freeze(recipe, model.params());
    let folder = ModelFolder::create(&path, config, &TokenizerFiles::find(&path)?, labels.as_ref())?;
    // Keeps the saved model usable if the recipe has changed the configuration.
    folder.renew_seal()?;
    Ok(Prepared { folder, checkpoints, tokenizers, corpus, layout, validation, model })
}

/// How the batches of a run are formed.
pub(super) fn batch_options(recipe: &Recipe, layout: BatchLayout, special: SpecialTokens) -> BatchOptions {
    let TrainingKeys { batch_tokens, seed, .. } = recipe.training;
    BatchOptions { batch_tokens, seed, layout, special, ..BatchOptions::default() }
}

/// The sizes of the vocabularies.
pub(super) fn sizes(tokenizers: &Tokenizers) -> [usize; 2] {
    [tokenizers.source.size(), tokenizers.target.size()]
}

/// Saves the recipe in the folder of the run.
pub(super) fn write_recipe(recipe: &Recipe, folder: &Path) -> Result<(), WriteError> {
    durable::write_bytes(&folder.join(RECIPE), with_absolute_paths(recipe).to_toml().as_bytes())
}

/// The folder where text from standard input is saved, so that it can be read more than once.
fn saved_text(folder: &Path) -> PathBuf {
    folder.join("text")
}

fn training_files(recipe: &Recipe, folder: &Path, start: Start) -> Result<CorpusFiles> {
    let files = recipe.data.task.definition().training_files(&recipe.data)?;
    let kept = saved_text(folder);
    if start == Start::Resume && files.reads_standard_input() && kept.is_dir() {
        return Ok(files.copies_in(&kept));
    }
    // Reports a missing file before minutes of preparation.
    for input in files.inputs().filter(|input| **input != Input::Standard) {
        input.open_raw()?;
    }
    Ok(files)
}

/// Locks the folder for this run.
fn claim(folder: &Path, start: Start) -> Result<Checkpoints> {
    output::check_folder(folder)?;
    match start {
        Start::Resume if !folder.join(RECIPE).exists() => {
            return Err(not_a_run(folder));
        }
        Start::Fresh => check_free(folder)?,
        Start::Resume | Start::Replace => {}
    }
    let checkpoints = Checkpoints::open(&folder.join(CHECKPOINTS))?;
    match (start, checkpoints.steps()?.last()) {
        (Start::Fresh | Start::Replace, Some(&step)) => {
            return Err(occupied(folder, step));
        }
        // The weights do not belong to the new run.
        (Start::Replace, None) => remove_if_there(&folder.join(MODEL))?,
        _ => {}
    }
    Ok(checkpoints)
}

/// Checks that a new run replaces no files, except those of a run that was stopped before its first
/// checkpoint.
fn check_free(folder: &Path) -> Result<()> {
    let checkpoints = folder.join(CHECKPOINTS);
    if checkpoints.is_dir()
        && let Some(&step) = Checkpoints::read_only(&checkpoints).steps()?.last()
    {
        return Err(occupied(folder, step));
    }
    let run_files = [RECIPE, CORPUS, "metrics.jsonl", "attention.jsonl", "report.html"];
    let names =
        if checkpoints.join("lock").exists() { vec![MODEL] } else { [&MODEL_FILES[..], &run_files].concat() };
    match names.iter().map(|name| folder.join(name)).find(|file| file.exists()) {
        Some(file) => Err(Error::new(format!(
            "{} would be overwritten: it does not belong to a run that can be resumed; choose another folder, or add --force to replace it",
            file.display()
        ))),
        None => Ok(()),
    }
}

fn remove_if_there(path: &Path) -> Result<(), WriteError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(WriteError::Failed { path: path.to_owned(), cause })
        }
        _ => Ok(()),
    }
}

/// The vocabularies, and the pieces of the tokens that the run adds to them.
fn vocabularies(
    recipe: &Recipe,
    files: &CorpusFiles,
    folder: &Path,
    starting_point: &StartingPoint,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<(Tokenizers, AddedPieces)> {
    let has_pretrained_vocabulary = matches!(starting_point, StartingPoint::Pretrained(_));
    if start == Start::Resume && !has_pretrained_vocabulary && TokenizerFiles::find(folder).is_ok() {
        ModelFolder::check_text_files(folder)?;
        return Ok((Tokenizers::load(folder)?, AddedPieces::default()));
    }
    let mut pieces = AddedPieces::default();
    let VocabularyKeys { file, source_file, target_file, .. } = &recipe.vocabulary;
    let tokenizers = match (starting_point, file, source_file, target_file) {
        (StartingPoint::Pretrained(pretrained), ..) => {
            let grown = pretrained.tokenizers(recipe.vocabulary.add_tokens.as_deref())?;
            if recipe.vocabulary.add_tokens.is_some() {
                let added = grown.pieces[0].len();
                watcher.observe(&Event::AddedTokens { added, known: grown.known });
            }
            pieces = grown.pieces;
            grown.tokenizers
        }
        (_, Some(file), ..) => Tokenizers::joint(Tokenizer::load_native(file)?),
        (_, None, Some(source), Some(target)) => {
            Tokenizers::separate(Tokenizer::load_native(source)?, Tokenizer::load_native(target)?)
        }
        (_, None, None, None) => {
            let mut progress = |pairs| watcher.observe(&Event::LearningVocabulary { pairs });
            let (files, sharing) = (files.without_labels(), recipe.vocabulary.sharing);
            Tokenizers::train(&files, &vocabulary_options(recipe), sharing, &mut progress)?
        }
        (_, None, ..) => {
            return Err(Error::new(
                "only one of vocabulary.source_file and vocabulary.target_file is set: set both, or vocabulary.file for both sides",
            ));
        }
    };
    tokenizers.save(folder)?;
    Ok((tokenizers, pieces))
}

fn vocabulary_options(recipe: &Recipe) -> VocabularyOptions {
    let VocabularyKeys { kind, size, normalization, boundaries, coverage, .. } = recipe.vocabulary;
    let options = VocabularyOptions::default();
    VocabularyOptions { kind, size, normalization, boundaries, coverage, ..options }
}

/// The labels of the training text; `None` for tasks without labels.
fn labels(recipe: &Recipe, files: &CorpusFiles, folder: &Path, start: Start) -> Result<Option<Labels>> {
    if start == Start::Resume
        && let Ok(labels) = Labels::load(folder)
    {
        return Ok(Some(labels));
    }
    let labels = recipe.data.task.definition().labels(files)?;
    labels.as_ref().map_or(Ok(()), |labels| labels.save(folder))?;
    Ok(labels)
}

fn encode(
    recipe: &Recipe,
    examples: &Examples<'_>,
    folder: &Path,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<EncodedCorpus> {
    let DataKeys { max_tokens, over_long, max_ratio, duplicates, .. } = recipe.data;
    let filters = Filters { max_tokens, over_long, max_ratio, duplicates };
    let path = folder.join(CORPUS);
    let mut progress = |pairs| watcher.observe(&Event::Encoding { pairs });
    let corpus = match start {
        Start::Fresh | Start::Replace => EncodedCorpus::build_from(&path, examples, &filters, &mut progress)?,
        Start::Resume => EncodedCorpus::open_or_build(&path, examples, &filters, &mut progress)?,
    };
    watcher.observe(&Event::Corpus(corpus.report()));
    Ok(corpus)
}

/// The recipe with absolute paths, which name the same files from any working directory.
pub(crate) fn with_absolute_paths(recipe: &Recipe) -> Recipe {
    let mut recipe = recipe.clone();
    let DataKeys {
        src,
        tgt,
        tsv,
        valid_src,
        valid_tgt,
        valid_tsv,
        label_text,
        valid_label_text,
        text,
        valid_text,
        ..
    } = &mut recipe.data;
    let VocabularyKeys { file, source_file, target_file, add_tokens, .. } = &mut recipe.vocabulary;
    let lists =
        [src, tgt, tsv, valid_src, valid_tgt, valid_tsv, label_text, valid_label_text, text, valid_text];
    let (out, init_from) = (&mut recipe.output.out, &mut recipe.model.init_from);
    let single = [file, source_file, target_file, add_tokens, out, init_from];
    for file in lists.into_iter().flatten().chain(single.into_iter().flatten()) {
        if Input::new(&*file) != Input::Standard
            && let Ok(absolute) = path::absolute(&*file)
        {
            *file = absolute;
        }
    }
    recipe
}

/// Whether `folder` is the folder of a training run.
pub fn is_run(folder: &Path) -> bool {
    fs::exists(folder.join(RECIPE)).unwrap_or(false)
}
