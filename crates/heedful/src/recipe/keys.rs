//! All keys of a recipe: name, type, default, limit, meaning and scope ([`scope`](super::scope)). The
//! comments in recipes, `--help` and error messages are generated from here.

use std::path::PathBuf;
use std::time::Duration;

use heedful_tensor::DType;
use heedful_tensor::ops::{Activation, Cell, WeightDecayScope};

use super::choices::{
    AttentionKind, AttentionOrder, Averaging, Balance, BestBy, ConvolutionKind, DecoderLayer, Directions,
    EncoderKind, Family, KeptState, Pooling, PositionKind, Preset, RecurrentNorm, ScheduleKind, Task,
};
use super::pattern::NamePattern;
use super::scope::{
    ADDITIVE, ALL, ATTENDS, AVERAGES, BALANCE_NORM, BLEU, BY_STEPS, CONVOLUTIONAL_ENCODER, DECAYS, DECLARED,
    ENDS, FROM_SCRATCH, HARD, HAS_MAX_TOKENS, HAS_PEAK, LEARNED, LEARNED_POSITIONS, LEARNED_SUBWORDS, LINES,
    NOAM, POOLS_BY_ATTENTION, PRETRAINED, RECURRENT_ENCODER, RECURRENT_NORM, TRAPEZOID, WARMS_UP, WIDE_BEAM,
};
use super::setting::Limit::{Above, Any, AtLeast, Share};
use super::setting::Setting;
use super::table::recipe;
use crate::data::OverLong;
use crate::data::corpus::Duplicates;
use crate::data::tokenizer::{Boundaries, NormalizationForm, Sharing, VocabularyKind};
use crate::layers::{AttentionScore, Norm, NormKind, Tying};

