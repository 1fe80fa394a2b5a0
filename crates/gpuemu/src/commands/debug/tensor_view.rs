//! Tensors as NumPy prints them: rows in brackets, the middle of long dims left out.

use gpuemu_tensor::dtype::DTypeKind;
use gpuemu_tensor::{DType, Tensor};

/// Elements above which the middle is left out.
const MOST_ELEMENTS: usize = 1000;

/// Places shown at both ends of a dim whose middle is left out.
const EDGE: usize = 3;

/// Letters of a line.
const LINE: usize = 100;

/// Magnitude from which floats are written with an exponent.
const POSITIONAL: f64 = 1e16;

/// Significant digits of float64 numbers in rows: all seventeen of them would hide what matters.
const ROW_DIGITS: usize = 8;

/// Digits of a fraction with 16 bits or fewer that are shown in any case.
const NARROW_DIGITS: usize = 4;

/// What stands for the places left out.
const LEFT_OUT: &str = "...";

/// The elements of a tensor.
pub fn text(tensor: &Tensor) -> String {
    if tensor.is_empty() {
        return "[]\n".to_string();
    }
    let mut view = View { tensor, elided: tensor.len() > MOST_ELEMENTS, width: 0, text: String::new() };
    let mut width = 0;
    view.visit(0, tensor.offset() as isize, &mut |element| width = width.max(element.chars().count()));
    view.width = width;
    view.write(0, tensor.offset() as isize);
    view.text.push('\n');
    view.text
}

struct View<'a> {
    tensor: &'a Tensor,
    elided: bool,
    width: usize,
    text: String,
}

impl View<'_> {
    /// The places of a dim that are shown; `None` stands for those left out.
    fn shown(&self, dimension: usize) -> Vec<Option<usize>> {
        let size = self.tensor.shape()[dimension];
        if !self.elided || size <= 2 * EDGE {
            return (0..size).map(Some).collect();
        }
        (0..EDGE).map(Some).chain([None]).chain((size - EDGE..size).map(Some)).collect()
    }

    /// Calls `see` with every element that is shown.
    fn visit(&self, dimension: usize, position: isize, see: &mut impl FnMut(&str)) {
        if dimension == self.tensor.shape().len() {
            return see(&self.element(position));
        }
        for place in self.shown(dimension).into_iter().flatten() {
            self.visit(dimension + 1, self.moved(position, dimension, place), see);
        }
    }

    fn moved(&self, position: isize, dimension: usize, place: usize) -> isize {
        position + place as isize * self.tensor.strides()[dimension]
    }

    fn element(&self, position: isize) -> String {
        let (dtype, bits) = (self.tensor.dtype(), bits_at(self.tensor, position as usize));
        let value = dtype.decode(bits);
        if dtype != DType::F64 || self.tensor.shape().is_empty() || !value.is_finite() {
            return element(dtype, bits);
        }
        let rounded = format!("{value:.digits$e}", digits = ROW_DIGITS - 1);
        float(dtype, rounded.parse().unwrap_or(value))
    }

    fn write(&mut self, dimension: usize, position: isize) {
        let rank = self.tensor.shape().len();
        if dimension == rank {
            let element = self.element(position);
            self.text.push_str(&element);
            return;
        }
        self.text.push('[');
        if dimension + 1 == rank {
            self.write_row(dimension, position);
        } else {
            for (count, place) in self.shown(dimension).into_iter().enumerate() {
                if count > 0 {
                    // Blocks of more dims stand further apart.
                    self.text.push_str(&"\n".repeat(rank - dimension - 1));
                    self.text.push_str(&" ".repeat(dimension + 1));
                }
                match place {
                    Some(place) => self.write(dimension + 1, self.moved(position, dimension, place)),
                    None => self.text.push_str(LEFT_OUT),
                }
            }
        }
        self.text.push(']');
    }

    fn write_row(&mut self, dimension: usize, position: isize) {
        let indent = dimension + 1;
        let mut column = indent;
        for (count, place) in self.shown(dimension).into_iter().enumerate() {
            let word = match place {
                Some(place) => {
                    let element = self.element(self.moved(position, dimension, place));
                    format!("{element:>width$}", width = self.width)
                }
                None => LEFT_OUT.to_string(),
            };
            let length = word.chars().count();
            if count > 0 && column + 1 + length > LINE {
                self.text.push('\n');
                self.text.push_str(&" ".repeat(indent));
                column = indent;
            } else if count > 0 {
                self.text.push(' ');
                column += 1;
            }
            self.text.push_str(&word);
            column += length;
        }
    }
}

