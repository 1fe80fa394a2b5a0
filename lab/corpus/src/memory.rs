//! Loads and stores as a kernel makes them: by position in a buffer's memory, guard bands within
//! reach, everything beyond an illegal address.

use gpuemu_engine::runner::{Buffer, RunnerError};
use gpuemu_tensor::DType;

use crate::real::Real;

/// Loads the element at a position.
#[inline]
pub fn load<R: Real>(buffer: &Buffer, position: isize) -> Result<R, RunnerError> {
    let size = buffer.dtype().size();
    let start = position.wrapping_mul(size as isize);
    let bytes = usize::try_from(start).ok().and_then(|start| buffer.memory().get(start..start + size));
    let bytes = bytes.ok_or_else(|| illegal("load", position, buffer))?;
    let value = match *bytes {
        [a, b, c, d] if buffer.dtype() == DType::F32 => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            buffer.dtype().decode(u64::from_le_bytes(word))
        }
    };
    Ok(R::new(value))
}

/// Stores an element, rounded to the buffer's dtype.
#[inline]
pub fn store<R: Real>(buffer: &mut Buffer, position: isize, value: R) -> Result<(), RunnerError> {
    let size = buffer.dtype().size();
    let bits = buffer.dtype().encode(value.value());
    let start = position.wrapping_mul(size as isize);
    let Some(bytes) = usize::try_from(start).ok().and_then(|start| buffer.memory_mut().get_mut(start..start + size))
    else {
        return Err(illegal("store", position, buffer));
    };
    bytes.copy_from_slice(&bits.to_le_bytes()[..size]);
    Ok(())
}

fn illegal(access: &str, position: isize, buffer: &Buffer) -> RunnerError {
    let distance = position - buffer.offset() as isize;
    RunnerError::IllegalAddress(format!("{access} at element {distance} of a buffer of shape {:?}", buffer.shape()))
}

/// Positions of all elements in row-major order.
pub fn positions(buffer: &Buffer) -> Vec<isize> {
    let mut positions = Vec::with_capacity(buffer.shape().iter().product());
    let visit = |position: usize| positions.push(position as isize);
    gpuemu_tensor::tensor::for_each_position(buffer.shape(), buffer.strides(), buffer.offset(), visit);
    positions
}

/// The rows of a tensor along its last dim.
pub struct Rows {
    /// Position of each row's first element.
    pub starts: Vec<isize>,
    /// Elements of a row.
    pub width: usize,
    /// Distance between a row's elements.
    pub step: isize,
}

impl Rows {
    /// The rows of a buffer. A scalar is one row of one.
    pub fn of(buffer: &Buffer) -> Self {
        let Some((&width, outer)) = buffer.shape().split_last() else {
            return Self { starts: vec![buffer.offset() as isize], width: 1, step: 1 };
        };
        let mut starts = Vec::with_capacity(outer.iter().product());
        let strides = &buffer.strides()[..outer.len()];
        let visit = |position: usize| starts.push(position as isize);
        gpuemu_tensor::tensor::for_each_position(outer, strides, buffer.offset(), visit);
        Self { starts, width, step: buffer.strides()[outer.len()] }
    }

    /// The position of an element, also beyond the end of the row.
    pub fn at(&self, row: usize, column: usize) -> isize {
        self.starts[row] + column as isize * self.step
    }
}
