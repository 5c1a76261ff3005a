//! The names of activation functions in other projects.

use heedful_tensor::ops::Activation;

/// Hugging Face's names; of several for one function, an export uses the first.
const HUGGING_FACE: [(&str, Activation); 7] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("silu", Activation::Silu),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("swish", Activation::Silu),
    ("linear", Activation::Identity),
];

/// CTranslate2's functions, indexed by its enum values.
const CTRANSLATE2: [Activation; 4] =
    [Activation::Relu, Activation::GeluTanh, Activation::Silu, Activation::Gelu];

pub(in crate::exchange) fn of_hugging_face(name: &str) -> Option<Activation> {
    HUGGING_FACE.iter().find(|(known, _)| *known == name).map(|(_, activation)| *activation)
}

/// `None` for a function that transformers does not have.
pub(in crate::exchange) fn to_hugging_face(activation: Activation) -> Option<&'static str> {
    HUGGING_FACE.iter().find(|(_, known)| *known == activation).map(|(name, _)| *name)
}

pub(in crate::exchange) fn of_ctranslate2(number: f64) -> Option<Activation> {
    (0..).zip(CTRANSLATE2).find(|(known, _)| f64::from(*known) == number).map(|(_, activation)| activation)
}

/// `None` for a function that CTranslate2 does not have.
pub(in crate::exchange) fn to_ctranslate2(activation: Activation) -> Option<i8> {
    (0..).zip(CTRANSLATE2).find(|(_, known)| *known == activation).map(|(number, _)| number)
}
