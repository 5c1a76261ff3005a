//! Writes `model.bin`, version 6.

use std::io::{self, Write};

use super::{CODES, NEWEST};
use crate::store::formats::output_tensor::OutputTensor;

/// The contents of a `model.bin`.
pub(crate) struct Ctranslate2Contents {
    /// The kind of model, such as `TransformerSpec`.
    pub(crate) specification: &'static str,
    /// The revision of the specification.
    pub(crate) revision: u32,
    /// The variables.
    pub(crate) variables: Vec<OutputTensor>,
    /// Aliases: the alias, and the name of the variable.
    pub(crate) aliases: Vec<(String, String)>,
}

impl Ctranslate2Contents {
    /// The approximate number of bytes that [`Ctranslate2Contents::write`] writes.
    pub(crate) fn bytes(&self) -> u64 {
        self.variables.iter().map(OutputTensor::bytes).sum()
    }

    /// The first variable whose size does not fit the format's u32.
    pub(crate) fn first_too_large(&self) -> Option<&str> {
        let too_large = |variable: &&OutputTensor| u32::try_from(variable.bytes()).is_err();
        self.variables.iter().find(too_large).map(|variable| variable.name.as_str())
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&NEWEST.to_le_bytes())?;
        write_string(out, self.specification)?;
        out.write_all(&self.revision.to_le_bytes())?;
        write_u32(out, self.variables.len() as u64)?;
        for variable in &self.variables {
            write_string(out, &variable.name)?;
            out.write_all(&[variable.shape.len() as u8])?;
            for &dim in &variable.shape {
                write_u32(out, dim as u64)?;
            }
            let code = CODES.iter().position(|code| *code == variable.element());
            out.write_all(&[code.expect("a type of this format") as u8])?;
            write_u32(out, variable.bytes())?;
            variable.write_values(out)?;
        }
        write_u32(out, self.aliases.len() as u64)?;
        for (alias, variable) in &self.aliases {
            write_string(out, alias)?;
            write_string(out, variable)?;
        }
        Ok(())
    }
}

fn write_string(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let length = u16::try_from(text.len() + 1).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(text.as_bytes())?;
    out.write_all(&[0])
}

fn write_u32(out: &mut dyn Write, number: u64) -> io::Result<()> {
    out.write_all(&u32::try_from(number).map_err(io::Error::other)?.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::Ctranslate2Weights;
    use super::*;
    use crate::store::formats::output_tensor::TensorValues;

    #[test]
    fn written_variables_are_read_back() {
        let variable = |name: &str, shape: &[usize], values| OutputTensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            values,
        };
        let contents = Ctranslate2Contents {
            specification: "TransformerSpec",
            revision: 7,
            variables: vec![
                variable("a/weight", &[2, 3], TensorValues::F32(vec![1.0, -2.0, 3.5, -0.0, 5.0, f32::MIN])),
                variable("heads", &[], TensorValues::I16(300)),
                variable("flag", &[], TensorValues::I8(-1)),
            ],
            aliases: vec![("b/weight".to_owned(), "a/weight".to_owned())],
        };
        let mut bytes = Vec::new();
        contents.write(&mut bytes).expect("memory");
        let read = Ctranslate2Weights::read("model.bin", bytes.into()).expect("a whole file");
        assert_eq!((read.version, read.specification.as_str(), read.revision), (6, "TransformerSpec", 7));
        for name in ["a/weight", "b/weight"] {
            let tensor = read.tensors.get(name).expect("a variable");
            assert_eq!(tensor.shape(), [2, 3]);
            assert_eq!(
                tensor.values().iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
                [1.0_f32, -2.0, 3.5, -0.0, 5.0, f32::MIN].map(f32::to_bits)
            );
        }
        let number = |name: &str| read.tensors.get(name).expect("a number").scalar();
        assert_eq!((number("heads"), number("flag")), (Some(300.0), Some(-1.0)));
        assert_eq!(contents.first_too_large(), None);
    }
}
