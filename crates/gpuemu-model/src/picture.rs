//! A picture of the errors of one output: where in the tensor they sit, how large they are, and what the worst of
//! them looks like. It is small whatever the size of the tensor.

use gpuemu_tensor::DType;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::number_text;
use crate::schema::JsonSchema;

/// The error of an element, or the gravest of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ElementError {
    /// Nothing can be said, or nothing was to be said.
    NotJudged,
    /// A share of what is allowed: above 1 it is wrong, infinite where nothing is allowed.
    Share(f64),
    /// NaN or an infinity where it does not belong, or missing where it does.
    Special,
}

impl ElementError {
    /// Whether the element is wrong.
    pub fn is_wrong(self) -> bool {
        match self {
            Self::NotJudged => false,
            Self::Share(share) => share > 1.0,
            Self::Special => true,
        }
    }

    /// The graver of both.
    pub fn join(self, other: Self) -> Self {
        if other.exceeds(self) { other } else { self }
    }

    /// Whether it is graver than another.
    pub fn exceeds(self, other: Self) -> bool {
        match (self, other) {
            (Self::Share(mine), Self::Share(theirs)) => mine > theirs,
            (mine, theirs) => mine.rank() > theirs.rank(),
        }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::NotJudged => 0,
            Self::Share(_) => 1,
            Self::Special => 2,
        }
    }
}

/// A share is a number, infinite ones by name; NaN stands for a special value, null for what was not judged.
impl Serialize for ElementError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::NotJudged => serializer.serialize_unit(),
            Self::Share(share) => number_text::serialize(share, serializer),
            Self::Special => number_text::serialize(&f64::NAN, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ElementError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Element;
        impl Visitor<'_> for Element {
            type Value = ElementError;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a share, \"Infinity\", \"NaN\" for a special value, or null")
            }
            fn visit_unit<E: Error>(self) -> Result<ElementError, E> {
                Ok(ElementError::NotJudged)
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<ElementError, E> {
                Ok(ElementError::Share(value))
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<ElementError, E> {
                Ok(ElementError::Share(value as f64))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<ElementError, E> {
                match value {
                    "NaN" => Ok(ElementError::Special),
                    "Infinity" => Ok(ElementError::Share(f64::INFINITY)),
                    _ => Err(E::invalid_value(Unexpected::Str(value), &self)),
                }
            }
        }
        deserializer.deserialize_any(Element)
    }
}

/// The errors of one output of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorPicture {
    /// The output.
    pub tensor: String,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Elements that are wrong.
    pub mismatched: usize,
    /// Elements in all.
    pub elements: usize,
    /// Where they sit.
    pub map: HeatMap,
    /// The tile along the dim of the map's rows, where one shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_tile: Option<Tile>,
    /// The tile along the dim of the map's columns, where one shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_tile: Option<Tile>,
    /// How large they are.
    pub histogram: ErrorHistogram,
    /// How large they are by the index along each dim that has more than one.
    pub profiles: Vec<Profile>,
    /// The numbers around the worst of them.
    pub window: Window,
}

/// Errors over the last two dims, the gravest over all others. A cell stands for several elements where there are many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeatMap {
    /// Size of the last dim but one; 1 where there is none.
    pub rows: usize,
    /// Size of the last dim; 1 where there is none.
    pub columns: usize,
    /// Entries of the other dims; a cell shows the gravest.
    pub entries: usize,
    /// Rows of a cell.
    pub row_step: usize,
    /// Columns of a cell.
    pub column_step: usize,
    /// The gravest error of each cell, row by row.
    pub cells: Vec<ElementError>,
    /// What was returned as a multiple of what was expected, at the gravest element of each cell; NaN where it is right or
    /// there is no such number.
    #[serde(with = "number_text::list")]
    #[schemars(with = "Vec<number_text::NumberText>")]
    pub ratios: Vec<f64>,
}

impl HeatMap {
    /// Cells in a row.
    pub fn width(&self) -> usize {
        self.columns.div_ceil(self.column_step.max(1))
    }

    pub fn height(&self) -> usize {
        self.rows.div_ceil(self.row_step.max(1))
    }
}

/// The size of the pieces that a kernel works in, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tile {
    /// Elements along the dim.
    pub size: usize,
    /// What it was seen by.
    pub seen_by: TileEvidence,
}

/// What a tile was seen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TileEvidence {
    /// Every error lies in the last, partial tile.
    Tail,
    /// Errors begin and end at multiples of it.
    Edges,
    /// The smallest failing case is one element longer than a multiple of it, which passes.
    Neighbour,
}

/// Elements by their share of what is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorHistogram {
    /// Without any error beyond rounding.
    pub exact: usize,
    /// Powers of two that one bin spans. Every bin is wholly right or wholly wrong.
    pub powers: u32,
    /// The bins in order, empty ones between others included.
    pub bins: Vec<HistogramBin>,
    /// Wrong where nothing but the right answer is allowed.
    pub unbounded: usize,
    /// NaN or infinity where it does not belong, or missing.
    pub special: usize,
    /// Not judged.
    pub not_judged: usize,
}

/// The elements whose share lies below a power of two, and above the bin before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramBin {
    /// The share is at most 2 to the power of this.
    pub exponent: i32,
    /// How many.
    pub count: usize,
}

/// The gravest error by the index along one dim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// The dim, from 0.
    pub axis: usize,
    /// Its size.
    pub size: usize,
    /// Indices that one value stands for.
    pub step: usize,
    /// The gravest error of each.
    pub errors: Vec<ElementError>,
    /// Wrong elements of each.
    pub mismatched: Vec<usize>,
}

/// The elements around the worst one, in the last two dims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The worst element.
    pub worst: Vec<usize>,
    /// Index of the first row shown; 0 where the output has one dim.
    pub first_row: usize,
    /// Index of the first column shown.
    pub first_column: usize,
    /// The elements, row by row.
    pub rows: Vec<Vec<WindowElement>>,
}

/// One element of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowElement {
    /// What the kernel returned.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub actual: f64,
    /// What the reference says.
    #[serde(with = "number_text")]
    #[schemars(with = "number_text::NumberText")]
    pub expected: f64,
    /// Its error.
    pub error: ElementError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_values_weigh_most_and_what_was_not_judged_least() {
        let [none, small, large, special] = [
            ElementError::NotJudged,
            ElementError::Share(0.5),
            ElementError::Share(f64::INFINITY),
            ElementError::Special,
        ];
        assert_eq!(none.join(small), small);
        assert_eq!(large.join(small), large);
        assert_eq!(large.join(special).join(none), special);
        assert_eq!([none, small, large, special].map(ElementError::is_wrong), [false, false, true, true]);
        assert!(!ElementError::Share(1.0).is_wrong(), "all of what is allowed is allowed");
    }

    #[test]
    fn errors_travel_as_json() {
        let errors = vec![
            ElementError::NotJudged,
            ElementError::Share(0.0),
            ElementError::Share(2.5),
            ElementError::Share(f64::INFINITY),
            ElementError::Special,
        ];
        let text = serde_json::to_string(&errors).unwrap();
        assert_eq!(text, "[null,0.0,2.5,\"Infinity\",\"NaN\"]");
        assert_eq!(serde_json::from_str::<Vec<ElementError>>(&text).unwrap(), errors);
        assert_eq!(serde_json::from_str::<Vec<ElementError>>("[3]").unwrap(), [ElementError::Share(3.0)]);
        assert!(serde_json::from_str::<ElementError>("\"much\"").is_err());
    }
}
