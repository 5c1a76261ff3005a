//! All CUDA modules, which are compiled together. This list is exempt from the module order.

use crate::cuda::{self, Module};
use crate::{array, collective, ops};

/// One module per line.
pub(crate) fn all() -> [&'static Module; 28] {
    [
        &array::cuda::MODULE,
        &ops::elementwise::cuda::MODULE,
        &ops::linear::cuda::MODULE,
        &ops::linear::gemm_decode::MODULE,
        &ops::linear::gemm_sm90::MODULE,
        &ops::norm::cuda::MODULE,
        &ops::embedding::cuda::MODULE,
        &ops::attention::cuda::GENERIC,
        &ops::attention::cuda::single::SINGLE,
        &ops::attention::cuda::FAST,
        &ops::cross_entropy::cuda::MODULE,
        &ops::softmax::cuda::MODULE,
        &ops::glu::cuda::MODULE,
        &ops::pool::cuda::MODULE,
        &ops::convolution::cuda::MODULE,
        &ops::ssru::cuda::MODULE,
        &ops::batch_norm::cuda::MODULE,
        &ops::recurrent::cuda::GENERIC,
        &ops::recurrent::cuda::FAST,
        &ops::attention_rnn::cuda::ATTEND,
        &ops::attention_rnn::cuda::GENERIC,
        &ops::attention_rnn::cuda::FAST,
        &ops::adam::cuda::MODULE,
        &ops::moving_average::cuda::MODULE,
        &ops::cached_attention::cuda::MODULE,
        &ops::top_k::cuda::MODULE,
        &collective::gpus::MODULE,
        &cuda::UPLOAD_RING,
    ]
}
