//! `heedful shortlist`: learns from the model's attention which target tokens a source may need.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use heedful::data::corpus::Pairs;
use heedful::data::shortlist::Shortlist;
use heedful::data::{CorpusFiles, Input, TextLimit};
use heedful::decode::{Copies, Links, SearchOptions, ShortlistOptions, search};
use heedful::store::output::check_folder;
use heedful::tasks::folder::{ModelFolder, is_package};
use heedful::tasks::translate::Translator;

use crate::long_text::LongTexts;
use crate::machine::Machine;
use crate::output::{Force, copy_accompanying_files};
use crate::progress::{Bar, Quiet, Verbosity, line_count};

/// Learn which target tokens a sentence may need: faster translation with --shortlist
///
/// The model processes sentence pairs, and its cross attention links source and target tokens. The shortlist
/// of a sentence contains the target tokens most often linked to its tokens, the most frequent target tokens
/// and, if both sides share a vocabulary, its own tokens. `heedful translate --shortlist` computes logits for
/// these only, which saves most of the output projection of a large vocabulary. Use the training text or a
/// part of it, at least some ten thousand pairs.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a translator or of its training run
    model: PathBuf,
    /// Source text, one sentence per line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Target text: line n translates line n of the source [default: the model's own
    /// translations, beam size 1]
    #[arg(long, value_name = "FILE")]
    tgt: Option<PathBuf>,
    /// Target tokens per source token
    #[arg(long, default_value_t = 100, value_name = "N")]
    per_token: usize,
    /// Number of most frequent target tokens in every shortlist
    #[arg(long, default_value_t = 200, value_name = "N")]
    frequent: usize,
    /// Folder of a new model with the shortlist [default: add it to the model]
    #[arg(short, long, value_name = "MODEL")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful shortlist run --src train.en --tgt train.de
  heedful translate run news.en -o news.de --shortlist
  heedful shortlist run --src train.en --tgt train.de --per-token 50 -o fast";

/// Pairs in a chunk.
const CHUNK: usize = 1024;
/// A chunk ends with the pair that reaches this number of bytes.
const CHUNK_BYTES: usize = 4 << 20;
/// Maximum tokens of a text: attention weights grow with the square of the length, and longer texts give no
/// better links.
const MAX_LINK_TOKENS: usize = 512;
/// Number of sources whose shortlist sizes are averaged for the report.
const MEASURED: usize = 1000;

type TokenPair = (Vec<u32>, Vec<u32>);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up_cpu("attending", verbosity)?;
    let folder = ModelFolder::open(&arguments.model)?;
    let mut translator = Translator::open(&arguments.model)?;
    check(arguments, &translator)?;
    translator.set_max_tokens(MAX_LINK_TOKENS.min(translator.source_limit().tokens()))?;
    let options = SearchOptions { compute: arguments.machine.precision(), ..SearchOptions::default() };

    let mut reader = PairReader::new(&translator, arguments)?;
    let bar = Bar::with_time_left(verbosity, line_count(Some(&arguments.src)));
    let (mut links, mut pairs, mut measured) = (Links::default(), 0, Vec::new());
    loop {
        let mut chunk = reader.chunk()?;
        if chunk.is_empty() {
            break;
        }
        chunk.retain(|(source, _)| !source.is_empty());
        if arguments.tgt.is_none() {
            translate(&translator, &mut chunk, &options)?;
        }
        chunk.retain(|(_, target)| !target.is_empty());
        links.learn(translator.model(), &chunk, &options)?;
        pairs += chunk.len();
        measured.extend(chunk.into_iter().map(|(source, _)| source).take(MEASURED - measured.len()));
        bar.show(reader.lines, 0.0, || format!("{} lines read", reader.lines));
    }
    bar.finish();
    reader.long_texts.iter().for_each(LongTexts::finish);
    ensure!(pairs > 0, "{} has no line to learn from: give sentences", arguments.src.display());

    let shortlist = make(&translator, &links, arguments);
    let output = arguments.output.as_deref().unwrap_or(&arguments.model);
    folder.save_with_shortlist(output, translator.model().params(), &shortlist)?;
    if arguments.output.is_some() {
        copy_accompanying_files(&arguments.model, output)?;
    }
    if verbosity == Verbosity::Normal {
        report(&shortlist, pairs, &measured, output);
    }
    Ok(())
}