recipe! {
    /// Training and validation text. Files may be compressed (.gz, .xz, .zst)
    [data: DataKeys, ""] {
        /// Task of the model: `translate`, `classify` (text to label), `lm` (language model) or `mlm` (masked
        /// language model)
        task: Task = Task::Translate, Any;
        /// Source text, one sentence per line; several files are concatenated
        src: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Target text: line n translates line n of the source
        tgt: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Source and target in one file: source, tab, target in each line
        tsv: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Source text of the validation set
        valid_src: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Target text of the validation set
        valid_tgt: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Validation set in one file: source, tab, target in each line
        valid_tsv: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Labelled texts for the task classify: label, tab, text in each line
        label_text: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Labelled texts of the validation set
        valid_label_text: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Plain text for the tasks lm and mlm
        text: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Plain text of the validation set
        valid_text: Vec<PathBuf> = Vec::new(), Any, DECLARED;
        /// Cut running text into blocks of this many tokens; `none`: each line is a text; 256 for the task lm
        block: Option<usize> = None, AtLeast(2.0), DECLARED;
        /// Maximum number of tokens on each side of a pair
        max_tokens: Option<usize> = Some(256), AtLeast(1.0), ALL.when(&[LINES]);
        /// What to do with longer pairs: leave them out (`filter`) or truncate them (`cut`)
        over_long: OverLong = OverLong::Filter, Any, ALL.when(&[LINES, HAS_MAX_TOKENS]);
        /// Maximum length ratio: pairs whose longer side has more than this many times the tokens of the
        /// other are left out
        max_ratio: Option<f64> = None, AtLeast(1.0), DECLARED;
        /// What to do with repeated pairs: `keep` or `drop`
        duplicates: Duplicates = Duplicates::Keep, Any, ALL.when(&[LINES]);
    }

    /// Tokenization
    [vocabulary: VocabularyKeys, "vocabulary-"] {
        /// Algorithm that learns the vocabulary: subwords (`bpe`, `unigram`), `word` or `character`
        kind: VocabularyKind = VocabularyKind::Bpe, Any, ALL.when(LEARNED);
        /// Maximum number of tokens in the vocabulary
        size: usize = 8000, AtLeast(2.0), ALL.when(LEARNED);
        /// One vocabulary for both sides (`joint`) or one for each (`separate`, with model.tying
        /// `target-output` or `none`)
        sharing: Sharing = Sharing::Joint, Any, DECLARED.when(LEARNED);
        /// Unicode normalization of all text: `none`, `nfc` or `nfkc`
        normalization: NormalizationForm = NormalizationForm::None, Any, ALL.when(LEARNED);
        /// Boundaries that subwords never cross: spaces and punctuation (`words`) or `spaces` only
        boundaries: Boundaries = Boundaries::Words, Any, ALL.when(LEARNED_SUBWORDS);
        /// Character coverage: the share of the text whose characters become pieces; rarer ones are spelled
        /// in bytes
        coverage: f64 = 0.9999, Above(0.0), ALL.when(LEARNED);
        /// Existing vocabulary for both sides (`heedful vocab`), instead of learning one
        file: Option<PathBuf> = None, Any, ALL.when(&[FROM_SCRATCH]);
        /// Existing vocabulary for the source side
        source_file: Option<PathBuf> = None, Any, DECLARED.when(&[FROM_SCRATCH]);
        /// Existing vocabulary for the target side
        target_file: Option<PathBuf> = None, Any, DECLARED.when(&[FROM_SCRATCH]);
        /// File of tokens to add to the vocabulary of the model of init_from, one per line; each is
        /// initialized as the mean of the pieces of its text
        add_tokens: Option<PathBuf> = None, Any, ALL.when(&[PRETRAINED]);
    }

    /// Architecture
    [model: ModelKeys, ""] {
        /// Preset with the defaults of all other keys: `tiny`, `small`, `iwslt`, `base`, `big`
        preset: Preset = Preset::Small, Any;
        /// Model family: `transformer`, `recurrent` or `convolutional`; language models are `transformer` or
        /// `recurrent`, masked ones Transformers
        family: Family = Family::Transformer, Any;
        /// Model dimension: width of the token vectors
        d_model: usize = 256, AtLeast(1.0);
        /// Inner width of the feed-forward layers
        d_ff: usize = 1024, AtLeast(1.0), DECLARED;
        /// Attention heads per layer; must divide d_model
        heads: usize = 4, AtLeast(1.0), DECLARED;
        /// Number of encoder layers
        encoder_layers: usize = 3, AtLeast(1.0), DECLARED;
        /// Number of decoder layers
        decoder_layers: usize = 3, AtLeast(1.0), DECLARED;
        /// Width of the keys, all heads together; `none` for d_model
        key_width: Option<usize> = None, AtLeast(1.0), DECLARED;
        /// Width of the values, all heads together; `none` for d_model
        value_width: Option<usize> = None, AtLeast(1.0), DECLARED;
        /// Layer norm after each sublayer as in “Attention Is All You Need” (`post`), or before it (`pre`)
        norm: Norm = Norm::Post, Any, DECLARED;
        /// What the norms normalize over: the features of each position (`layer`), or each feature over a
        /// batch (`batch`)
        norm_kind: NormKind = NormKind::Layer, Any, DECLARED;
        /// ε of the layer norm: added to the variance, against division by 0
        norm_epsilon: f64 = 1e-5, Above(0.0), DECLARED.when(&[RECURRENT_NORM, BALANCE_NORM]);
        /// Activation of the feed-forward layers: `relu`, `gelu` (exact), `gelu-tanh` (its approximation),
        /// `silu`, `identity`
        activation: Activation = Activation::Relu, Any, DECLARED;
        /// Position encoding: `sinusoidal`, `learned`, `none`
        positions: PositionKind = PositionKind::Sinusoidal, Any, DECLARED.when(&[CONVOLUTIONAL_ENCODER]);
        /// Number of learned positions: the maximum number of tokens of a sentence
        max_positions: usize = 512, AtLeast(1.0), DECLARED.when(&[CONVOLUTIONAL_ENCODER, LEARNED_POSITIONS]);
        /// Weight tying: which embeddings share one matrix: `all`, `source-target`, `target-output`, `none`
        tying: Tying = Tying::All, Any, DECLARED;
        /// Whether the output projection has a bias, one value per token of the vocabulary
        output_bias: bool = false, Any, DECLARED;
        /// Whether token vectors are multiplied by √d_model before positions are added; BERT and GPT-2 do not
        scale_embeddings: bool = true, Any, DECLARED;
        /// Whether a norm follows the sum of token and position vectors, as in BERT
        embedding_norm: bool = false, Any, DECLARED;
        /// Autoregressive layer of a Transformer decoder: self `attention`, or a recurrent unit as in
        /// Marian's small models (`ssru`)
        decoder_layer: DecoderLayer = DecoderLayer::Attention, Any, DECLARED;
        /// Whether an encoder-only model adds `<bos>` and `<eos>` around every text, like `[CLS]` and `[SEP]`
        /// in BERT
        surround_text: bool = false, Any, DECLARED;
        /// Attention score of a query and a key: `scaled-dot`, `dot`; recurrent models also `additive`,
        /// `general`
        score: AttentionScore = AttentionScore::ScaledDot, Any, DECLARED.when(&[ATTENDS]);
        /// Restricted self attention: maximum distance of a key from its query; `none` for no limit
        window: Option<usize> = None, AtLeast(1.0), DECLARED;
        /// Cell of a recurrent model: `lstm`, `gru` or `simple`
        cell: Cell = Cell::Lstm, Any, DECLARED;
        /// Encoder under a recurrent decoder: `recurrent` or `convolutional`
        encoder: EncoderKind = EncoderKind::Recurrent, Any, DECLARED;
        /// Attention of a recurrent decoder: `soft`, `none`, or to one word at a time (`hard`,
        /// `straight-through`)
        attention: AttentionKind = AttentionKind::Soft, Any, DECLARED;
        /// When a recurrent decoder attends: `before` its step (Bahdanau), `after` it (Luong), or after it
        /// with input `feeding`: the readout enters the next step
        attend: AttentionOrder = AttentionOrder::Before, Any, DECLARED.when(&[ATTENDS]);
        /// Hidden width of the additive score of a recurrent decoder; `none` for d_model
        score_width: Option<usize> = None, AtLeast(1.0), DECLARED.when(&[ATTENDS, ADDITIVE]);
        /// Hard attention: weight of the REINFORCE reward in the training objective
        reward: f64 = 0.02, AtLeast(0.0), DECLARED.when(&[HARD]);
        /// Hard attention: weight of the entropy bonus, which keeps the attention exploring
        entropy: f64 = 0.01, AtLeast(0.0), DECLARED.when(&[HARD]);
        /// Directions in which a recurrent encoder reads: `both`, or `forward` only
        directions: Directions = Directions::Both, Any, DECLARED.when(&[RECURRENT_ENCODER]);
        /// Norm over the output of every recurrent layer: `none` or `layer`
        recurrent_norm: RecurrentNorm = RecurrentNorm::None, Any, DECLARED;
        /// State width of a recurrent encoder in each direction; `none` for d_model divided by the directions
        d_encoder: Option<usize> = None, AtLeast(1.0), DECLARED.when(&[RECURRENT_ENCODER]);
        /// Kernel width of a convolution in tokens; odd
        kernel_size: usize = 3, AtLeast(1.0), DECLARED.when(&[CONVOLUTIONAL_ENCODER]);
        /// Dilation of convolutions: the factor by which the distance between the inputs of a kernel grows from layer to layer
        /// (2: 1, 2, 4, …); 1 for none
        dilation: usize = 1, AtLeast(1.0), DECLARED.when(&[CONVOLUTIONAL_ENCODER]);
        /// Activation after a convolution: a gate (`gated`, GLU) or ReLU (`relu`)
        convolution: ConvolutionKind = ConvolutionKind::Gated, Any, DECLARED.when(&[CONVOLUTIONAL_ENCODER]);
        /// Normalization of convolutional residual sums: a factor √½ (`scale`) or a layer norm (`norm`)
        balance: Balance = Balance::Scale, Any, DECLARED.when(&[CONVOLUTIONAL_ENCODER]);
        /// How a classifier pools a text into one vector: `attention`, the `first` token (a `<bos>`), the
        /// `last` state, `mean` or `max`
        pooling: Pooling = Pooling::Attention, Any, DECLARED;
        /// Score of attention pooling, between a token and the learned query: `additive`, `dot`, `general`,
        /// `scaled-dot`
        pooling_score: AttentionScore = AttentionScore::Additive, Any, DECLARED.when(&[POOLS_BY_ATTENTION]);
        /// Whether a linear layer and tanh follow the pooling of a classifier, as in BERT
        pooler: bool = false, Any, DECLARED;
        /// Whether a classifier has a bias for each label
        label_bias: bool = false, Any, DECLARED;
        /// Folder of the pretrained model, from which the run takes architecture, vocabulary and weights. A
        /// classifier starts from a classifier or a masked language model, any other model from one of the
        /// same task
        init_from: Option<PathBuf> = None, Any;
        /// Checksum that the model of init_from must have; a run writes it into its recipe, and rejects a
        /// different model
        init_checksum: Option<String> = None, Any, ALL.when(&[PRETRAINED]);
    }

    /// Optimization and regularization
    [training: TrainingKeys, ""] {
        /// Data type of the matrix products: `bf16` or `f32`; parameters are always f32
        compute: DType = DType::Bf16, Any;
        /// Random seed of initial weights, dropout and data order; the same seed gives the same model
        seed: u64 = 1, Any;
        /// Maximum number of tokens in a batch, counted on each side
        batch_tokens: usize = 4096, AtLeast(1.0);
        /// Gradient accumulation: batches per update; processes that train together (--distributed) share
        /// them
        accumulate: usize = 1, AtLeast(1.0);
        /// Number of updates; `none` for no limit. With `time` alone, as many as fit
        steps: Option<u64> = Some(50_000), AtLeast(1.0);
        /// Time of the whole run (90s, 30m, 1h30m): a limit. Without `steps`, it also chooses the number of
        /// steps, the warmup and the validation interval, and for a Transformer that translates, without a
        /// preset, on a CPU, its size and training
        time: Option<Duration> = None, AtLeast(1.0);
        /// Dropout rate of the embeddings and of every sublayer's output
        dropout: f64 = 0.1, Share;
        /// Dropout rate of the attention weights
        attention_dropout: f64 = 0.0, Share, DECLARED;
        /// Dropout rate inside the feed-forward layers
        feed_forward_dropout: f64 = 0.0, Share, DECLARED;
        /// Label smoothing ε: share of the probability mass that is spread over the other tokens
        label_smoothing: f64 = 0.1, Share;
        /// R-Drop: the paper's α, weight of the divergence between two passes over each batch with different
        /// dropout masks; `none` for one pass
        r_drop_alpha: Option<f64> = None, Above(0.0);
        /// Learning rate schedule: `noam`, `inverse-sqrt`, `cosine`, `trapezoid` (constant, then linear to
        /// min_lr), `constant`
        schedule: ScheduleKind = ScheduleKind::InverseSqrt, Any;
        /// Warmup: steps until the peak of the learning rate; if not given, at most a tenth of the run's
        /// steps
        warmup: u64 = 2000, Any, ALL.when(&[WARMS_UP]);
        /// Peak learning rate (all schedules but noam)
        lr: f64 = 1e-3, Above(0.0), ALL.when(&[HAS_PEAK]);
        /// Factor on the learning rate of noam; if not given, scaled so that a shorter warmup leaves the peak
        /// unchanged
        factor: f64 = 1.0, Above(0.0), ALL.when(&[NOAM]);
        /// Final learning rate of cosine and trapezoid, at the last of `steps`
        min_lr: f64 = 0.0, AtLeast(0.0), ALL.when(&[ENDS]);
        /// Last steps of trapezoid, in which the learning rate falls; if not given, at most 40 % of the run's
        /// steps
        cooldown: u64 = 20_000, Any, ALL.when(&[TRAPEZOID]);
        /// β₁ of Adam: decay of the running mean of the gradients
        beta1: f64 = 0.9, Share;
        /// β₂ of Adam: decay of the running mean of the squared gradients
        beta2: f64 = 0.98, Share;
        /// ε of Adam: added to the denominator, against division by 0
        adam_epsilon: f64 = 1e-9, Above(0.0);
        /// Decoupled weight decay (AdamW): every update multiplies weights by 1 − lr · weight_decay
        weight_decay: f64 = 0.0, AtLeast(0.0);
        /// Parameters that weight decay applies to: `matrices` (not norms and biases) or `all`
        decayed: WeightDecayScope = WeightDecayScope::Matrices, Any, ALL.when(&[DECAYS]);
        /// Gradient clipping: maximum norm of the gradient; `none` for no limit
        clip_norm: Option<f64> = None, Above(0.0);
        /// Decay d of an exponential moving average of the weights, which is validated and saved instead; at
        /// step t it is min(d, (1 + t) / (10 + t)), so that the first weights are soon forgotten; `none` to
        /// disable
        ema: Option<f64> = None, Share;
        /// Parameters to freeze, by name: patterns in which `*` is any text, such as `encoder.*` or
        /// `*embedding*`
        freeze: Vec<NamePattern> = Vec::new(), Any;
        /// The run ends as diverged when the gradient norm is this many times its recent median; `none` for
        /// no check
        max_grad_norm_ratio: Option<f64> = Some(1000.0), Above(1.0);
    }

    /// Validation during training
    [validation: ValidationKeys, "validation-"] {
        /// Steps between validations; if not given, at most a tenth of the run's steps (with `time` alone: at
        /// most 20 validations, in at most a twentieth of the time)
        every: u64 = 500, AtLeast(1.0), ALL.when(&[BY_STEPS]);
        /// Time between validations, instead of steps
        every_time: Option<Duration> = None, AtLeast(1.0);
        /// Whether to translate the validation set and compute BLEU; slower, but closer to the task than the
        /// loss
        bleu: bool = true, Any, DECLARED;
        /// Metric that selects the best model: `loss`, `bleu` or `accuracy`
        best_by: BestBy = BestBy::Loss, Any;
        /// Early stopping after this many validations without improvement; `none` for never
        patience: Option<u64> = None, AtLeast(1.0);
        /// Maximum number of validation pairs that are translated for BLEU
        bleu_pairs: Option<usize> = Some(500), AtLeast(1.0), DECLARED.when(&[BLEU]);
    }

    /// Search of the validation; `heedful translate` has flags of its own
    [search: SearchKeys, "search-"] {
        /// Beam size: hypotheses kept at every step; 1 is greedy
        beam: usize = 1, AtLeast(1.0), DECLARED;
        /// α of the length penalty: scores are log p / ((5 + length) / 6)^α; 0 favours short translations
        length_penalty: f64 = 0.6, AtLeast(0.0), DECLARED.when(&[WIDE_BEAM]);
        /// Maximum length of a translation: the length of its source plus this many tokens
        beyond_source: usize = 50, Any, DECLARED;
        /// Never generate the same n-gram of this many tokens twice; `none` to allow it
        no_repeat_ngram: Option<usize> = None, AtLeast(1.0), DECLARED;
    }

    /// Checkpoints, and the average of them that is the final model
    [checkpoint: CheckpointKeys, "checkpoint-"] {
        /// Steps between checkpoints; if not given, at most a tenth of the run's steps; every validation
        /// writes one too
        every: u64 = 1000, AtLeast(1.0);
        /// Time between checkpoints: the most that a crash can lose
        every_time: Option<Duration> = Some(Duration::from_secs(600)), AtLeast(1.0);
        /// Number of latest checkpoints to keep
        keep_last: usize = 2, AtLeast(1.0);
        /// Number of best checkpoints to keep, by validation
        keep_best: usize = 5, Any;
        /// Checkpoints that keep the optimizer's state, which runs resume from: the `latest` (two, one when
        /// the run has finished) or `all`; the others keep the weights, for averages
        keep_state: KeptState = KeptState::Latest, Any;
        /// Checkpoints whose average is the final model: the `best`, the `last`, or `none` (the best one
        /// alone)
        average: Averaging = Averaging::Best, Any;
        /// Number of checkpoints to average
        average_count: usize = 5, AtLeast(1.0), ALL.when(&[AVERAGES]);
    }

    /// Files of the run
    [output: OutputKeys, ""] {
        /// Output folder of the run (required); it is also a model folder
        out: Option<PathBuf> = None, Any;
        /// Steps between lines of the log; if not given, at most a twentieth of the run's steps
        log_every: u64 = 50, AtLeast(1.0);
        /// Whether to write TensorBoard events
        tensorboard: bool = true, Any;
        /// Whether to write report.html
        report: bool = true, Any;
    }
}
