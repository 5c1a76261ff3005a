//! The command line.

use std::path::PathBuf;

use clap::Parser;

use super::spec::CellFilter;

/// Races translation against CTranslate2: `cargo xtask bench translate`
#[derive(Parser)]
pub(super) struct Options {
    /// A trained model, in place of random weights
    #[arg(requires = "file")]
    pub(super) model: Option<PathBuf>,
    /// Its sentences
    pub(super) file: Option<PathBuf>,
    /// Their translations, to print BLEU of both sides
    #[arg(long, value_name = "FILE", requires = "file")]
    pub(super) references: Option<PathBuf>,
    /// Only cells whose name has these words, and not those after a -: "int8 b1 2t -small"
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    pub(super) only: CellFilter,
    /// Threads of each side [default: 1, 2 and the number of cores]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = at_least_one)]
    threads: Vec<usize>,
    #[arg(long, default_value = "5", value_parser = at_least_one)]
    pub(super) rounds: usize,
    /// Seconds of a turn; at least one pass over the work
    #[arg(long, default_value_t = 1.0)]
    pub(super) seconds: f64,
}

impl Options {
    /// The thread counts to measure.
    pub(super) fn threads(&self) -> Vec<usize> {
        if !self.threads.is_empty() {
            return self.threads.clone();
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads = vec![1, 2, cores];
        threads.dedup();
        threads.retain(|&threads| threads <= cores);
        threads
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| "must be at least 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_parsed_and_mistakes_rejected() {
        let parse = |line: &str| Options::try_parse_from(["translate"].into_iter().chain(line.split(' ')));
        let options = parse("run test.en --threads 2,16 --rounds 3 --seconds 0.5 --only avx2").unwrap();
        assert_eq!((options.model, options.file), (Some("run".into()), Some("test.en".into())));
        assert_eq!((options.threads, options.rounds, options.seconds), (vec![2, 16], 3, 0.5));
        assert!(options.only.matches("int8 b1 beam1 2t avx2") && !options.only.matches("int8 b1 beam1 2t"));
        for wrong in ["model", "--rounds 0", "--rounds", "--threads 0", "--thread 2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
