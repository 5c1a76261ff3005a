//! Prints the hidden states of a masked language model for every token, including the `<bos>` and `<eos>`
//! that the model adds: one JSON array for each line of standard input.
//!
//! ```sh
//! cargo run --release -p heedful --example hidden_states -- MODEL < texts.txt
//! ```

use std::env;
use std::error::Error;
use std::io::{self, BufRead, Write};

use heedful::Filler;
use heedful::layers::Pass;
use heedful::tensor::{DType, Ragged};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("give the folder of a masked language model")?;
    let filler = Filler::open(&folder)?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let text = filler.encode(&line?);
        let sequences = Ragged::from_lengths([text.len()]);
        filler.model().check_text(&text, &sequences)?;
        let states = filler.model().states(&text, &sequences, &mut Pass::inference(DType::F32));
        let rows: Vec<Vec<f32>> = (0..states.rows()).map(|row| states.row(row).into_owned()).collect();
        writeln!(out, "{}", serde_json::to_string(&rows)?)?;
    }
    Ok(())
}
