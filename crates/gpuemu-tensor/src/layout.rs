//! Memory layouts of inputs: executed, not only recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tensor::{contiguous_strides, scatter};
use crate::{DType, Storage, Tensor, TensorError};

/// How an input lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Row-major, no gaps.
    Contiguous,
    /// Rows start further apart than they are long.
    RowGap,
    /// Every other element along the last dim.
    ColumnStep,
    /// The last two dims swapped in memory.
    Transposed,
    /// The first dim has stride 0: one copy stands for all.
    Expanded,
    /// The data starts three elements into its storage.
    Offset,
}

/// What fills the gaps: every float format reads it as NaN, integers as −1.
pub const GAP_FILL: u8 = 0xff;

const OFFSET_ELEMENTS: usize = 3;
const ROW_GAP_ELEMENTS: usize = 5;

impl Layout {
    pub const ALL: [Layout; 6] =
        [Layout::Contiguous, Layout::RowGap, Layout::ColumnStep, Layout::Transposed, Layout::Expanded, Layout::Offset];

    /// The name used on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Contiguous => "contiguous",
            Layout::RowGap => "row_gap",
            Layout::ColumnStep => "column_step",
            Layout::Transposed => "transposed",
            Layout::Expanded => "expanded",
            Layout::Offset => "offset",
        }
    }

    /// The nearest layout that a shape can have: a vector has no rows to put a gap between.
    pub fn for_shape(self, shape: &[usize]) -> Layout {
        match (self, shape.len()) {
            (_, 0) => Layout::Contiguous,
            (Layout::RowGap | Layout::Transposed, 1) => Layout::ColumnStep,
            (Layout::Expanded, _) if shape[0] < 2 || shape.len() < 2 => Layout::Offset,
            _ => self,
        }
    }

    /// The shape of the values that are really stored: an expanded dim is stored once.
    pub fn stored_shape(self, shape: &[usize]) -> Vec<usize> {
        let mut stored = shape.to_vec();
        if self == Layout::Expanded
            && let Some(first) = stored.first_mut()
        {
            *first = (*first).min(1);
        }
        stored
    }

    /// Places row-major elements (of the stored shape) in memory laid out this way.
    pub fn place(self, dtype: DType, shape: &[usize], elements: &[u8]) -> Result<Tensor, TensorError> {
        let stored = self.stored_shape(shape);
        let rank = shape.len();
        let mut strides = contiguous_strides(&stored);
        let mut offset = 0;
        match self {
            Layout::Contiguous => return Tensor::contiguous(dtype, shape.to_vec(), elements),
            Layout::Offset => offset = OFFSET_ELEMENTS,
            Layout::ColumnStep => strides.iter_mut().for_each(|stride| *stride *= 2),
            Layout::RowGap => {
                let row = stored[rank - 1];
                let mut step = row + ROW_GAP_ELEMENTS;
                for dimension in (0..rank - 1).rev() {
                    strides[dimension] = step as isize;
                    step *= stored[dimension].max(1);
                }
            }
            Layout::Transposed => {
                let (rows, columns) = (stored[rank - 2], stored[rank - 1]);
                strides[rank - 2] = 1;
                strides[rank - 1] = rows.max(1) as isize;
                let mut step = rows.max(1) * columns.max(1);
                for dimension in (0..rank - 2).rev() {
                    strides[dimension] = step as isize;
                    step *= stored[dimension].max(1);
                }
            }
            Layout::Expanded => {}
        }
        let span = if stored.contains(&0) {
            0
        } else {
            1 + stored.iter().zip(&strides).map(|(size, stride)| (size - 1) * *stride as usize).sum::<usize>()
        };
        let mut storage = Storage::filled((offset + span) * dtype.size(), GAP_FILL);
        scatter(elements, dtype.size(), &stored, &strides, offset, storage.as_bytes_mut());
        if self == Layout::Expanded {
            strides[0] = 0;
        }
        Tensor::new(dtype, shape.to_vec(), strides, offset, storage)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Layout {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Layout".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Layout::ALL.map(Layout::name) })
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_holds_the_same_elements() {
        for shape in [vec![], vec![5], vec![1, 4], vec![3, 4], vec![2, 3, 4], vec![2, 0, 4], vec![2, 3, 1, 5]] {
            for layout in Layout::ALL.map(|layout| layout.for_shape(&shape)) {
                let stored = layout.stored_shape(&shape);
                let values: Vec<f64> = (0..stored.iter().product()).map(|value: usize| value as f64).collect();
                let elements = Tensor::from_f64(DType::F32, stored.clone(), &values).unwrap().to_contiguous_bytes();
                let tensor = layout.place(DType::F32, &shape, &elements).unwrap();
                let repeats = if stored == shape { 1 } else { shape[0] };
                assert_eq!(tensor.to_f64(), values.repeat(repeats), "{layout} {shape:?}");
                if layout != Layout::Contiguous && tensor.len() > 1 && layout != Layout::Offset && !shape.contains(&1) {
                    assert!(!tensor.is_contiguous(), "{layout} {shape:?}");
                }
            }
        }
    }
}
