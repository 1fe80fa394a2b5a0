//! Arrays in files: NumPy's `.npy` format, read and written.

mod header;

use header::Header;
use thiserror::Error;

use crate::DType;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Why a file is no array that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NpyError {
    /// It is not of this format.
    #[error("it is no .npy file: it does not begin with \\x93NUMPY")]
    NotNpy,
    /// It ends too early.
    #[error("it is cut short: {has} bytes where {needs} are needed")]
    Truncated {
        /// Bytes that there are.
        has: usize,
        /// Bytes that there should be.
        needs: usize,
    },
    /// It has more data than its shape says.
    #[error("it has {has} bytes of elements, but its shape {shape:?} of '{descriptor}' has {needs}")]
    TooLong {
        /// Bytes that there are.
        has: usize,
        /// Bytes that there should be.
        needs: usize,
        shape: Vec<usize>,
        /// The elements' type, as NumPy writes it.
        descriptor: String,
    },
    /// The version of the format is not known.
    #[error("it is of version {0}.{1} of the .npy format; 1.0, 2.0 and 3.0 are known")]
    Version(u8, u8),
    /// The header cannot be read.
    #[error("its header cannot be read: {0}")]
    Header(String),
    /// The elements are not plain little-endian numbers.
    #[error("its elements are '{0}'; little-endian numbers, booleans and raw bytes can be read")]
    Elements(String),
    /// The elements are not in the order of C.
    #[error("it is in Fortran order; save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// The elements are of another type than asked for.
    #[error("its elements are '{descriptor}', which is not {wanted}; convert it, or name the dtype that it has")]
    OtherType {
        /// The type in the file, as NumPy writes it.
        descriptor: String,
        wanted: DType,
    },
}

/// An array, as a file holds it, in the order of C.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Npy<'a> {
    /// The kind of the elements, a letter of NumPy's: `f`, `i`, `u`, `b` or `V`.
    pub kind: char,
    pub element_bytes: usize,
    pub shape: Vec<usize>,
    pub data: &'a [u8],
}

impl<'a> Npy<'a> {
    /// Reads the bytes of a file.
    pub fn read(bytes: &'a [u8]) -> Result<Self, NpyError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(NpyError::NotNpy) };
        let short = |needs: usize| NpyError::Truncated { has: bytes.len(), needs };
        let (major, minor) = match rest {
            [major, minor, ..] => (*major, *minor),
            _ => return Err(short(MAGIC.len() + 2)),
        };
        // The length of the header has two bytes in the first version and four since.
        let width = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => return Err(NpyError::Version(major, minor)),
        };
        let start = MAGIC.len() + 2 + width;
        let length = bytes.get(MAGIC.len() + 2..start).ok_or_else(|| short(start))?;
        let length = length.iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte));
        let end = start.saturating_add(length);
        let text = bytes.get(start..end).ok_or_else(|| short(end))?;
        let text = std::str::from_utf8(text).map_err(|_| NpyError::Header("it is not text".to_string()))?;
        let header = Header::read(text)?;
        let (kind, element_bytes) = header.elements()?;
        if header.fortran_order && header.shape.iter().filter(|size| **size != 1).count() > 1 {
            return Err(NpyError::FortranOrder);
        }
        let count = match header.shape.contains(&0) {
            true => Some(0),
            false => header.shape.iter().try_fold(element_bytes, |count, size| count.checked_mul(*size)),
        };
        let needs = count.ok_or_else(|| NpyError::Header(format!("the shape {:?} is too large", header.shape)))?;
        let data = bytes.get(end..).unwrap_or_default();
        if data.len() < needs {
            return Err(short(end.saturating_add(needs)));
        }
        if data.len() > needs {
            let (shape, descriptor) = (header.shape, header.descriptor.to_string());
            return Err(NpyError::TooLong { has: data.len(), needs, shape, descriptor });
        }
        Ok(Self { kind, element_bytes, shape: header.shape, data })
    }

    /// The elements as bit patterns of a dtype. They are of that type in the file, or raw: NumPy has no name for
    /// `bfloat16` and the 8-bit floats, which are kept as unsigned integers or raw bytes.
    pub fn bits_of(&self, dtype: DType) -> Result<&'a [u8], NpyError> {
        let (_, kind, size) = descriptor(dtype);
        let same = self.kind == kind || matches!(self.kind, 'u' | 'V');
        if same && self.element_bytes == size {
            return Ok(self.data);
        }
        let descriptor = format!("{}{}", self.kind, self.element_bytes);
        Err(NpyError::OtherType { descriptor, wanted: dtype })
    }
}

