//! Building the file of token ids.

use std::fs;
use std::io;
use std::path::Path;

use heedful_tensor::cpu::threads;

use super::format::Writer;
use super::{EncodedCorpus, EncodedError, EncodedPair, ExampleKind, Examples, Fingerprint};
use crate::data::corpus::{CorpusError, CorpusFiles, Filters, Pair};
use crate::data::parallel::{CHUNK, map_chunks};
use crate::data::tokenizer::{CachingTokenizer, Tokenizers};
use crate::store::durable::replace;

impl EncodedCorpus {
    /// Encodes pairs into a file on all threads. `progress` is called from time to time with the number of
    /// pairs read. The file appears at `path` only when it is complete, checked and synced.
    pub fn build(
        path: &Path,
        files: &CorpusFiles,
        tokenizers: &Tokenizers,
        filters: &Filters,
        progress: &mut dyn FnMut(u64),
    ) -> Result<EncodedCorpus, EncodedError> {
        let examples = Examples { files, tokenizers, kind: ExampleKind::Pairs };
        EncodedCorpus::build_from(path, &examples, filters, progress)
    }

    /// As [`EncodedCorpus::build`], for examples of any kind.
    pub(crate) fn build_from(
        path: &Path,
        examples: &Examples<'_>,
        filters: &Filters,
        progress: &mut dyn FnMut(u64),
    ) -> Result<EncodedCorpus, EncodedError> {
        let fingerprint = Fingerprint::of(examples, filters)?;
        build(path, examples, filters, fingerprint, progress)
    }

    /// Opens the file if it exists, and builds it otherwise. A file that was built from other text,
    /// vocabularies or filters is an error.
    pub(crate) fn open_or_build(
        path: &Path,
        examples: &Examples<'_>,
        filters: &Filters,
        progress: &mut dyn FnMut(u64),
    ) -> Result<EncodedCorpus, EncodedError> {
        let expected = Fingerprint::of(examples, filters)?;
        if !path.exists() {
            return build(path, examples, filters, expected, progress);
        }
        let corpus = EncodedCorpus::open(path)?;
        if corpus.fingerprint() != expected {
            let file = path.display().to_string();
            return Err(EncodedError::Changed { file, found: corpus.fingerprint(), expected });
        }
        Ok(corpus)
    }
}

fn build(
    path: &Path,
    examples: &Examples<'_>,
    filters: &Filters,
    fingerprint: Fingerprint,
    progress: &mut dyn FnMut(u64),
) -> Result<EncodedCorpus, EncodedError> {
    let write_error = |error| EncodedError::Write { file: path.display().to_string(), error };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(write_error)?;
    }
    let mut filter = examples.kind.filter(filters);
    let written = replace(path, |file| {
        let mut writer = Writer::new(file)?;
        let mut rest = Vec::new();
        encode_all(examples, progress, |pair, encoded| {
            for example in examples.kind.add(pair, encoded, &mut rest, &mut filter) {
                writer.add(&example)?;
            }
            Ok(())
        })?;
        if let Some(last) = examples.kind.last(rest, &mut filter) {
            writer.add(&last)?;
        }
        let report = filter.report();
        if report.kept == 0 {
            let (read, empty) = (report.read, report.empty);
            let filtered = report.filtered() - empty;
            return Err(BuildError::Encoded(EncodedError::NothingKept { read, empty, filtered }));
        }
        Ok(writer.finish(fingerprint, report.clone())?)
    });
    match written {
        Ok(()) => EncodedCorpus::open(path),
        Err(BuildError::Write(error)) => Err(write_error(error)),
        Err(BuildError::Encoded(error)) => Err(error),
    }
}

enum BuildError {
    Write(io::Error),
    Encoded(EncodedError),
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> BuildError {
        BuildError::Write(error)
    }
}

impl From<CorpusError> for BuildError {
    fn from(error: CorpusError) -> BuildError {
        BuildError::Encoded(error.into())
    }
}

/// Encodes every pair, in order.
fn encode_all(
    examples: &Examples<'_>,
    progress: &mut dyn FnMut(u64),
    mut take: impl FnMut(&Pair, EncodedPair) -> Result<(), BuildError>,
) -> Result<(), BuildError> {
    let Examples { files, tokenizers, kind } = examples;
    let encoders = || [CachingTokenizer::new(&tokenizers.source), CachingTokenizer::new(&tokenizers.target)];
    let mut encoders: Vec<_> = (0..threads::thread_count()).map(|_| encoders()).collect();
    let mut pairs = files.pairs();
    let mut read = 0;
    map_chunks(
        &mut encoders,
        || {
            let mut chunk = Vec::new();
            while chunk.len() < CHUNK
                && let Some(pair) = pairs.next()
            {
                let pair = pair?;
                kind.check(&pair, || pairs.location())?;
                chunk.push(pair);
            }
            read += chunk.len() as u64;
            progress(read);
            Ok((!chunk.is_empty()).then_some(chunk))
        },
        |encoders, chunk| {
            let encoded: Vec<EncodedPair> = chunk.iter().map(|pair| kind.encode(pair, encoders)).collect();
            (chunk, encoded)
        },
        |(chunk, encoded)| chunk.iter().zip(encoded).try_for_each(|(pair, encoded)| take(pair, encoded)),
    )
}