/// The bit pattern of the element at a place of the storage, which the tensor has made sure of.
pub fn bits_at(tensor: &Tensor, position: usize) -> u64 {
    let size = tensor.dtype().size();
    let bytes = tensor.storage().as_bytes().get(position * size..(position + 1) * size).unwrap_or_default();
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// An element, exactly: whole numbers in full, fractions in digits that stand for the same bits.
pub fn element(dtype: DType, bits: u64) -> String {
    match dtype.kind() {
        DTypeKind::Bool => if bits & 0xff != 0 { "True" } else { "False" }.to_string(),
        DTypeKind::Unsigned => bits.to_string(),
        DTypeKind::Signed => {
            // The upper bits of a narrow number are zero: they have to become its sign.
            let unused = 64 - 8 * dtype.size() as u32;
            ((bits << unused) as i64 >> unused).to_string()
        }
        DTypeKind::Float => float(dtype, dtype.decode(bits)),
    }
}

fn float(dtype: DType, value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan" } else { if value > 0.0 { "inf" } else { "-inf" } }.to_string();
    }
    if value.fract() == 0.0 && value.abs() < POSITIONAL {
        return format!("{value:?}");
    }
    let same = |text: &str| text.parse().is_ok_and(|read: f64| dtype.encode(read) == dtype.encode(value));
    // The fewest digits would do, but of 0.0625 in fp8 they make 0.06. Seventeen tell any two float64 numbers apart.
    let fewest = if dtype.size() < 4 { NARROW_DIGITS } else { 1 };
    let shortest = (fewest - 1..17).map(|digits| format!("{value:.digits$e}")).find(|text| same(text));
    let read: f64 = shortest.and_then(|text| text.parse().ok()).unwrap_or(value);
    if (1e-4..POSITIONAL).contains(&read.abs()) { format!("{read:?}") } else { format!("{read:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(dtype: DType, shape: &[usize], values: &[f64]) -> String {
        text(&Tensor::from_f64(dtype, shape.to_vec(), values).unwrap())
    }

    #[test]
    fn rows_are_aligned_and_blocks_apart() {
        assert_eq!(printed(DType::F32, &[2, 2], &[1.0, -0.5, 10.0, 0.1]), "[[ 1.0 -0.5]\n [10.0  0.1]]\n");
        let cube = printed(DType::I8, &[2, 2, 1], &[1.0, 2.0, 3.0, -4.0]);
        assert_eq!(cube, "[[[ 1]\n  [ 2]]\n\n [[ 3]\n  [-4]]]\n");
        assert_eq!(printed(DType::F64, &[], &[2.5]), "2.5\n");
        assert_eq!(printed(DType::F32, &[3, 0], &[]), "[]\n");
    }

    #[test]
    fn the_middle_of_a_long_dim_is_left_out_and_long_rows_are_broken() {
        let values: Vec<f64> = (0..2000).map(f64::from).collect();
        let text = printed(DType::I32, &[20, 100], &values);
        assert_eq!(text.lines().count(), 7);
        assert_eq!(text.lines().next(), Some("[[   0    1    2 ...   97   98   99]"));
        assert_eq!(text.lines().nth(3), Some(" ..."));
        let row = printed(DType::I32, &[60], &values[..60]);
        assert!(row.lines().count() > 1 && row.lines().all(|line| line.len() <= LINE + 1), "{row}");
    }

    #[test]
    fn every_dtype_is_shown_as_what_it_is() {
        assert_eq!(element(DType::I64, i64::MAX as u64), "9223372036854775807");
        assert_eq!(element(DType::U64, u64::MAX), "18446744073709551615");
        assert_eq!(element(DType::I16, 0xfffb), "-5");
        assert_eq!(element(DType::Bool, 1), "True");
        let shown = |dtype: DType, value: f64| element(dtype, dtype.encode(value));
        assert_eq!(shown(DType::F32, 0.1), "0.1");
        assert_eq!(shown(DType::F16, 0.1), "0.09998");
        assert_eq!(shown(DType::F16, 65504.0), "65504.0");
        assert_eq!(shown(DType::BF16, 1e38), "9.969e37");
        assert_eq!(shown(DType::F8E4M3FN, 448.0), "448.0");
        assert_eq!(shown(DType::F8E4M3FN, 0.0625), "0.0625");
        assert_eq!(shown(DType::F8E5M2, f64::INFINITY), "inf");
        assert_eq!(shown(DType::F8E4M3FN, f64::NAN), "nan");
        assert_eq!(shown(DType::F32, -0.0), "-0.0");
        assert_eq!(shown(DType::F64, 1.0 / 3.0), "0.3333333333333333");
        assert_eq!(shown(DType::F32, 1e-45), "1e-45");
    }

    #[test]
    fn rows_of_float64_are_rounded_and_a_single_one_is_not() {
        assert_eq!(printed(DType::F64, &[2], &[1.0 / 3.0, 1e-9 / 3.0]), "[   0.33333333 3.3333333e-10]\n");
        assert_eq!(printed(DType::F64, &[], &[1.0 / 3.0]), "0.3333333333333333\n");
    }

    #[test]
    fn what_is_shown_reads_back_as_the_same_bits() {
        for dtype in [DType::F8E4M3FN, DType::F8E5M2, DType::F16, DType::BF16] {
            for bits in 0..1u64 << (8 * dtype.size()) {
                let value = dtype.decode(bits);
                if value.is_finite() {
                    let read: f64 = element(dtype, bits).parse().unwrap();
                    assert_eq!(dtype.encode(read), dtype.encode(value), "{dtype} {bits:#x}");
                }
            }
        }
    }
}
