//! Greedy translation of a text by fxtranslate, on one thread: `fxtranslate-peer BATCH MODEL VOCABULARY TEXT OUT [SHORTLIST]`.
//!
//! The lines are sorted by length and translated in batches of BATCH sentences, which fxtranslate pads; OUT has them
//! in the order of the text.

use std::error::Error;
use std::fs;

use fxtranslate::engine::Engine;
use fxtranslate::shortlist::Shortlist;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (batch, model, vocabulary, text, out, shortlist) = match &arguments[..] {
        [batch, model, vocabulary, text, out] => (batch, model, vocabulary, text, out, None),
        [batch, model, vocabulary, text, out, shortlist] => (batch, model, vocabulary, text, out, Some(shortlist)),
        _ => return Err("usage: fxtranslate-peer BATCH MODEL VOCABULARY TEXT OUT [SHORTLIST]".into()),
    };
    let mut engine = Engine::load_mmapped(model, vocabulary, vocabulary)?;
    if let Some(shortlist) = shortlist {
        engine = engine.with_shortlist(Shortlist::load(shortlist)?);
    }
    let text = fs::read_to_string(text)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&line| lines[line].len());
    let mut found = vec![String::new(); lines.len()];
    for group in order.chunks(batch.parse()?) {
        let sources: Vec<&str> = group.iter().map(|&line| lines[line]).collect();
        for (&line, translation) in group.iter().zip(engine.translate_batch(&sources)) {
            found[line] = translation;
        }
    }
    fs::write(out, found.join("\n") + "\n")?;
    Ok(())
}
