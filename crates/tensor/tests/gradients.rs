//! Every operation × every instruction set × f32 and bf16: results against naive f64 references, gradients against
//! central differences. How that is done is in `support`, the table of cases in `cases`.

mod cases;
mod support;

#[test]
fn linear() {
    support::check(&cases::linear::cases());
}

#[test]
fn embedding() {
    support::check(&cases::embedding::cases());
}

#[test]
fn attention() {
    support::check(&cases::attention::cases());
}

#[test]
fn convolution_and_gates() {
    support::check(&cases::convolution::cases());
}

#[test]
fn pool() {
    support::check(&cases::pool::cases());
}

#[test]
fn norm() {
    support::check(&cases::norm::cases());
}

#[test]
fn softmax_and_cross_entropy() {
    support::check(&cases::softmax::cases());
}

#[test]
fn elementwise() {
    support::check(&cases::elementwise::cases());
}

#[test]
fn recurrent() {
    support::check(&cases::recurrent::cases());
}

#[test]
fn attention_rnn() {
    support::check(&cases::attention_rnn::cases());
}

#[test]
fn attend_tokens() {
    support::check(&cases::attend_tokens::cases());
}

#[test]
fn ssru() {
    support::check(&cases::ssru::cases());
}
