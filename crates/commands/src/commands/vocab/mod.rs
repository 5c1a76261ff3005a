//! `heedful vocab`: learns, prints or applies a vocabulary.

mod learn;

mod apply;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use heedful::data::tokenizer::{Boundaries, NormalizationForm, VocabularyKind};

use self::apply::TokenForm;
use crate::machine::Threads;
use crate::output::Force;
use crate::progress::Quiet;

/// Learn a subword vocabulary, print one, or encode and decode lines with one
///
/// One of --out, --show, --encode and --decode selects the action. Learning reads both sides of a parallel
/// corpus, or text in one language, and writes tokenizer.json in the format of Hugging Face tokenizers; the
/// same text gives the same file. Files may be plain, .gz, .xz or .zst; - is standard input. `heedful train`
/// learns a vocabulary itself unless it gets one with --vocabulary-file.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("action").required(true).args(["out", "show", "encode", "decode"])))]
pub(crate) struct Arguments {
    /// Source text, one sentence per line; several files are concatenated
    #[arg(long, help_heading = "Learn", value_name = "FILE", num_args = 1..)]
    src: Vec<PathBuf>,
    /// Target text: line n translates line n of the source
    #[arg(long, help_heading = "Learn", value_name = "FILE", num_args = 1..)]
    tgt: Vec<PathBuf>,
    /// Lines of source, tab, target; further columns are ignored
    #[arg(long, help_heading = "Learn", value_name = "FILE", num_args = 1..)]
    tsv: Vec<PathBuf>,
    /// Text in one language, one sentence per line; --src alone is the same
    #[arg(long, help_heading = "Learn", value_name = "FILE", num_args = 1.., conflicts_with_all = ["src", "tgt", "tsv", "separate"])]
    text: Vec<PathBuf>,
    /// Learn a vocabulary and write it here: a folder, or a file that ends in .json
    #[arg(long, help_heading = "Learn", value_name = "PATH")]
    out: Option<PathBuf>,
    /// Algorithm
    #[arg(long, value_enum, help_heading = "Learn", default_value = "bpe", conflicts_with_all = ["show", "encode", "decode"])]
    kind: KindName,
    /// Maximum number of tokens, including 4 special tokens and 256 bytes
    #[arg(long, help_heading = "Learn", value_name = "N", default_value_t = 8000)]
    size: usize,
    /// Learn one vocabulary for each side instead of a joint one
    #[arg(long, help_heading = "Learn")]
    separate: bool,
    /// Unicode normalization; only none is lossless
    #[arg(long, help_heading = "Learn", value_enum, value_name = "FORM", default_value = "none")]
    normalize: NormalizationName,
    /// Boundaries that pieces never cross (bpe and unigram)
    #[arg(long, help_heading = "Learn", value_enum, value_name = "WHERE", default_value = "words")]
    boundaries: BoundariesName,
    /// Minimum number of occurrences for a pair of pieces, or a word, to become a piece
    #[arg(long, help_heading = "Learn", value_name = "N", default_value_t = 2)]
    min_frequency: u64,
    /// Character coverage: the share of the text whose characters become pieces; rarer ones are encoded as
    /// bytes
    #[arg(long, help_heading = "Learn", value_name = "SHARE", default_value_t = 0.9999)]
    coverage: f64,
    /// Print the pieces of a vocabulary with their ids
    #[arg(long, help_heading = "Apply", value_name = "TOKENIZER")]
    show: Option<PathBuf>,
    /// Encode the lines of standard input as token ids
    #[arg(long, help_heading = "Apply", value_name = "TOKENIZER")]
    encode: Option<PathBuf>,
    /// With --encode: print pieces instead of ids
    #[arg(long, help_heading = "Apply", requires = "encode")]
    pieces: bool,
    /// Decode lines of token ids on standard input
    #[arg(long, help_heading = "Apply", value_name = "TOKENIZER")]
    decode: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    threads: Threads,
}

const EXAMPLES: &str = "\
Examples:
  heedful vocab --src train.en --tgt train.de --size 16000 --out vocabulary
  heedful vocab --text train.en --out english.json
  heedful vocab --show vocabulary | less
  echo 'A dog runs.' | heedful vocab --encode vocabulary --pieces";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    /// Byte pair encoding: merges frequent pairs of pieces
    Bpe,
    /// Unigram language model: prunes the least useful of many pieces
    Unigram,
    /// Whole words; rare words are split into characters or bytes
    Word,
    /// Single characters
    Character,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormalizationName {
    /// Text is unchanged
    None,
    /// Canonical composition
    Nfc,
    /// Compatibility composition: full-width letters become plain ones
    Nfkc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BoundariesName {
    /// Between letters, digits and punctuation, and before spaces
    Words,
    /// Before spaces only
    Spaces,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.threads.set_up();
    match (&arguments.out, &arguments.show, &arguments.encode, &arguments.decode) {
        (Some(out), ..) => learn::run(arguments, out),
        (_, Some(path), ..) => apply::show(path),
        (_, _, Some(path), _) if arguments.pieces => apply::encode(path, TokenForm::Pieces),
        (_, _, Some(path), _) => apply::encode(path, TokenForm::Ids),
        (.., Some(path)) => apply::decode(path),
        (None, None, None, None) => unreachable!("clap requires one of them"),
    }
}

impl From<KindName> for VocabularyKind {
    fn from(name: KindName) -> VocabularyKind {
        match name {
            KindName::Bpe => VocabularyKind::Bpe,
            KindName::Unigram => VocabularyKind::Unigram,
            KindName::Word => VocabularyKind::Word,
            KindName::Character => VocabularyKind::Character,
        }
    }
}

impl From<NormalizationName> for NormalizationForm {
    fn from(name: NormalizationName) -> NormalizationForm {
        match name {
            NormalizationName::None => NormalizationForm::None,
            NormalizationName::Nfc => NormalizationForm::Nfc,
            NormalizationName::Nfkc => NormalizationForm::Nfkc,
        }
    }
}

impl From<BoundariesName> for Boundaries {
    fn from(name: BoundariesName) -> Boundaries {
        match name {
            BoundariesName::Words => Boundaries::Words,
            BoundariesName::Spaces => Boundaries::Spaces,
        }
    }
}
