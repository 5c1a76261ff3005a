//! Computes attention for matrices that the user gives and shows every intermediate table.
//!
//! ```text
//! Q = X W_q + b_q,   K = M W_k + b_k,   V = M W_v + b_v        M is the memory, or X if there is none
//! scores   Q Kᵀ, or Q W Kᵀ, or tanh(q W_q + k W_k + b) · w     depending on the score
//! scaled   scores / √d_k                                       for scaled-dot
//! masked   scaled, with −∞ where the mask hides a key from a query
//! weights  softmax of each row of masked
//! result   weights V;   for several heads Concat(result_1 … result_h), then · W_o + b_o if given
//! ```
//!
//! Everything is computed in f64 from the formulas, not with the kernels of the models, so results are
//! accurate beyond the displayed digits. Tests compare them with NumPy and with the kernels.

mod fields;
mod matrix;

mod exercise;
mod solution;

mod tables;

pub use exercise::{Exercise, ExerciseOverrides, MaskRule};
pub use fields::ExerciseError;
pub use matrix::Matrix;
pub use solution::HeadSolution;
pub use solution::Solution;

/// Example exercises: name, description and file.
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
