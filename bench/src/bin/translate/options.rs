//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::spec::Only;

pub(super) const USAGE: &str = "\
usage: cargo xtask bench translate [MODEL FILE] [--only WORDS] [--threads N,…] [--rounds N] [--seconds S]

Without MODEL, models with random weights. WORDS choose cells by the words of their names: \"int8 b1 2t -small\" are those that
have the first three and not the last.";

pub(super) struct Options {
    /// A trained model and a file of sentences.
    pub(super) trained: Option<(PathBuf, PathBuf)>,
    pub(super) only: Only,
    pub(super) threads: Vec<usize>,
    pub(super) rounds: usize,
    /// Seconds of a turn, or once through the work if that takes longer.
    pub(super) seconds: f64,
}

impl Options {
    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads = vec![1, 2, cores];
        threads.dedup();
        threads.retain(|&threads| threads <= cores);
        let mut options = Options { trained: None, only: Only::default(), threads, rounds: 5, seconds: 1.0 };
        let (mut files, mut rest) = (Vec::new(), arguments.into_iter());
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
            match argument.as_str() {
                "--only" => options.only = Only::new(&value()?),
                "--threads" => options.threads = counts(&value()?)?,
                "--rounds" => options.rounds = value()?.parse().context(USAGE)?,
                "--seconds" => options.seconds = value()?.parse().context(USAGE)?,
                flag if flag.starts_with("--") => bail!("there is no {flag}\n{USAGE}"),
                file => files.push(PathBuf::from(file)),
            }
        }
        if options.rounds == 0 {
            bail!("--rounds is 0\n{USAGE}");
        }
        options.trained = match <[PathBuf; 2]>::try_from(files) {
            Ok([model, file]) => Some((model, file)),
            Err(files) if files.is_empty() => None,
            Err(_) => bail!(USAGE),
        };
        Ok(options)
    }
}

fn counts(list: &str) -> Result<Vec<usize>> {
    let counts: Vec<usize> = list
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("--threads {list}"))?;
    if counts.contains(&0) {
        bail!("--threads {list}: at least 1");
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn flags_are_read_and_mistakes_named() {
        let options = parse("run test.en --threads 2,16 --rounds 3 --seconds 0.5 --only busy").unwrap();
        assert_eq!(options.trained, Some(("run".into(), "test.en".into())));
        assert_eq!((options.threads, options.rounds, options.seconds), (vec![2, 16], 3, 0.5));
        assert!(options.only.fits("int8 b1 beam1 2t busy") && !options.only.fits("int8 b1 beam1 2t"));
        for wrong in ["model", "--rounds 0", "--rounds", "--threads 0", "--thread 2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
