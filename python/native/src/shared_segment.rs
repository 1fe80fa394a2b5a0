//! Shared memory that tensors of a request are handed over in.

use std::sync::{Mutex, PoisonError};

use gpuemu_wire::shared_memory::Segment;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A segment of shared memory, made when it is first needed and used for many requests, one at a time.
#[pyclass(frozen, module = "gpuemu._native")]
pub struct SharedSegment {
    segment: Mutex<Option<Segment>>,
}

#[pymethods]
impl SharedSegment {
    #[new]
    fn new() -> Self {
        Self { segment: Mutex::new(None) }
    }

    /// Adds bytes and returns where they are: the segment's name, their offset and their number. `OSError` where
    /// there is no room.
    fn share(&self, py: Python<'_>, array: PyReadonlyArray1<'_, u8>) -> PyResult<(String, u64, u64)> {
        let bytes = contiguous(&array)?;
        // A process that was forked from the one that made the segment makes its own. The lock is never
        // held without the interpreter's, so no fork finds it taken.
        let kept = self.take().filter(Segment::is_own);
        let (segment, place) = py.detach(|| {
            let mut segment = kept.map_or_else(Segment::create, Ok)?;
            let place = segment.push(bytes)?;
            Ok::<_, std::io::Error>((segment, place))
        })?;
        *self.segment.lock().unwrap_or_else(PoisonError::into_inner) = Some(segment);
        Ok((place.name, place.offset, place.length))
    }

    /// Writes over everything from the start.
    fn clear(&self) {
        if let Some(segment) = self.segment.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            segment.clear();
        }
    }

    /// Gives the memory back.
    fn close(&self) {
        drop(self.take());
    }
}

impl SharedSegment {
    fn take(&self) -> Option<Segment> {
        self.segment.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The bytes of an array.
pub fn contiguous<'a>(array: &'a PyReadonlyArray1<'_, u8>) -> PyResult<&'a [u8]> {
    array.as_slice().map_err(|_| PyValueError::new_err("the array of bytes is not contiguous"))
}
