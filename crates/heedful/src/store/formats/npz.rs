//! NumPy's `.npz`: a zip with a `.npy` file for each array.
//!
//! ```text
//! \x93NUMPY · u8 major, u8 minor · u16 (from 2: u32) length · {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } · data
//! ```

use super::cursor::Cursor;
use super::tensors::{ElementType, Order};
use super::zip::Archive;
use super::{FileBytes, ForeignTensor, FormatError, TensorSet};

const MAGIC: &[u8] = b"\x93NUMPY";
const SUFFIX: &str = ".npy";

/// The arrays of an archive; other members are ignored.
pub fn read(archive: &Archive) -> Result<TensorSet, FormatError> {
    let mut tensors = TensorSet::new(archive.file());
    for member in archive.names() {
        let Some(name) = member.strip_suffix(SUFFIX) else { continue };
        let Some(bytes) = archive.read(member)? else { continue };
        tensors.insert(name, array(&format!("{}:{member}", archive.file()), &bytes)?)?;
    }
    Ok(tensors)
}

/// One `.npy` file.
fn array(file: &str, bytes: &FileBytes) -> Result<ForeignTensor, FormatError> {
    let mut cursor = Cursor::new(file, bytes);
    if cursor.take(MAGIC.len() as u64, "the beginning of an array")? != MAGIC {
        return Err(FormatError::damaged(file, "byte 0", "it is not a NumPy array"));
    }
    let major = cursor.u8("the version")?;
    cursor.u8("the version")?;
    let length = match major {
        1 => u64::from(cursor.u16("the header's length")?),
        _ => u64::from(cursor.u32("the header's length")?),
    };
    let header = cursor.take(length, "the header")?;
    let header =
        Header::parse(header).map_err(|problem| FormatError::damaged(file, "its header", problem))?;
    let element = element(&header.type_name).ok_or_else(|| {
        let remedy = "Save it with little-endian floats or integers: `array.astype('<f4')`";
        FormatError::unsupported(file, format!("values of the type {:?}", header.type_name), remedy)
    })?;
    let data = bytes.slice(cursor.at()..bytes.len());
    let axes = header.shape.len();
    let tensor = ForeignTensor::new(header.shape, element, data)
        .map_err(|problem| FormatError::damaged(file, format!("byte {}", cursor.at()), problem))?;
    match (header.order, axes) {
        (Order::ColumnMajor, 2) => Ok(tensor.ordered(Order::ColumnMajor)),
        (Order::ColumnMajor, 3..) => {
            let remedy = "Save it with `numpy.ascontiguousarray`";
            Err(FormatError::unsupported(file, format!("{axes} axes in Fortran's order"), remedy))
        }
        _ => Ok(tensor),
    }
}

fn element(name: &str) -> Option<ElementType> {
    Some(match name {
        "<f4" => ElementType::F32,
        "<f8" => ElementType::F64,
        "<f2" => ElementType::F16,
        "|i1" => ElementType::I8,
        "<i2" => ElementType::I16,
        "<i4" => ElementType::I32,
        "<i8" => ElementType::I64,
        "|u1" | "|b1" => ElementType::U8,
        _ => return None,
    })
}

struct Header {
    type_name: String,
    order: Order,
    shape: Vec<usize>,
}

impl Header {
    /// Parses the three values of the Python dictionary that NumPy writes, in any order.
    fn parse(header: &[u8]) -> Result<Header, String> {
        let text = str::from_utf8(header).map_err(|_| "it is not UTF-8".to_owned())?;
        let value = |key: &str| {
            let (_, rest) =
                text.split_once(&format!("'{key}':")).ok_or_else(|| format!("it has no '{key}'"))?;
            Ok::<&str, String>(rest.trim_start())
        };
        let type_name = value("descr")?.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (type_name, _) = type_name.ok_or("its 'descr' is not a simple type")?;
        let order = match value("fortran_order")? {
            rest if rest.starts_with("False") => Order::RowMajor,
            rest if rest.starts_with("True") => Order::ColumnMajor,
            _ => return Err("its 'fortran_order' is neither True nor False".to_owned()),
        };
        let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let (shape, _) = shape.ok_or("its 'shape' is not a list of numbers")?;
        let dims = shape.split(',').map(str::trim).filter(|dim| !dim.is_empty());
        let shape = dims.map(|dim| dim.trim_end_matches('L').parse()).collect::<Result<_, _>>();
        let shape = shape.map_err(|_| "its 'shape' is not a list of numbers".to_owned())?;
        Ok(Header { type_name: type_name.to_owned(), order, shape })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::zip::tests::written as zip;
    use super::*;

    /// An array as NumPy writes it.
    pub(in crate::store::formats) fn array(description: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{{description}, }}\n");
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn described(kind: &str, order: &str, shape: &str) -> String {
        format!("'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}")
    }

    fn one(bytes: &[u8], method: u16) -> Result<ForeignTensor, FormatError> {
        let archive = Archive::new("some.npz", zip(&[("x.npy", bytes), ("notes", b"")], method).into())?;
        read(&archive)?.get("x").cloned()
    }

    #[test]
    fn arrays_are_read_in_both_orders() {
        let bytes: Vec<u8> = (1..=6).flat_map(|value| (value as f32).to_le_bytes()).collect();
        for method in [0, 8] {
            let rows = one(&array(&described("<f4", "False", "(2, 3)"), &bytes), method).expect("an array");
            assert_eq!((rows.shape(), rows.values()), (&[2, 3][..], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
            let columns = one(&array(&described("<f4", "True", "(2, 3)"), &bytes), method).expect("an array");
            assert_eq!(columns.values(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        }
        let text = one(&array(&described("|i1", "False", "(3,)"), b"abc"), 0).expect("an array");
        assert_eq!(text.bytes(), b"abc");
        assert_eq!(one(&array(&described("<i8", "False", "()"), &[5; 8]), 0).expect("one").count(), 1);
    }

    #[test]
    fn errors_name_the_member() {
        let refused = |bytes: &[u8]| one(bytes, 0).expect_err("a bad array").to_string();
        let good = array(&described("<f4", "False", "(2,)"), &[0; 8]);
        for end in 0..good.len() {
            assert!(refused(&good[..end]).contains("some.npz:x.npy"), "{end}");
        }
        assert!(refused(&array(&described(">f4", "False", "(1,)"), &[0; 4])).contains("\">f4\""));
        assert!(refused(&array(&described("<f4", "True", "(1, 1, 1)"), &[0; 4])).contains("Fortran"));
        assert!(
            refused(&array(&described("<f4", "False", "(9999999999999999999, 9)"), &[0; 4]))
                .contains("shape")
        );
        assert!(
            refused(&array(&described("<f4", "False", "(4294967296, 4294967296)"), &[]))
                .contains("does not fit")
        );
        assert!(refused(&array("'descr': '<f4'", &[])).contains("fortran_order"));
    }
}
