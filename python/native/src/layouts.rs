//! Memory layouts, as the engine lays out the inputs of its cases.

use gpuemu_tensor::{DType, Layout};
use numpy::PyArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{HandedTensor, Memory, hand_over};

/// The names of the layouts.
#[pyfunction]
pub fn layout_names() -> Vec<&'static str> {
    Layout::ALL.map(Layout::name).to_vec()
}

/// Lays row-major elements out in memory. An expanded tensor keeps the first of its entries.
#[pyfunction]
pub fn lay_out<'py>(
    py: Python<'py>,
    layout: &str,
    dtype: &str,
    shape: Vec<usize>,
    elements: &Bound<'py, Memory>,
) -> PyResult<(&'static str, HandedTensor<'py>)> {
    let wrong = |message: String| PyValueError::new_err(message);
    let dtype: DType = dtype.parse().map_err(|error| wrong(format!("{error}")))?;
    let Some(layout) = Layout::ALL.into_iter().find(|known| known.name() == layout) else {
        return Err(wrong(format!("unknown layout '{layout}'; known: {}", Layout::ALL.map(Layout::name).join(", "))));
    };
    let layout = layout.for_shape(&shape);
    let stored: usize = layout.stored_shape(&shape).iter().product();
    let readable = elements.try_readonly().map_err(|error| wrong(error.to_string()))?;
    let bytes = readable.as_slice().map_err(|error| wrong(error.to_string()))?;
    let part = bytes.get(..stored * dtype.size()).ok_or_else(|| wrong("too few elements".to_string()))?;
    let tensor = layout.place(dtype, &shape, part).map_err(|error| wrong(error.to_string()))?;
    Ok((layout.name(), hand_over(py, &tensor)?))
}
