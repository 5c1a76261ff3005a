//! Every key of a recipe: its name, type, default, limit and meaning. Comments in recipes, `--help` and error messages
//! come from here.

use std::path::PathBuf;
use std::time::Duration;

use heedful_tensor::DType;
use heedful_tensor::ops::{Activation, Cell};

use super::choices::{AttentionKind, Averaging, Family, PositionKind, Preset, ScheduleKind};
use super::setting::Limit::{Above, Any, AtLeast, Share};
use super::setting::Setting;
use super::table::recipe;
use crate::data::OverLong;
use crate::data::corpus::Duplicates;
use crate::data::tokenizer::{Boundaries, Kind, Normalization, Sharing};
use crate::layers::{Norm, Score};
use crate::models::transformer::Tying;
use crate::tasks::Task;
use crate::tasks::classify::Pooling;
use crate::train::Metric;

recipe! {
    /// What is read. Files may be compressed (.gz, .xz, .zst)
    [data: Data, ""] {
        /// What the model is for: `translate`, `classify` (texts and labels), `lm` (a language model) or `mlm` (a masked one)
        task: Task = Task::Translate, Any;
        /// Source text, one sentence a line; several files are read one after the other
        src: Vec<PathBuf> = Vec::new(), Any;
        /// Target text, line by line the translation of the source
        tgt: Vec<PathBuf> = Vec::new(), Any;
        /// Files with source and target in one line, a tab between them
        tsv: Vec<PathBuf> = Vec::new(), Any;
        /// Source text of the validation set
        valid_src: Vec<PathBuf> = Vec::new(), Any;
        /// Target text of the validation set
        valid_tgt: Vec<PathBuf> = Vec::new(), Any;
        /// Validation set with source and target in one line, a tab between them
        valid_tsv: Vec<PathBuf> = Vec::new(), Any;
        /// Texts and their labels for the task classify: a label, a tab and a text in each line
        label_text: Vec<PathBuf> = Vec::new(), Any;
        /// Texts and labels of the validation set
        valid_label_text: Vec<PathBuf> = Vec::new(), Any;
        /// Plain text for the tasks lm and mlm
        text: Vec<PathBuf> = Vec::new(), Any;
        /// Plain text of the validation set
        valid_text: Vec<PathBuf> = Vec::new(), Any;
        /// Plain text is one running text in pieces of so many tokens (256 for the task lm); `none`: each line is a text
        block: Option<usize> = None, AtLeast(2.0);
        /// The most tokens that a side of a pair may have
        max_tokens: Option<usize> = Some(256), AtLeast(1.0);
        /// What happens to pairs with more: they are left out (`filter`) or cut (`cut`), and counted
        over_long: OverLong = OverLong::Filter, Any;
        /// The most tokens that the longer side may have for each token of the shorter one
        max_ratio: Option<f64> = None, AtLeast(1.0);
        /// What happens to pairs that were there before: `keep` or `drop`
        duplicates: Duplicates = Duplicates::Keep, Any;
    }

    /// How text becomes tokens
    [vocabulary: Vocabulary, "vocabulary-"] {
        /// Learned from the training text: subwords (`bpe`, `unigram`), `word` or `character`
        kind: Kind = Kind::Bpe, Any;
        /// The most tokens it may have
        size: usize = 8000, AtLeast(2.0);
        /// One vocabulary for both sides (`joint`) or one each (`separate`, with model.tying `target-output` or `none`)
        sharing: Sharing = Sharing::Joint, Any;
        /// Unicode normalisation of all text: `none`, `nfc` or `nfkc`
        normalization: Normalization = Normalization::None, Any;
        /// Where subwords end: at spaces and punctuation (`words`) or at `spaces` only
        boundaries: Boundaries = Boundaries::Words, Any;
        /// A vocabulary made before (`heedful vocab`), for both sides; nothing is learned then
        file: Option<PathBuf> = None, Any;
        /// A vocabulary made before, for the source
        source_file: Option<PathBuf> = None, Any;
        /// A vocabulary made before, for the target
        target_file: Option<PathBuf> = None, Any;
    }

    /// What the model is made of
    [model: Model, ""] {
        /// Where all other values of the model and of training start from: `tiny`, `small`, `iwslt`, `base`, `big`
        preset: Preset = Preset::Small, Any;
        /// Which kind of translator: `transformer`, `recurrent` or `convolutional`
        family: Family = Family::Transformer, Any;
        /// Width of the vector of a token
        d_model: usize = 256, AtLeast(1.0);
        /// Width inside the feed-forward layers
        d_ff: usize = 1024, AtLeast(1.0);
        /// Heads of every attention layer; they divide d_model
        heads: usize = 4, AtLeast(1.0);
        /// Depth of the encoder
        encoder_layers: usize = 3, AtLeast(1.0);
        /// Depth of the decoder
        decoder_layers: usize = 3, AtLeast(1.0);
        /// Width of the keys of all heads together; `none` for d_model
        key_width: Option<usize> = None, AtLeast(1.0);
        /// Width of the values of all heads together; `none` for d_model
        value_width: Option<usize> = None, AtLeast(1.0);
        /// Layer norms after each sublayer as in the paper (`post`) or before it (`pre`)
        norm: Norm = Norm::Post, Any;
        /// Keeps the norms from dividing by 0
        norm_epsilon: f64 = 1e-5, Above(0.0);
        /// In the feed-forward layers: `relu`, `gelu`, `identity`
        activation: Activation = Activation::Relu, Any;
        /// How a word's place is told: `sinusoidal`, `learned`, `none`
        positions: PositionKind = PositionKind::Sinusoidal, Any;
        /// Length of the table of learned positions: no sentence may have more tokens
        max_positions: usize = 512, AtLeast(1.0);
        /// Which embeddings are one matrix: `all`, `source-target`, `target-output`, `none`
        tying: Tying = Tying::All, Any;
        /// How a query is compared with a key: `scaled-dot`, `dot`; recurrent models also `additive`, `general`
        score: Score = Score::ScaledDot, Any;
        /// Self attention sees only tokens at this distance or nearer; `none` for all
        window: Option<usize> = None, AtLeast(1.0);
        /// The network of a recurrent model: `lstm`, `gru` or `simple`
        cell: Cell = Cell::Lstm, Any;
        /// How a recurrent decoder looks at the source: `soft`, `none`, or at one word (`hard`, `straight-through`)
        attention: AttentionKind = AttentionKind::Soft, Any;
        /// What a draw of hard attention that did better than expected is worth in training, beside the loss
        reward: f64 = 0.02, AtLeast(0.0);
        /// What the entropy of hard attention's weights is worth in training: more keeps them undecided for longer
        entropy: f64 = 0.01, AtLeast(0.0);
        /// Width of a recurrent encoder's states in each direction; `none` for half of d_model
        d_encoder: Option<usize> = None, AtLeast(1.0);
        /// Tokens that a convolution sees at a time; odd
        taps: usize = 3, AtLeast(1.0);
        /// How a classifier makes one vector of a text: `attention`, or the `first` token's
        pooling: Pooling = Pooling::Attention, Any;
        /// How attention pooling compares a token with its learned query: `additive`, `dot`, `general`, `scaled-dot`
        pooling_score: Score = Score::Additive, Any;
        /// The folder of a masked language model (task mlm): a classifier starts from its encoder and its vocabulary
        init_from: Option<PathBuf> = None, Any;
    }

    /// How it learns
    [training: Training, ""] {
        /// Type of the matrix products: `bf16` or `f32`; parameters are f32 always
        compute: DType = DType::Bf16, Any;
        /// Decides first values, dropout and the order of the data; the same seed gives the same model
        seed: u64 = 1, Any;
        /// The most tokens of a batch, on the source and on the target side each
        batch_tokens: usize = 4096, AtLeast(1.0);
        /// Batches that make one update together
        accumulate: usize = 1, AtLeast(1.0);
        /// Updates until the end; `none` for no end
        steps: Option<u64> = Some(50_000), AtLeast(1.0);
        /// Time until the end (90s, 30m, 1h30m); `none` for no end. Whichever comes first
        time: Option<Duration> = None, AtLeast(1.0);
        /// Dropped of every sublayer's output and of the embeddings
        dropout: f64 = 0.1, Share;
        /// Dropped of the attention weights
        attention_dropout: f64 = 0.0, Share;
        /// Dropped inside the feed-forward layers
        feed_forward_dropout: f64 = 0.0, Share;
        /// Probability that the training goal spreads over the wrong tokens
        label_smoothing: f64 = 0.1, Share;
        /// How the learning rate goes: `noam`, `inverse-sqrt`, `cosine`, `constant`
        schedule: ScheduleKind = ScheduleKind::InverseSqrt, Any;
        /// Steps until the highest learning rate
        warmup: u64 = 2000, Any;
        /// The highest learning rate of all schedules but noam
        peak: f64 = 1e-3, Above(0.0);
        /// noam's learning rate is multiplied by this
        factor: f64 = 1.0, Above(0.0);
        /// The learning rate where cosine ends, at step `steps`
        floor: f64 = 0.0, AtLeast(0.0);
        /// Adam's memory of gradients
        beta1: f64 = 0.9, Share;
        /// Adam's memory of squared gradients
        beta2: f64 = 0.98, Share;
        /// Keeps Adam from dividing by 0
        adam_epsilon: f64 = 1e-9, Above(0.0);
        /// How fast unused weights shrink (AdamW)
        weight_decay: f64 = 0.0, AtLeast(0.0);
        /// Longer gradients are cut down to this norm; `none` for no limit
        clip_norm: Option<f64> = None, Above(0.0);
        /// Decay of a moving average of the weights, which is what gets validated and kept; `none` for no average
        ema: Option<f64> = None, Share;
        /// A gradient so many times longer than usual ends the run as diverged; `none` for any length
        explosion: Option<f64> = Some(1000.0), Above(1.0);
    }

    /// How the model is judged while it learns
    [validation: Validation, "validation-"] {
        /// Steps between two validations
        every: u64 = 500, AtLeast(1.0);
        /// Time between two validations, instead of steps
        every_time: Option<Duration> = None, AtLeast(1.0);
        /// Whether the validation set is translated and BLEU computed; needs time, tells more than the loss
        bleu: bool = true, Any;
        /// What the best model is chosen by: `loss`, `bleu` or `accuracy`
        best_by: Metric = Metric::Loss, Any;
        /// Stop after so many validations in a row without a better one; `none` to go on
        patience: Option<u64> = None, AtLeast(1.0);
        /// Of the validation set, at most so many pairs are translated for BLEU
        bleu_pairs: Option<usize> = Some(500), AtLeast(1.0);
    }

    /// How validation translates; `heedful translate` has flags of its own
    [search: Search, "search-"] {
        /// Hypotheses that are followed at a time; 1 is greedy
        beam: usize = 1, AtLeast(1.0);
        /// Length penalty: 0 favours short translations, 1 compares the mean of each token
        length_penalty: f64 = 0.6, AtLeast(0.0);
        /// A translation may be so many tokens longer than its source
        beyond_source: usize = 50, Any;
        /// No sequence of so many tokens occurs twice; `none` for no such rule
        no_repeat_ngram: Option<usize> = None, AtLeast(1.0);
    }

    /// What is kept of a run
    [checkpoint: Keeping, "checkpoint-"] {
        /// Steps between two checkpoints; there is one at every validation, too
        every: u64 = 1000, AtLeast(1.0);
        /// Time between two checkpoints: no more than this is lost by a crash
        every_time: Option<Duration> = Some(Duration::from_secs(600)), AtLeast(1.0);
        /// So many of the latest are kept
        keep_last: usize = 2, AtLeast(1.0);
        /// So many of the best by validation are kept
        keep_best: usize = 5, Any;
        /// Which checkpoints make the final model together: the `best`, the `last`, or `none` (the best one alone)
        average: Averaging = Averaging::Best, Any;
        /// How many
        average_count: usize = 5, AtLeast(1.0);
    }

    /// What is written
    [output: Output, ""] {
        /// The folder of the run, which is a model's folder too
        out: Option<PathBuf> = None, Any;
        /// Steps between two lines of the log
        log_every: u64 = 50, AtLeast(1.0);
        /// Whether TensorBoard events are written
        tensorboard: bool = true, Any;
        /// Whether report.html is written
        report: bool = true, Any;
    }
}
