//! Every operation × every instruction set × f32 and bf16: results against naive f64 references, gradients against
//! central differences. How that is done is in `support`, the table of cases in `cases`. `gpu::NAME` is the same on a GPU.

mod cases;
mod support;

/// A test for each table of cases, and one on a GPU.
macro_rules! tables {
    ($($name:ident: $table:ident,)+) => {
        $(#[test]
        fn $name() {
            support::check(&cases::$table::cases());
        })+

        mod gpu {
            $(#[test]
            #[ignore = "needs an NVIDIA GPU"]
            fn $name() {
                crate::support::check_on_gpu(&crate::cases::$table::cases());
            })+
        }
    };
}

tables! {
    linear: linear,
    embedding: embedding,
    attention: attention,
    convolution_and_gates: convolution,
    pool: pool,
    norm: norm,
    softmax_and_cross_entropy: softmax,
    elementwise: elementwise,
    recurrent: recurrent,
    attention_rnn: attention_rnn,
    attend_tokens: attend_tokens,
    ssru: ssru,
}
