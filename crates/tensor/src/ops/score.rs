//! Attention scores: the similarity of a query and a key.
//!
//! ```text
//! additive     wᵀ tanh(W_q q + W_k k + b)    Bahdanau et al., 2015
//! dot          q · k                         Luong et al., 2015; equal widths
//! general      qᵀ W k                        Luong et al., 2015
//! scaled-dot   q · k / √d_k                  Vaswani et al., 2017; equal widths
//! ```
//!
//! Why scaled: for elements of unit variance the dot product has variance d_k, so for large d_k the softmax
//! saturates and its gradient vanishes.

macro_rules! scores {
    ($($(#[$meta:meta])* $Score:ident = $name:literal, $form:ident;)+) => {
        /// The score function of a query and a key.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum AttentionScore {
            $($(#[$meta])* $Score,)+
        }

        impl AttentionScore {
            /// All score functions.
            pub const ALL: &'static [AttentionScore] = &[$(AttentionScore::$Score,)+];

            /// Its name in configurations and recipes.
            pub fn name(self) -> &'static str {
                match self { $(AttentionScore::$Score => $name,)+ }
            }

            /// The matrices of the score function.
            #[inline]
            pub fn form(self) -> ScoreForm {
                match self { $(AttentionScore::$Score => ScoreForm::$form,)+ }
            }
        }
    };
}

scores! {
    /// `wᵀ tanh(W_q q + W_k k)`, with a width of its own.
    Additive = "additive", Additive;
    /// `q · k`.
    Dot = "dot", Product;
    /// `qᵀ W k`.
    General = "general", Bilinear;
    /// `q · k / √d_k`.
    #[default]
    ScaledDot = "scaled-dot", Product;
}

/// The matrices of a score function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreForm {
    /// None: queries and keys have the same width and are multiplied directly.
    Product,
    /// One between queries and keys.
    Bilinear,
    /// One for queries, one for keys, and a weight vector for their sum.
    Additive,
}

impl AttentionScore {
    /// The score of this name.
    pub fn from_name(name: &str) -> Option<AttentionScore> {
        AttentionScore::ALL.iter().copied().find(|score| score.name() == name)
    }

    /// Whether queries and keys must have the same width.
    #[inline]
    pub fn requires_equal_widths(self) -> bool {
        self.form() == ScoreForm::Product
    }

    /// The factor of the product of two vectors of this width.
    #[inline]
    pub fn scale(self, width: usize) -> f32 {
        match self {
            AttentionScore::ScaledDot => (width as f32).sqrt().recip(),
            _ => 1.0,
        }
    }
}
