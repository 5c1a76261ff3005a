//! The operations, one folder each: formula, shapes, gradient, kernel, tests.
//!
//! Shapes that do not fit are bugs in the calling program: an operation panics and names itself and both
//! shapes.

// A Transformer, from its tokens to its loss.
pub mod embedding;

pub mod linear;

pub mod norm;

mod score;

pub mod attention;

pub mod cross_entropy;

// For training and decoding.
pub mod adam;
pub mod cached_attention;
pub mod moving_average;
pub mod top_k;

// Recurrent networks, with attention and without.
pub mod recurrent;

pub mod attention_rnn;
pub mod ssru;

// Convolutions and classifiers.
pub mod convolution;
pub mod glu;
pub mod pool;

// The baseline for layer norm.
pub mod batch_norm;

// Building blocks between them.
pub mod elementwise;
pub mod softmax;

pub use adam::{Adam, AdamOptions, BatchLoss, Divergence, Guard, PendingStep, StepResult, WeightDecayScope};
pub use attention::{
    AttentionOptions, AttentionOutput, BoolMask, ColumnView, Mask, MaskError, ReturnWeights, attention,
    single_query_attention,
};
pub use attention_rnn::{
    AttendInputs, AttendOptions, AttendedTokens, AttentionRnn, AttentionRnnInputs, AttentionRnnOptions,
    AttentionRnnWeights, Estimator, Selection, SourceRows, StepWeights, attend_rows, attend_tokens,
    attention_rnn,
};
pub use batch_norm::{BatchNormOutput, batch_norm, batch_norm_with_statistics, update_running_statistic};
pub use cached_attention::{
    CachedAttentionOptions, KeyValueRows, KeyValueStore, KvIndices, KvView, cached_attention,
};
pub use convolution::{ConvolutionOptions, Padding, convolution, dilated_windows, slide_windows};
pub use cross_entropy::{CrossEntropy, CrossEntropyOptions, IGNORED, cross_entropy};
pub use elementwise::{
    add, cast, columns, concat_columns, concat_rows, dropout, gather_rows, matmul, multiply, relu,
    repeat_column, scale, subtract, sum, tanh, zero_columns,
};
pub use embedding::{
    EmbeddingOptions, NO_TOKEN, Positions, SinusoidLayout, embedding, embedding_at, sinusoid, sinusoid_row,
};
pub use glu::glu;
pub use linear::{Activation, LinearOptions, Projection, linear, matmul_f32_out, project, project_f32_out};
pub use moving_average::MovingAverage;
pub use norm::{NormOptions, layer_norm, residual, residual_norm};
pub use pool::{max_pool, mean_pool};
pub use recurrent::{
    Cell, Direction, Recurrent, RecurrentInput, RecurrentOptions, RecurrentState, recurrent, recurrent_layer,
    recurrent_step,
};
pub use score::{AttentionScore, ScoreForm};
pub use softmax::softmax;
pub use ssru::{ssru, ssru_step};
pub use top_k::{ChosenColumns, ChosenGroup, Normalizers, Scored, TopK, project_chosen};