/// A file's bytes. Types that NumPy has no name for are written as unsigned integers of their size.
pub fn write(dtype: DType, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let (order, kind, size) = descriptor(dtype);
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let comma = if sizes.len() == 1 { "," } else { "" };
    let mut header =
        format!("{{'descr': '{order}{kind}{size}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    // The elements begin at a multiple of 64, after a newline.
    let before = MAGIC.len() + 4;
    while !(before + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = Vec::with_capacity(before + header.len() + data.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(header.len().min(usize::from(u16::MAX)) as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn descriptor(dtype: DType) -> (char, char, usize) {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 'i',
        _ => 'u',
    };
    (if dtype.size() == 1 { '|' } else { '<' }, kind, dtype.size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for (dtype, shape) in
            [(DType::F32, vec![2, 3]), (DType::BF16, vec![5]), (DType::Bool, vec![]), (DType::I64, vec![0, 4])]
        {
            let count: usize = shape.iter().product();
            let data: Vec<u8> = (0..count * dtype.size()).map(|byte| byte as u8).collect();
            let file = write(dtype, &shape, &data);
            assert_eq!((file.len() - data.len()) % 64, 0, "{dtype}");
            let array = Npy::read(&file).unwrap();
            assert_eq!((array.shape.as_slice(), array.bits_of(dtype).unwrap()), (shape.as_slice(), data.as_slice()));
        }
    }

    #[test]
    fn malformed_files_are_refused_in_words() {
        let good = write(DType::F32, &[4], &[0; 16]);
        let message = |bytes: &[u8]| Npy::read(bytes).unwrap_err().to_string();
        assert!(message(b"").starts_with("it is no .npy file"), "{}", message(b""));
        assert!(message(b"PK\x03\x04").starts_with("it is no .npy file"));
        for length in 6..good.len() {
            let shown = message(&good[..length]);
            assert!(shown.contains(&format!("cut short: {length} bytes")), "{length}: {shown}");
        }
        let mut long = good.clone();
        long.push(0);
        assert_eq!(message(&long), "it has 17 bytes of elements, but its shape [4] of '<f4' has 16");
        let mut version = good.clone();
        version[6] = 9;
        assert_eq!(message(&version), "it is of version 9.0 of the .npy format; 1.0, 2.0 and 3.0 are known");
    }

    #[test]
    fn fortran_order_is_refused_where_it_matters() {
        let file = |shape: &str, bytes: usize| {
            let header = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}, }}\n");
            let mut file = [MAGIC, &[2, 0], &(header.len() as u32).to_le_bytes(), header.as_bytes()].concat();
            file.resize(file.len() + bytes, 0);
            file
        };
        assert_eq!(Npy::read(&file("(2, 3)", 24)), Err(NpyError::FortranOrder));
        assert_eq!(Npy::read(&file("(1, 6, 1)", 24)).map(|array| array.shape), Ok(vec![1, 6, 1]));
        assert!(matches!(Npy::read(&file(&format!("({}, 2)", usize::MAX), 0)), Err(NpyError::FortranOrder)));
    }

    #[test]
    fn a_shape_beyond_all_memory_is_refused() {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, 2), }}\n", usize::MAX);
        let file = [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        let message = Npy::read(&file).unwrap_err().to_string();
        assert!(message.contains("is too large"), "{message}");
    }

    #[test]
    fn a_shape_without_elements_is_read_whatever_its_other_sizes_are() {
        let shape = [usize::MAX, 3, 0];
        assert_eq!(Npy::read(&write(DType::F64, &shape, &[])).map(|array| array.shape), Ok(shape.to_vec()));
    }

    #[test]
    fn only_raw_elements_change_their_type() {
        let file = write(DType::F32, &[1], &[0; 4]);
        let error = Npy::read(&file).unwrap().bits_of(DType::I32).unwrap_err();
        let expected = "its elements are 'f4', which is not int32; convert it, or name the dtype that it has";
        assert_eq!(error.to_string(), expected);
        let raw = write(DType::U16, &[1], &[1, 2]);
        assert_eq!(Npy::read(&raw).unwrap().bits_of(DType::BF16), Ok([1, 2].as_slice()));
        assert!(Npy::read(&raw).unwrap().bits_of(DType::F32).is_err());
    }
}
