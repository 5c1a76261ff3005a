//! Scores text with a language model, line by line.
//!
//! ```text
//! log p(line) = Σ log p(token | context)              lines: the context is the line itself; <eos> is predicted
//!                                                     running text: the context is <bos> and the block so far
//! perplexity of units = e^(−log p(text) / units)      tokens, words (separated by white space), bytes (including line ends)
//! ```
//!
//! Running text is cut into blocks as in training, so that every token is predicted once. Models of lines
//! were not trained on blank lines: a blank line has log-probability 0 and is not counted.

use super::Generator;
use crate::Result;
use crate::decode::DecodeError;
use crate::decode::TargetScore;
use crate::layers::Pass;
use crate::models::{BrokenModel, Model};

/// Maximum number of tokens in a batch; a single longer line or block is still scored.
const BATCH_TOKENS: usize = 4096;

/// The perplexity of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextPerplexity {
    /// `−log p(text)`.
    pub negative_log_likelihood: f64,
    /// Predicted tokens, including `<eos>` if lines end with it.
    pub tokens: u64,
    /// Words, separated by white space.
    pub words: u64,
    /// Bytes of UTF-8, including line ends.
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

/// Scores the lines of a text incrementally, in constant memory.
pub struct TextScorer<'g> {
    generator: &'g Generator,
    /// Texts without scores: whole lines, or blocks; the last block may be incomplete.
    waiting: Vec<Vec<u32>>,
    tokens: usize,
    /// The number of predicted tokens of each incomplete line, and the token scores from the first of these
    /// on.
    incomplete_lines: std::collections::VecDeque<usize>,
    scores: Vec<f64>,
    total: TextPerplexity,
}

impl<'g> TextScorer<'g> {
    /// A scorer for an empty text.
    pub fn new(generator: &'g Generator) -> TextScorer<'g> {
        TextScorer {
            generator,
            waiting: Vec::new(),
            tokens: 0,
            incomplete_lines: std::collections::VecDeque::new(),
            scores: Vec::new(),
            total: TextPerplexity::default(),
        }
    }

    /// Adds a line with its tokens from [`Generator::encode`]. Returns the scores of lines that are complete,
    /// in order.
    pub fn push(&mut self, line: &str, tokens: Vec<u32>) -> Result<Vec<TargetScore>> {
        let ends = self.generator.ends_texts();
        let mut predicted = self.generator.predicted(line, tokens);
        self.incomplete_lines.push_back(predicted.len());
        self.tokens += predicted.len();
        if !ends || !predicted.is_empty() {
            self.count(line);
        }
        match ends {
            false => self.fill_blocks(predicted),
            // The batch adds `<eos>`.
            true if predicted.pop().is_some() => self.waiting.push(predicted),
            true => {}
        }
        if self.tokens >= BATCH_TOKENS { self.score_waiting(PartialBlock::Keep) } else { Ok(self.complete()) }
    }

    /// The scores of the remaining lines, and the perplexity of the text.
    pub fn finish(mut self) -> Result<(Vec<TargetScore>, TextPerplexity)> {
        let scores = self.score_waiting(PartialBlock::Score)?;
        Ok((scores, self.total))
    }

    fn count(&mut self, line: &str) {
        self.total.words += line.split_whitespace().count() as u64;
        self.total.bytes += line.len() as u64 + 1;
    }

    /// Appends running text to the blocks; all except the last are full.
    fn fill_blocks(&mut self, tokens: Vec<u32>) {
        let block = self.generator.block();
        for token in tokens {
            match self.waiting.last_mut() {
                Some(last) if last.len() < block => last.push(token),
                _ => self.waiting.push(vec![token]),
            }
        }
    }

    /// Scores the waiting texts. An incomplete block is scored only with [`PartialBlock::Score`].
    fn score_waiting(&mut self, partial_block: PartialBlock) -> Result<Vec<TargetScore>> {
        let is_partial = |last: &Vec<u32>| last.len() < self.generator.block();
        let keeps = !self.generator.ends_texts()
            && partial_block == PartialBlock::Keep
            && self.waiting.last().is_some_and(is_partial);
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
            self.score_batch(&batch)?;
            start += count;
        }
        self.tokens = kept.as_ref().map_or(0, Vec::len);
        self.waiting.extend(kept);
        Ok(self.complete())
    }

    fn score_batch(&mut self, texts: &[&[u32]]) -> Result<()> {
        let batch = self.generator.batch(texts)?;
        let (model, compute) = (self.generator.model(), self.generator.compute());
        let loss = || model.loss(&batch, &mut Pass::inference(compute)).token_losses();
        let losses = model.params().device().catch_oom(loss).map_err(DecodeError::from)?;
        if losses.iter().any(|loss| !loss.is_finite()) {
            return Err(BrokenModel { sentence: 0 }.into());
        }
        self.total.tokens += losses.len() as u64;
        self.total.negative_log_likelihood += losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        self.scores.extend(losses.iter().map(|&loss| -f64::from(loss)));
        Ok(())
    }

    /// Takes the lines whose tokens all have scores.
    fn complete(&mut self) -> Vec<TargetScore> {
        let (mut complete, mut taken) = (Vec::new(), 0);
        while let Some(&length) = self.incomplete_lines.front()
            && self.scores.len() - taken >= length
        {
            self.incomplete_lines.pop_front();
            let tokens = self.scores[taken..taken + length].to_vec();
            taken += length;
            let log_probability = tokens.iter().fold(0.0, |sum, token| sum + token);
            complete.push(TargetScore { log_probability, tokens, alternatives: Vec::new() });
        }
        self.scores.drain(..taken);
        complete
    }
}

/// Whether an incomplete block is scored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartialBlock {
    Keep,
    Score,
}
