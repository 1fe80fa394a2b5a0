//! Tensors as memory that Python owns, and back.

use gpuemu_tensor::storage::ALIGNMENT;
use gpuemu_tensor::{DType, Storage, Tensor};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PySlice;

/// Bytes of memory as Python has them.
pub type Memory = PyArray1<u8>;

/// New memory that holds a copy of bytes, aligned as kernels expect it.
pub fn memory<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, Memory>> {
    let whole = Memory::zeros(py, bytes.len() + ALIGNMENT, false);
    let start = whole.data() as usize;
    let aligned = start.next_multiple_of(ALIGNMENT) - start;
    let slice = PySlice::new(py, aligned as isize, (aligned + bytes.len()) as isize, 1);
    let part = whole.as_any().get_item(slice)?.cast_into::<Memory>()?;
    fill(&part, bytes)?;
    Ok(part)
}

/// Writes bytes over memory of the same length.
pub fn fill(memory: &Bound<'_, Memory>, bytes: &[u8]) -> PyResult<()> {
    if memory.len() != bytes.len() {
        return Err(PyValueError::new_err("memory of another length"));
    }
    // The user's code may hold the same memory; it does not run while these bytes are copied.
    let mut writable = memory.try_readwrite().map_err(|error| PyValueError::new_err(error.to_string()))?;
    writable.as_slice_mut().map_err(|error| PyValueError::new_err(error.to_string()))?.copy_from_slice(bytes);
    Ok(())
}

/// A copy of memory.
pub fn bytes_of(memory: &Bound<'_, Memory>) -> PyResult<Vec<u8>> {
    let readable = memory.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(readable.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))?.to_vec())
}

/// A tensor as Python hands it over: memory, dtype, shape, strides and offset in elements.
#[derive(FromPyObject)]
pub struct GivenTensor<'py>(Bound<'py, Memory>, String, Vec<usize>, Vec<isize>, usize);

impl GivenTensor<'_> {
    /// A copy that belongs to the engine.
    pub fn tensor(&self) -> PyResult<Tensor> {
        let Self(memory, dtype, shape, strides, offset) = self;
        let dtype: DType = dtype.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        let readable = memory.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let bytes = readable.as_slice().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let storage = Storage::copy_of(bytes);
        Tensor::new(dtype, shape.clone(), strides.clone(), *offset, storage)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// A tensor for Python: memory of its own, dtype, shape, strides and offset in elements.
pub type HandedTensor<'py> = (Bound<'py, Memory>, &'static str, Vec<usize>, Vec<isize>, usize);

/// A tensor in memory that Python owns.
pub fn hand_over<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<HandedTensor<'py>> {
    let memory = memory(py, tensor.storage().as_bytes())?;
    Ok((memory, tensor.dtype().name(), tensor.shape().to_vec(), tensor.strides().to_vec(), tensor.offset()))
}
