//! Writes `model.safetensors`.

use std::io::{self, Write};

use safetensors::Dtype;
use safetensors::tensor::TensorInfo;

use crate::store::formats::ElementType;
use crate::store::formats::output_tensor::OutputTensor;
use crate::store::weights::{Metadata, header};

/// The approximate number of bytes that [`write()`] writes.
pub(crate) fn bytes(tensors: &[OutputTensor]) -> u64 {
    tensors.iter().map(OutputTensor::bytes).sum()
}

/// Writes a file with these tensors.
pub(crate) fn write(out: &mut dyn Write, tensors: &[OutputTensor]) -> io::Result<()> {
    let mut end = 0;
    let infos: Vec<(String, TensorInfo)> = tensors
        .iter()
        .map(|tensor| {
            let start = end;
            end += tensor.bytes() as usize;
            let (dtype, shape) = (dtype(tensor.element()), tensor.shape.clone());
            (tensor.name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) })
        })
        .collect();
    // transformers requires the key `format`.
    let metadata = Metadata::from([("format".to_owned(), "pt".to_owned())]);
    out.write_all(&header(&metadata, &infos))?;
    tensors.iter().try_for_each(|tensor| tensor.write_values(out))
}

fn dtype(element: ElementType) -> Dtype {
    match element {
        ElementType::I8 => Dtype::I8,
        ElementType::I16 => Dtype::I16,
        _ => Dtype::F32,
    }
}
