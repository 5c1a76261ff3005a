//! `corpus.bin`: unchanged, and with correct checksums.

use std::fs;
use std::path::Path;

use heedful::data::encoded::EncodedCorpus;
use heedful::data::tokenizer::{Tokenizers, VocabularyKind};
use heedful::data::{CorpusFiles, Filters};

use super::small_model::{LINES, tokenizer};
use super::{JSON, Opened, Target, Verdict, sealing, target};

pub(super) fn targets() -> Vec<Target> {
    vec![
        target("corpus-bin", |folder| corpus(folder, <[u8]>::to_vec), JSON, 500),
        target("corpus-bin-sealed", |folder| corpus(folder, sealing::token_ids), JSON, 500),
    ]
}

fn corpus(folder: &Path, seal: fn(&[u8]) -> Vec<u8>) -> Opened {
    let (source, target) = (folder.join("source.txt"), folder.join("target.txt"));
    fs::write(&source, LINES.join("\n") + "\n").expect("disk space");
    fs::write(&target, LINES.join("\n") + "\n").expect("disk space");
    let file = folder.join("corpus.bin");
    let tokenizers = Tokenizers::joint(tokenizer(VocabularyKind::Bpe));
    let files = CorpusFiles::parallel(&source, &target);
    EncodedCorpus::build(&file, &files, &tokenizers, &Filters::default(), &mut |_| {}).expect("ten pairs");
    let seeds = vec![fs::read(&file).expect("it was built")];
    let read = move |bytes: &[u8]| {
        fs::write(&file, seal(bytes)).expect("disk space");
        let opened = EncodedCorpus::open(&file).and_then(|corpus| {
            let _ = corpus.report().to_string();
            // A footer may list the same block thousands of times.
            (0..corpus.blocks().min(64)).try_for_each(|block| corpus.read_block(block).map(drop))
        });
        Verdict::of(opened)
    };
    Opened { seeds, read: Box::new(read) }
}
