//! The attention exercise with the user's own numbers: every table from the input to the result.
//!
//! ```text
//! Q = X W_q + b_q,   K = M W_k + b_k,   V = M W_v + b_v        M is the memory; without one it is X
//! scores   Q Kᵀ, or Q W Kᵀ, or tanh(q W_q + k W_k + b) · w     by the score
//! scaled   scores / √d_k                                       for scaled-dot
//! masked   scaled, and −∞ where a query may not see a key
//! weights  softmax of each row of masked
//! result   weights V;   for several heads Concat(result_1 … result_h), then W_o + b_o if they are given
//! ```
//!
//! All of it is computed in f64, by the formulas and not by the kernels of a model: what is shown has more digits than anybody
//! reads. The tests compare it with numpy and with the kernels.

mod fields;
mod matrix;

mod exercise;
mod solution;

mod tables;

pub use exercise::{Exercise, Keys, MaskRule};
pub use fields::ExerciseError;
pub use matrix::Matrix;
pub use solution::HeadSolution;
pub use solution::Solution;

/// Exercises to begin with: their names, what they show, and the file.
pub const EXAMPLES: [(&str, &str, &str); 4] = [
    ("self", "self attention of three words, with a causal mask", include_str!("examples/self.json")),
    ("cross", "cross attention: two target words to a memory of three", include_str!("examples/cross.json")),
    ("heads", "two heads, joined by W_o", include_str!("examples/heads.json")),
    (
        "additive",
        "the additive score of Bahdanau et al., given Q, K and V",
        include_str!("examples/additive.json"),
    ),
];
