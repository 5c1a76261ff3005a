//! Log-probabilities of given target tokens: for each line of standard input, `{"source": [id, …], "target": [id, …]}`, a JSON
//! array with that of every target token and of `<eos>`.
//!
//! ```sh
//! cargo run --release -p heedful --example forced_decoding -- MODEL < pairs.jsonl
//! ```

use std::env;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::Path;

use heedful::decode::{SearchOptions, score};
use heedful::tasks::translate::Translator;
use heedful::tensor::Precision;
use serde::Deserialize;

#[derive(Deserialize)]
struct Pair {
    source: Vec<u32>,
    target: Vec<u32>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("give the folder of a translator")?;
    let translator = Translator::open(Path::new(&folder))?;
    let mut pairs = Vec::new();
    for line in io::stdin().lock().lines() {
        let Pair { source, target } = serde_json::from_str(&line?)?;
        pairs.push((source, target));
    }
    let options = SearchOptions { compute: Precision::F32, ..SearchOptions::default() };
    let mut out = io::stdout().lock();
    for scores in score(translator.model(), &pairs, &options)? {
        writeln!(out, "{}", serde_json::to_string(&scores.tokens)?)?;
    }
    Ok(())
}
