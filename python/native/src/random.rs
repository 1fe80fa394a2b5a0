//! Random tensors, as the engine fills the inputs of its cases.

use gpuemu_engine::case::fill::fill_into;
use gpuemu_engine::case::values::{flag_recipe, recipe};
use gpuemu_model::Strategy;
use gpuemu_tensor::DType;
use numpy::PyArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::Memory;

/// Fills memory with the elements of the input `name` of the case `seed`.
#[pyfunction]
pub fn random_tensor(
    py: Python<'_>,
    memory: &Bound<'_, Memory>,
    dtype: &str,
    seed: u64,
    name: &str,
    strategy: &str,
) -> PyResult<()> {
    let wrong = |message: String| PyValueError::new_err(message);
    let dtype: DType = dtype.parse().map_err(|error| wrong(format!("{error}")))?;
    let strategy: Strategy = strategy.parse().map_err(|error| wrong(format!("{error}")))?;
    let recipe = match dtype {
        DType::Bool => flag_recipe(seed, name),
        _ => recipe(strategy.resolve(seed), dtype, seed, name),
    };
    let mut writable = memory.try_readwrite().map_err(|error| wrong(error.to_string()))?;
    let bytes = writable.as_slice_mut().map_err(|error| wrong(error.to_string()))?;
    py.detach(|| fill_into(dtype, &recipe, seed, name, bytes));
    Ok(())
}
