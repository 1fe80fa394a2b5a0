//! Numbers of a launch table, as the bytes of a kernel's parameters.

use gpuemu_config::expression::Value;
use gpuemu_ptx::syntax::ScalarType;
use gpuemu_tensor::DType;

use crate::execution::program::Parameter;

/// The bytes of a number for a parameter. The parameter's type decides; what it cannot hold exactly, or would turn into
/// something else, is refused in words. Floats may be rounded to the parameter's precision.
pub fn parameter_bytes(parameter: &Parameter, value: &Value) -> Result<Vec<u8>, String> {
    use ScalarType::*;
    let refused =
        |why: &str| Err(format!("{value} cannot be given for {} ({}): {why}", parameter.name, parameter.scalar));
    if parameter.scalar.bytes() != Some(parameter.bytes) {
        return refused("it is a structure or an array");
    }
    let float = match parameter.scalar {
        F16 => Some(DType::F16),
        Bf16 => Some(DType::BF16),
        F32 => Some(DType::F32),
        F64 => Some(DType::F64),
        // Untyped bits hold whatever the kernel takes them for: a float of their size, if they are given one.
        B32 if matches!(value, Value::Float(_)) => Some(DType::F32),
        B64 if matches!(value, Value::Float(_)) => Some(DType::F64),
        _ => None,
    };
    let bits = match (value, float) {
        (Value::Float(number), Some(dtype)) => dtype.encode(*number),
        (Value::Integer(number), Some(dtype)) => {
            let bits = dtype.encode(*number as f64);
            if dtype.decode(bits) as i128 != i128::from(*number) {
                return refused("it is not exact there");
            }
            bits
        }
        (Value::Boolean(truth), None) => u64::from(*truth),
        (Value::Integer(number), None) => {
            let bits = 8 * parameter.bytes.min(8);
            let signed = matches!(parameter.scalar, S8 | S16 | S32 | S64);
            // Signed numbers are passed in unsigned parameters too: compilers declare both the same.
            let least = -(1i128 << (bits - 1));
            let most = if signed { (1i128 << (bits - 1)) - 1 } else { (1i128 << bits) - 1 };
            if !(least..=most).contains(&i128::from(*number)) {
                return refused("it does not fit");
            }
            number.cast_unsigned()
        }
        (Value::Float(_), None) => return refused("it is a whole number there"),
        _ => return refused("it is not a number"),
    };
    let bytes = bits.to_le_bytes();
    Ok(bytes.into_iter().chain(std::iter::repeat(0)).take(parameter.bytes as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(scalar: ScalarType, value: Value) -> Result<Vec<u8>, String> {
        let parameter =
            Parameter { name: "p".to_string(), bytes: scalar.bytes().unwrap_or_default(), scalar, offset: 0 };
        parameter_bytes(&parameter, &value)
    }

    #[test]
    fn the_type_of_the_parameter_decides() {
        assert_eq!(bytes(ScalarType::U32, Value::Integer(781)), Ok(vec![13, 3, 0, 0]));
        assert_eq!(bytes(ScalarType::U32, Value::Integer(-1)), Ok(vec![255; 4]));
        assert_eq!(bytes(ScalarType::U64, Value::Integer(-1)), Ok(vec![255; 8]));
        assert_eq!(bytes(ScalarType::F32, Value::Float(0.5)), Ok(0.5f32.to_le_bytes().to_vec()));
        assert_eq!(bytes(ScalarType::F32, Value::Integer(3)), Ok(3f32.to_le_bytes().to_vec()));
        assert_eq!(bytes(ScalarType::B32, Value::Float(0.5)), Ok(0.5f32.to_le_bytes().to_vec()));
        assert_eq!(bytes(ScalarType::U8, Value::Boolean(true)), Ok(vec![1]));
    }

    #[test]
    fn what_does_not_fit_is_refused_in_words() {
        let message = |scalar, value| bytes(scalar, value).unwrap_err();
        assert_eq!(
            message(ScalarType::S32, Value::Integer(1 << 31)),
            "2147483648 cannot be given for p (.s32): it does not fit"
        );
        assert!(message(ScalarType::U32, Value::Integer(1 << 32)).ends_with("it does not fit"));
        assert!(message(ScalarType::F32, Value::Integer((1 << 24) + 1)).ends_with("it is not exact there"));
        assert!(message(ScalarType::U32, Value::Float(0.5)).ends_with("it is a whole number there"));
        assert!(message(ScalarType::U32, Value::Text("x".to_string())).ends_with("it is not a number"));
        let structure = Parameter { name: "p".to_string(), bytes: 16, scalar: ScalarType::B8, offset: 0 };
        assert!(parameter_bytes(&structure, &Value::Integer(1)).is_err());
    }
}
