//! The element types of tensors, their names, and exact conversion to and from `f64`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::float_format::FloatFormat;

/// The type of a tensor's elements. Names are NumPy's (and `ml_dtypes`') in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
#[allow(missing_docs, reason = "the variants are their own names")]
pub enum DType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F8E4M3FN,
    F8E5M2,
    F16,
    BF16,
    F32,
    F64,
}

/// The arithmetic family of a dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DTypeKind {
    /// One byte, 0 or 1.
    Bool,
    Unsigned,
    /// Two's-complement integers.
    Signed,
    Float,
}

/// A dtype name that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown dtype '{name}'; known dtypes: {}", DType::ALL.map(DType::name).join(", "))]
pub struct UnknownDType {
    pub name: String,
}

impl DType {
    /// Every dtype, integers first, in ascending size.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F8E4M3FN => "float8_e4m3fn",
            DType::F8E5M2 => "float8_e5m2",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::F8E4M3FN | DType::F8E5M2 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    pub const fn kind(self) -> DTypeKind {
        match self {
            DType::Bool => DTypeKind::Bool,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => DTypeKind::Unsigned,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => DTypeKind::Signed,
            _ => DTypeKind::Float,
        }
    }

    /// Whether elements are floating point.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), DTypeKind::Float)
    }

    /// The bit layout of a floating-point dtype.
    pub const fn float_format(self) -> Option<&'static FloatFormat> {
        match self {
            DType::F8E4M3FN => Some(&FloatFormat::E4M3FN),
            DType::F8E5M2 => Some(&FloatFormat::E5M2),
            DType::F16 => Some(&FloatFormat::F16),
            DType::BF16 => Some(&FloatFormat::BF16),
            DType::F32 => Some(&FloatFormat::F32),
            DType::F64 => Some(&FloatFormat::F64),
            _ => None,
        }
    }

    /// The range of an integer dtype (and 0..=1 for bool).
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        let bits = 8 * self.size() as u32;
        match self.kind() {
            DTypeKind::Bool => Some((0, 1)),
            DTypeKind::Unsigned => Some((0, (1i128 << bits) - 1)),
            DTypeKind::Signed => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
            DTypeKind::Float => None,
        }
    }

    /// The value of an element's bit pattern. 64-bit integers beyond 2^53 round to nearest.
    pub fn decode(self, bits: u64) -> f64 {
        match self {
            DType::Bool => f64::from(u8::from(bits & 0xff != 0)),
            DType::U8 => bits as u8 as f64,
            DType::U16 => bits as u16 as f64,
            DType::U32 => bits as u32 as f64,
            DType::U64 => bits as f64,
            DType::I8 => bits as i8 as f64,
            DType::I16 => bits as i16 as f64,
            DType::I32 => bits as i32 as f64,
            DType::I64 => bits as i64 as f64,
            DType::F8E4M3FN => FloatFormat::E4M3FN.decode(bits),
            DType::F8E5M2 => FloatFormat::E5M2.decode(bits),
            DType::F16 => FloatFormat::F16.decode(bits),
            DType::BF16 => f64::from(f32::from_bits((bits as u32) << 16)),
            DType::F32 => f64::from(f32::from_bits(bits as u32)),
            DType::F64 => f64::from_bits(bits),
        }
    }

    /// The bit pattern nearest to a value: round to nearest, ties to even; integers saturate, and
    /// a NaN becomes integer 0.
    pub fn encode(self, value: f64) -> u64 {
        match self {
            DType::Bool => u64::from(value != 0.0),
            DType::U8 => u64::from(value.round_ties_even() as u8),
            DType::U16 => u64::from(value.round_ties_even() as u16),
            DType::U32 => u64::from(value.round_ties_even() as u32),
            DType::U64 => value.round_ties_even() as u64,
            DType::I8 => u64::from(value.round_ties_even() as i8 as u8),
            DType::I16 => u64::from(value.round_ties_even() as i16 as u16),
            DType::I32 => u64::from(value.round_ties_even() as i32 as u32),
            DType::I64 => value.round_ties_even() as i64 as u64,
            DType::F8E4M3FN => FloatFormat::E4M3FN.encode(value),
            DType::F8E5M2 => FloatFormat::E5M2.encode(value),
            DType::F16 => FloatFormat::F16.encode(value),
            DType::BF16 => FloatFormat::BF16.encode(value),
            DType::F32 => u64::from((value as f32).to_bits()),
            DType::F64 => value.to_bits(),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    /// Accepts the NumPy name and the spellings of PyTorch, JAX, Triton and Rust.
    fn from_str(name: &str) -> Result<Self, UnknownDType> {
        let lower = name.trim().to_ascii_lowercase();
        let plain = ["torch.", "jnp.", "np.", "numpy.", "tf.", "tl.", "ml_dtypes."]
            .iter()
            .find_map(|prefix| lower.strip_prefix(prefix))
            .unwrap_or(&lower);
        let dtype = match plain {
            "bool" | "bool_" | "i1" | "int1" => DType::Bool,
            "uint8" | "u8" | "byte" => DType::U8,
            "uint16" | "u16" => DType::U16,
            "uint32" | "u32" => DType::U32,
            "uint64" | "u64" => DType::U64,
            "int8" | "i8" | "char" => DType::I8,
            "int16" | "i16" | "short" => DType::I16,
            "int32" | "i32" | "int" => DType::I32,
            "int64" | "i64" | "long" => DType::I64,
            "float8_e4m3fn" | "f8e4m3fn" | "fp8e4nv" | "float8e4nv" | "e4m3" | "fp8_e4m3" => DType::F8E4M3FN,
            "float8_e5m2" | "f8e5m2" | "fp8e5" | "float8e5" | "e5m2" | "fp8_e5m2" => DType::F8E5M2,
            "float16" | "f16" | "fp16" | "half" => DType::F16,
            "bfloat16" | "bf16" => DType::BF16,
            "float32" | "f32" | "fp32" | "float" | "single" => DType::F32,
            "float64" | "f64" | "fp64" | "double" => DType::F64,
            _ => return Err(UnknownDType { name: name.to_string() }),
        };
        Ok(dtype)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for DType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DType".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": DType::ALL.map(DType::name) })
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::named::deserialize(deserializer, "the name of a dtype")
    }
}

impl From<DType> for String {
    fn from(dtype: DType) -> String {
        dtype.name().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_other_spellings_are_accepted() {
        for dtype in DType::ALL {
            assert_eq!(dtype.name().parse::<DType>(), Ok(dtype));
        }
        assert_eq!("torch.bfloat16".parse::<DType>(), Ok(DType::BF16));
        assert_eq!("FP16".parse::<DType>(), Ok(DType::F16));
        let error = "float99".parse::<DType>().unwrap_err().to_string();
        assert!(error.contains("float99") && error.contains("float32"), "{error}");
    }

    #[test]
    fn integers_saturate_instead_of_wrapping() {
        assert_eq!(DType::I8.encode(1e9), 127);
        assert_eq!(DType::U8.encode(-3.0), 0);
        assert_eq!(DType::I32.encode(f64::NAN), 0);
        assert_eq!(DType::I16.decode(DType::I16.encode(-5.5)), -6.0);
    }
}
