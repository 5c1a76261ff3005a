//! `heedful vocab`: learns a vocabulary, shows one, or applies one to lines.

mod apply;
mod learn;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use heedful::data::tokenizer::{Boundaries, Kind, Normalization};
use heedful::tensor::cpu::threads;

/// Learn a vocabulary from text, show one, or apply one to lines.
///
/// `heedful vocab --src A --tgt B --out DIR` learns the pieces that both sides are written in and saves them as
/// DIR/tokenizer.json. Files may be plain, .gz, .xz or .zst; `-` is standard input. The same text gives the same file.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("action").required(true).args(["out", "show", "encode", "decode"])))]
pub(crate) struct Arguments {
    /// Source text, one sentence a line; several files are read one after the other
    #[arg(long, value_name = "FILE", num_args = 1..)]
    src: Vec<PathBuf>,
    /// Target text: line n translates line n of the source
    #[arg(long, value_name = "FILE", num_args = 1..)]
    tgt: Vec<PathBuf>,
    /// Lines of source, tab, target; further columns are not read
    #[arg(long, value_name = "FILE", num_args = 1..)]
    tsv: Vec<PathBuf>,
    /// Where the vocabulary goes: a folder, or a file that ends in .json
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// What its pieces are
    #[arg(long, value_enum, default_value = "bpe", conflicts_with_all = ["show", "encode", "decode"])]
    kind: KindName,
    /// The most tokens it may have, with 4 special tokens and 256 bytes
    #[arg(long, value_name = "N", default_value_t = 8000)]
    size: usize,
    /// One vocabulary for each side, instead of one for both
    #[arg(long)]
    separate: bool,
    /// Unicode normalisation; only `none` gives every text back exactly
    #[arg(long, value_enum, default_value = "none")]
    normalize: NormalizationName,
    /// Where words end, which pieces never cross (bpe and unigram)
    #[arg(long, value_enum, default_value = "words")]
    boundaries: BoundariesName,
    /// How often a pair of pieces, or a word, must come to become a piece
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_frequency: u64,
    /// The share of the text whose characters become pieces; rarer ones are spelled in bytes
    #[arg(long, value_name = "SHARE", default_value_t = 0.9999)]
    coverage: f64,
    /// Print the pieces of a vocabulary, each with its id
    #[arg(long, value_name = "TOKENIZER")]
    show: Option<PathBuf>,
    /// Turn lines of standard input into ids
    #[arg(long, value_name = "TOKENIZER")]
    encode: Option<PathBuf>,
    /// With --encode: print pieces instead of ids
    #[arg(long, requires = "encode")]
    pieces: bool,
    /// Turn lines of ids on standard input into text
    #[arg(long, value_name = "TOKENIZER")]
    decode: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// How many threads count [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindName {
    /// Byte pair encoding: frequent pairs of pieces become pieces
    Bpe,
    /// A unigram language model: many pieces first, the least useful ones go
    Unigram,
    /// Whole words; others are spelled
    Word,
    /// Single characters
    Character,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormalizationName {
    /// Text stays as it is
    None,
    /// Composed characters
    Nfc,
    /// Composed characters, look-alikes made equal
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
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    match (&arguments.out, &arguments.show, &arguments.encode, &arguments.decode) {
        (Some(out), ..) => learn::run(arguments, out),
        (_, Some(path), ..) => apply::show(path),
        (_, _, Some(path), _) if arguments.pieces => apply::encode(path, apply::Print::Pieces),
        (_, _, Some(path), _) => apply::encode(path, apply::Print::Ids),
        (.., Some(path)) => apply::decode(path),
        (None, None, None, None) => unreachable!("clap asks for one of them"),
    }
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Kind {
        match name {
            KindName::Bpe => Kind::Bpe,
            KindName::Unigram => Kind::Unigram,
            KindName::Word => Kind::Word,
            KindName::Character => Kind::Character,
        }
    }
}

impl From<NormalizationName> for Normalization {
    fn from(name: NormalizationName) -> Normalization {
        match name {
            NormalizationName::None => Normalization::None,
            NormalizationName::Nfc => Normalization::Nfc,
            NormalizationName::Nfkc => Normalization::Nfkc,
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
