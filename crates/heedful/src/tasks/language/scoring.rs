//! How probable a language model finds a text, line by line.
//!
//! ```text
//! log p(line) = Σ log p(token | all before it)        of lines: each by itself, with its <eos>
//!                                                     of running text: after <bos> and what stands before it in its block
//! perplexity of units = e^(−log p(text) / units)      tokens, words (what white space separates), bytes (line ends included)
//! ```
//!
//! Running text is cut into the blocks of the training, so that every token is predicted once. A model of lines was trained on no
//! blank one: such a line has the log-probability 0 and does not count.

use super::Generator;
use crate::Result;
use crate::decode::DecodeError;
use crate::decode::TargetScore;
use crate::layers::Pass;
use crate::models::{BrokenModel, Model};

/// Tokens that are read at a time, but for a single line or block.
const BATCH_TOKENS: usize = 4096;

/// How well a model predicts a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextPerplexity {
    /// `−log p(text)`.
    pub negative_log_likelihood: f64,
    /// Predicted tokens, `<eos>` included where lines end with it.
    pub tokens: u64,
    /// What white space separates.
    pub words: u64,
    /// UTF-8, line ends included.
    pub bytes: u64,
}

impl TextPerplexity {
    /// `e^(−log p(text) / tokens)`.
    pub fn by_token(&self) -> f64 {
        (self.negative_log_likelihood / self.tokens as f64).exp()
    }

    /// `e^(−log p(text) / words)`.
    pub fn by_word(&self) -> f64 {
        (self.negative_log_likelihood / self.words as f64).exp()
    }

    /// `e^(−log p(text) / bytes)`.
    pub fn by_byte(&self) -> f64 {
        (self.negative_log_likelihood / self.bytes as f64).exp()
    }
}

/// Scores the lines of a text as they come, in memory that does not grow with the text.
pub struct TextScorer<'g> {
    generator: &'g Generator,
    /// Tokens that have no score yet: of whole lines, or of what fills no block yet.
    waiting: Vec<Vec<u32>>,
    tokens: usize,
    /// The lines whose scores are not complete, with the tokens that each has, and the scores so far of the first.
    open: std::collections::VecDeque<usize>,
    scores: Vec<f64>,
    total: TextPerplexity,
}

impl<'g> TextScorer<'g> {
    /// Of a text that has no line yet.
    pub fn new(generator: &'g Generator) -> TextScorer<'g> {
        TextScorer {
            generator,
            waiting: Vec::new(),
            tokens: 0,
            open: std::collections::VecDeque::new(),
            scores: Vec::new(),
            total: TextPerplexity::default(),
        }
    }

    /// One more line, given with its tokens from [`Generator::encode`]. Returns the scores of lines that are complete, in order.
    pub fn push(&mut self, line: &str, tokens: Vec<u32>) -> Result<Vec<TargetScore>> {
        let ends = self.generator.ends_texts();
        let mut predicted = self.generator.predicted(line, tokens);
        self.open.push_back(predicted.len());
        self.tokens += predicted.len();
        if !ends || !predicted.is_empty() {
            self.count(line);
        }
        match ends {
            false => self.fill_blocks(predicted),
            // The batch adds the end.
            true if predicted.pop().is_some() => self.waiting.push(predicted),
            true => {}
        }
        if self.tokens >= BATCH_TOKENS { self.read(Rest::Kept) } else { Ok(self.complete()) }
    }

    /// The scores of the lines that are left.
    pub fn finish(mut self) -> Result<(Vec<TargetScore>, TextPerplexity)> {
        let scores = self.read(Rest::Read)?;
        Ok((scores, self.total))
    }

    fn count(&mut self, line: &str) {
        self.total.words += line.split_whitespace().count() as u64;
        self.total.bytes += line.len() as u64 + 1;
    }

    /// Adds running text: all blocks but the last are full.
    fn fill_blocks(&mut self, tokens: Vec<u32>) {
        let block = self.generator.block();
        for token in tokens {
            match self.waiting.last_mut() {
                Some(last) if last.len() < block => last.push(token),
                _ => self.waiting.push(vec![token]),
            }
        }
    }

    /// Scores what waits: of running text all blocks that are full, and the rest if no more will come.
    fn read(&mut self, rest: Rest) -> Result<Vec<TargetScore>> {
        let is_open = |last: &Vec<u32>| last.len() < self.generator.block();
        let keeps =
            !self.generator.ends_texts() && rest == Rest::Kept && self.waiting.last().is_some_and(is_open);
        let kept = if keeps { self.waiting.pop() } else { None };
        let texts = std::mem::take(&mut self.waiting);
        let mut start = 0;
        while start < texts.len() {
            let mut tokens = 0;
            let fits = |text: &&Vec<u32>| {
                tokens += text.len() + 1;
                tokens <= BATCH_TOKENS
            };
            let count = texts[start..].iter().take_while(fits).count().max(1);
            let batch: Vec<&[u32]> = texts[start..start + count].iter().map(Vec::as_slice).collect();
            self.read_batch(&batch)?;
            start += count;
        }
        self.tokens = kept.as_ref().map_or(0, Vec::len);
        self.waiting.extend(kept);
        Ok(self.complete())
    }

    fn read_batch(&mut self, texts: &[&[u32]]) -> Result<()> {
        let batch = self.generator.batch(texts)?;
        let (model, compute) = (self.generator.model(), self.generator.compute());
        let loss = || model.loss(&batch, &mut Pass::inference(compute)).token_losses();
        let losses = model.params().device().fitting(loss).map_err(DecodeError::from)?;
        if losses.iter().any(|loss| !loss.is_finite()) {
            return Err(BrokenModel { sentence: 0 }.into());
        }
        self.total.tokens += losses.len() as u64;
        self.total.negative_log_likelihood += losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        self.scores.extend(losses.iter().map(|&loss| -f64::from(loss)));
        Ok(())
    }

    /// The lines all of whose tokens have scores.
    fn complete(&mut self) -> Vec<TargetScore> {
        let (mut complete, mut taken) = (Vec::new(), 0);
        while let Some(&length) = self.open.front()
            && self.scores.len() - taken >= length
        {
            self.open.pop_front();
            let tokens = self.scores[taken..taken + length].to_vec();
            taken += length;
            let log_probability = tokens.iter().fold(0.0, |sum, token| sum + token);
            complete.push(TargetScore { log_probability, tokens, alternatives: Vec::new() });
        }
        self.scores.drain(..taken);
        complete
    }
}

/// Whether a block that is not full is scored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Kept,
    Read,
}
