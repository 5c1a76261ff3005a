//! The schema of [`heedful::explain::Explanation`], which the library serializes itself. A test checks that
//! they match.

#![expect(dead_code, reason = "these types only describe JSON and are never built")]

use utoipa::ToSchema;

/// The explanation of one text: tokens, probabilities, alignment, attention weights.
#[derive(ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationSchema {
    /// The source text; empty for a language model, whose text is its output.
    source: ExplainedSource,
    /// The outputs, best first.
    outputs: Vec<ExplainedOutput>,
}

/// The source text.
#[derive(ToSchema)]
struct ExplainedSource {
    /// The text.
    text: String,
    /// Its tokens.
    tokens: Vec<TokenSchema>,
}

/// One output.
#[derive(ToSchema)]
struct ExplainedOutput {
    /// The text.
    text: String,
    /// The log-probability with the length penalty.
    score: f64,
    /// The sum over all tokens.
    log_probability: f64,
    /// The predicted tokens: of a translation or of a text, with `<eos>` at the end if it was generated; the
    /// label; or the best prediction for each gap.
    tokens: Vec<TokenSchema>,
    /// Pairs of source word and target word, counted from 0; only translations have them.
    alignment: Vec<(usize, usize)>,
    /// One for each attention layer, in the order of computation; empty unless `attention` asks for weights.
    attention: Vec<AttentionLayer>,
}

/// One token.
#[derive(ToSchema)]
#[schema(as = Token)]
pub(crate) struct TokenSchema {
    /// The piece, with spaces as `▁`.
    piece: String,
    /// The word that it belongs to, counted from 0; null for special tokens and white space.
    #[schema(required)]
    word: Option<usize>,
    /// The log-probability given all previous tokens; only for generated tokens.
    #[schema(nullable = false)]
    log_probability: Option<f64>,
    /// The most probable tokens at its position, best first; only if `alternatives` requests them.
    #[schema(nullable = false)]
    alternatives: Option<Vec<AlternativeSchema>>,
}

/// An alternative to a token.
#[derive(ToSchema)]
#[schema(as = Alternative)]
struct AlternativeSchema {
    /// The piece, with spaces as `▁`.
    piece: String,
    /// The log-probability given all previous tokens.
    log_probability: f64,
}

/// The weights of one attention layer.
#[derive(ToSchema)]
struct AttentionLayer {
    /// Its name; layers count from 0 within their stack.
    #[schema(example = "decoder.0.cross")]
    layer: String,
    /// The kind of attention.
    kind: AttentionKind,
    /// Rows of each head's matrix.
    queries: usize,
    /// Columns of each head's matrix.
    keys: usize,
    /// For each head its matrix: rows of numbers, or one packed string.
    heads: Vec<Head>,
    /// Scores before the softmax, if `raw_scores` asks for them.
    #[schema(nullable = false)]
    scores: Option<Vec<HeadScores>>,
}

/// The kind of attention.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum AttentionKind {
    /// The source to itself.
    Encoder,
    /// The output to its own previous tokens.
    Decoder,
    /// The output to the source.
    Cross,
    /// A classifier's query to the text.
    Pooling,
}

/// The weights of one head.
#[derive(ToSchema)]
#[serde(untagged)]
enum Head {
    /// Rows of numbers.
    Rows(Vec<Vec<f32>>),
    /// Base 64 of each weight as a 16-bit integer (low byte first), 65535 for 1, row after row.
    Packed(String),
}

/// The scores of one head before the softmax.
#[derive(ToSchema)]
#[serde(untagged)]
enum HeadScores {
    /// Rows of numbers; null where a mask hides the key.
    Rows(Vec<Vec<Option<f32>>>),
    /// Base 64 of each score as a 32-bit float (low byte first), row after row; −∞ where a mask hides the
    /// key.
    Packed(String),
}
