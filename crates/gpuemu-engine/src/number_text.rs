//! Numbers in JSON: NaN and infinities as strings, which plain JSON cannot write.

use serde::Serializer;

/// Writes a number, or its name where JSON has none for it.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else if value.is_nan() {
        serializer.serialize_str("NaN")
    } else {
        serializer.serialize_str(if *value > 0.0 { "Infinity" } else { "-Infinity" })
    }
}
