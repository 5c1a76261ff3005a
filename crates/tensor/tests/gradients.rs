//! Every operation × every instruction set × f32 and bf16: results against naive f64 references, gradients
//! against central differences. `support` is the harness, `cases` the test cases. `gpu::NAME` runs the same
//! on a GPU.

mod cases;
mod support;

/// A test for each table of cases, on the CPU and on a GPU.
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