/// Checks the model and the destination of the shortlist before the work begins.
fn check(arguments: &Arguments, translator: &Translator) -> Result<()> {
    let name = arguments.model.display();
    ensure!(
        translator.ensemble().supports_shortlist(),
        "{name} is not a Transformer: only Transformers support shortlists"
    );
    let Some(output) = &arguments.output else {
        if is_package(&arguments.model) {
            bail!(
                "{name} is a packed model, which cannot be changed: name a folder for a new one with -o MODEL"
            );
        }
        check_folder(&arguments.model)?;
        if translator.shortlist().is_some() && !arguments.force.is_given() {
            bail!(
                "{name} has a shortlist already: add --force to replace it, or name another folder with -o"
            );
        }
        return Ok(());
    };
    arguments.force.check_folder(output, &[&arguments.model])
}

fn make(translator: &Translator, links: &Links, arguments: &Arguments) -> Shortlist {
    let tokenizers = translator.tokenizers();
    let is_joint = Arc::ptr_eq(&tokenizers.source, &tokenizers.target);
    let options = ShortlistOptions {
        per_token: arguments.per_token,
        frequent: arguments.frequent,
        copies: if is_joint { Copies::SameToken } else { Copies::None },
    };
    links.shortlist([tokenizers.source.size(), tokenizers.target.size()], options)
}

/// Replaces the targets with the model's own translations.
fn translate(translator: &Translator, chunk: &mut [TokenPair], options: &SearchOptions) -> Result<()> {
    let sources: Vec<Vec<u32>> = chunk.iter().map(|(source, _)| source.clone()).collect();
    let greedy = SearchOptions { beam: 1, ..options.clone() };
    for ((_, target), found) in chunk.iter_mut().zip(search(translator.model(), &sources, &greedy)?) {
        *target = found.into_iter().next().map(|best| best.tokens).unwrap_or_default();
        target.truncate(translator.target_limit().tokens());
    }
    Ok(())
}

fn report(shortlist: &Shortlist, pairs: usize, sources: &[Vec<u32>], output: &Path) {
    let tokens: usize = sources.iter().map(|source| shortlist.tokens(source, []).len()).sum();
    eprintln!(
        "{} links from {pairs} pairs in {}: a sentence has {} of {} target tokens on average",
        shortlist.links(),
        output.display(),
        tokens / sources.len().max(1),
        shortlist.target_vocabulary(),
    );
}

/// Reads lines and encodes them to tokens, cut to the model's limits.
struct PairReader<'a> {
    translator: &'a Translator,
    arguments: &'a Arguments,
    pairs: Pairs,
    /// Number of lines read.
    lines: usize,
    long_texts: [LongTexts; 2],
}

impl<'a> PairReader<'a> {
    fn new(translator: &'a Translator, arguments: &'a Arguments) -> Result<PairReader<'a>> {
        let limits = [translator.source_limit(), translator.target_limit()];
        let files = match &arguments.tgt {
            Some(target) => CorpusFiles::parallel(&arguments.src, target),
            None => CorpusFiles::plain(&[Input::new(&arguments.src)])?,
        };
        let pairs = files.pairs().cut_at(limits.map(|limit| limit.bytes_to_read()));
        let long_texts = limits.map(|limit| LongTexts::new("cut", limit));
        Ok(PairReader { translator, arguments, pairs, lines: 0, long_texts })
    }

    /// The next chunk of pairs; empty at the end of the text.
    fn chunk(&mut self) -> Result<Vec<TokenPair>> {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < CHUNK
            && bytes < CHUNK_BYTES
            && let Some(pair) = self.pairs.next().transpose()?
        {
            bytes += pair.source.len() + pair.target.len();
            self.lines += 1;
            let translator = self.translator;
            let source =
                self.tokens(0, &pair.source, translator.source_limit(), |text| translator.encode(text));
            let encode = |text: &str| translator.encode_target(text);
            let target = self.tokens(1, &pair.target, translator.target_limit(), encode);
            chunk.push((source, target));
        }
        Ok(chunk)
    }

    fn tokens(
        &mut self,
        side: usize,
        text: &str,
        limit: TextLimit,
        encode: impl Fn(&str) -> Vec<u32>,
    ) -> Vec<u32> {
        limit.encode(text, &encode).unwrap_or_else(|_| {
            let file = [Some(&self.arguments.src), self.arguments.tgt.as_ref()][side];
            let file = file.map_or(String::new(), |file| file.display().to_string());
            self.long_texts[side].add(format!("{file}, line {}", self.lines));
            limit.first(text, encode).tokens
        })
    }
}
